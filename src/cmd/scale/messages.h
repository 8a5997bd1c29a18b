/* Messages: what the trails of all ranks say of the messages and objects of handlers, for the graph
 * (graph.c). */
#ifndef FY_CMD_SCALE_MESSAGES_H
#define FY_CMD_SCALE_MESSAGES_H

#include "cmd/scale/scale.h"

enum { ROOT = -1, NONE = -2 };

/* A handler that ran. */
typedef struct scale_handled {
    uint64_t object, start_ns, ns;
    double load;
    uint32_t sequence;
    int32_t origin;
    int64_t parent; /* the handler that sent the message; ROOT: the program; NONE: not known */
    uint64_t task;  /* its place among all tasks */
    uint32_t index; /* of its object */
    uint32_t phase; /* of the program, if the program sent the message */
    uint32_t bytes, handler;
} scale_handled;

typedef struct scale_sent {
    uint64_t object, bytes, order;
    uint32_t sequence, phase;
    int32_t origin;
    int64_t parent, target; /* target: the handler that ran for it, or NONE */
} scale_sent;

/* A handler created an object. */
typedef struct scale_created {
    uint64_t object;
    int64_t creator;
} scale_created;

typedef struct scale_work {
    scale_handled *handled;
    scale_sent *sent;
    scale_created *created;
    size_t handled_count, sent_count, created_count;
} scale_work;

static inline int sign(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Reads the trails, and finds the message of each handler. False: no memory. scale_messages_fini
 * frees the arrays in each case. */
bool scale_messages_read(scale_work *w, const trace_run *run);
void scale_messages_fini(scale_work *w);

/* Pointers to all handlers, in that order. NULL: no memory. */
scale_handled **scale_messages_sorted(const scale_work *w,
                                      int (*order)(const void *, const void *));

#endif
