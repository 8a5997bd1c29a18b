/* Plan: what the ranks of a window do in a round, and what each of them must find after it. */
#ifndef FY_TEST_WINDOW_PLAN_H
#define FY_TEST_WINDOW_PLAN_H

#include <stdbool.h>
#include <string.h>

#include "../sim/oracle.h"

enum {
    RANKS_MAX = 16,
    OPS_MAX = 200,
    ROUNDS = 8,
    LENGTH_MAX = 9000,
    LARGE = 150000,
    TRIES = 4,
    STEPS = 1000
};

typedef enum round_kind { FENCE, START, LOCK, ROUND_KINDS } round_kind;
typedef enum verb { PUT, ACCUMULATE, FETCH, SWAP, GET, VERBS } verb;

/* NULL: no value. */
typedef struct value {
    unsigned char *data;
    size_t size;
} value;

/* The array of a rank, and how the round addresses it. */
typedef struct model {
    value *elements;
    int64_t length;
    int64_t first_length; /* when the round began */
    bool back_read, back_changed, grows, grows_early;
} model;

typedef struct op {
    verb verb;
    int origin, target;     /* places */
    int step;               /* STEPS times the epoch, and the flushes before it */
    int64_t index, element; /* as given; from the front, -1: outside */
    ferry_type type;
    ferry_reduction reduction;
    size_t count, room;
    value given, compared, before; /* `before`: what a get finds, or the number before */
    int error;
    bool tracked, applied;
    /* At the origin: */
    unsigned char *seen;
    size_t seen_size;
    int told; /* by the call itself */
    ferry_op handle;
} op;

typedef struct job {
    ferry *f;
    ferry_window *window;
    ferry_group *group;
    uint64_t random;
    bool direct;                   /* the window */
    int members[RANKS_MAX], count; /* of it */
    model models[RANKS_MAX];       /* by place */
    bool opened[RANKS_MAX][RANKS_MAX];
    round_kind kind;
    op ops[OPS_MAX];
    int op_count, step;
    uint64_t total;
} job;

static inline void *need(ferry *f, size_t size)
{
    void *memory = calloc(1, size == 0 ? 1 : size);
    if (memory == NULL)
        must(f, FERRY_ENOMEM, "the test's own memory");
    return memory;
}

/* Empty arrays of all members become first values. */
void models_draw(job *j);
void models_free(job *j);

/* Draws the next round, and works it out. */
void round_plan(job *j);
void round_free(job *j);

#endif
