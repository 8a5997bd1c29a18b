/* Letter: a message to an object that is kept: waiting for its turn, for its object, or to run.
 *
 * Invariant: a letter is in one list or in none. Letters are made and freed by the application
 * thread; the helper only reads those of an object it migrates. */
#ifndef FY_LETTER_H
#define FY_LETTER_H

#include <ferry/object.h>

#include "base/pool.h"

/* What the way of a message needs beside its contents. */
typedef struct fy_envelope {
    ferry_object object;
    int origin;        /* rank that sent it */
    uint32_t sequence; /* its number among the messages from origin to object */
    uint32_t movement; /* best movement number the route knew */
    uint32_t hops;     /* forwards so far, saturating */
    uint32_t op;       /* origin's operation, 0 for none */
} fy_envelope;

typedef struct fy_letter {
    struct fy_letter *next;
    fy_envelope envelope;
    double load;       /* as a task */
    uint64_t since_ns; /* when it came here, as far as the clock was read */
    bool pooled;
    bool overdue;          /* gaps.c has seen it wait before its turn */
    int16_t error;         /* what its sender is still to be told (fy_letters_fail) */
    ferry_message message; /* data points behind the letter */
} fy_letter;

typedef struct fy_letters {
    fy_letter *head, *tail;
    uint32_t count;
} fy_letters;

/* A pool for letters whose data is small. */
void fy_letter_pool_init(fy_pool *pool);

/* A letter with copies of `message` and its data; NULL when there is no memory. */
fy_letter *fy_letter_create(fy_pool *pool, const fy_envelope *envelope,
                            const ferry_message *message, uint64_t since_ns);
void fy_letter_destroy(fy_pool *pool, fy_letter *letter);

void fy_letters_push(fy_letters *letters, fy_letter *letter);
fy_letter *fy_letters_pop(fy_letters *letters);

/* Keeps `letters` sorted by origin and then sequence. False when one like it is there already: the
 * letter is the caller's. */
bool fy_letters_insert(fy_letters *letters, fy_letter *letter);

/* Takes out the letter of `origin` with `sequence`; NULL when there is none. `letters` is sorted as
 * by fy_letters_insert. */
fy_letter *fy_letters_take(fy_letters *letters, int origin, uint32_t sequence);

#endif
