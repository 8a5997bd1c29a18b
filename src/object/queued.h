/* Queued message: a message to an object that is kept: waiting for its turn, for its object, or to
 * run.
 *
 * Invariant: a queued message is in one list or in none. Queued messages are made and freed by the
 * application thread; the helper only reads those of an object it migrates. The bytes of all queued
 * messages that are not tasks are counted, by who sent them; those of all, tasks included, in one
 * number. */
#ifndef FY_QUEUED_H
#define FY_QUEUED_H

#include <ferry/object.h>

#include "base/pool.h"
#include "base/table.h"

/* The part of a message that its way needs, beside its contents. */
typedef struct fy_envelope {
    ferry_object object;
    uint32_t movement; /* best movement number the route knew */
    uint32_t sequence; /* its number among the messages from origin to object */
    int origin;        /* rank that sent it */
    uint32_t hops;     /* forwards so far, saturating */
    uint32_t op;       /* origin's operation, 0 for none */
} fy_envelope;

typedef struct fy_queued_message {
    struct fy_queued_message *next;
    fy_envelope envelope;
    double load;       /* as a task */
    uint64_t since_ns; /* when it came here, as far as the clock was read */
    bool pooled;
    bool counted;          /* among the bytes held of its origin */
    bool token;            /* a token of the origin goes with it, on its way to another rank */
    uint16_t token_epoch;  /* which tokens count there */
    bool overdue;          /* gaps.c has seen it wait before its turn */
    int16_t error;         /* what its sender is still to be told (fy_queued_list_fail) */
    ferry_message message; /* data points behind the queued message */
} fy_queued_message;

typedef struct fy_queued_list {
    fy_queued_message *head, *tail;
    uint32_t count;
} fy_queued_list;

/* The messages that are held of one origin: a slot of a table. */
typedef struct fy_held {
    uint64_t origin_plus_1;
    size_t bytes;           /* of queued messages */
    uint32_t onward_plus_1; /* a rank to which too much of it is on its way from here; 0: none */
    uint32_t tokens;        /* that keep the origin from sending */
    uint32_t round;         /* in which one of them was marked to leave */
} fy_held;

typedef struct fy_message_store {
    fy_pool pool; /* queued messages whose data is small */
    fy_table held;
    fy_held *last[2]; /* of the origins asked for last, even and odd ones; NULL: none */
    size_t limit_bytes;
    size_t *kept_bytes; /* of all queued messages, tasks included; the rank's */
    size_t full_bytes;  /* above it all origins get tokens, until half of it has gone */
    bool full;
    uint32_t epoch; /* of all tokens */
    uint32_t tokens;
    uint32_t round; /* the last object's that was to leave */
    bool unsettled; /* the bytes held of an origin have passed its limit, or fallen below half of it
                     */
} fy_message_store;

/* `limit_bytes` is for what is held of one origin, `full_bytes` for all queued messages, which are
 * counted in `*kept_bytes`. FERRY_ENOMEM. */
int fy_message_store_init(fy_message_store *store, size_t limit_bytes, size_t full_bytes,
                          size_t *kept_bytes);

/* Frees all queued messages that fit into the pool. */
void fy_message_store_fini(fy_message_store *store);

/* As fy_held_of, for a rank that was not asked for last. */
fy_held *fy_held_find(fy_message_store *store, int origin);

/* The account of a rank, until the next call; NULL without memory. */
static inline fy_held *fy_held_of(fy_message_store *store, int origin)
{
    fy_held *last = store->last[origin & 1];
    return last != NULL && last->origin_plus_1 == (uint64_t)origin + 1
               ? last
               : fy_held_find(store, origin);
}

/* As fy_queued_create, but for the envelope, of which only the origin is known. */
fy_queued_message *fy_queued_make(fy_message_store *store, int origin, const ferry_message *message,
                                  uint64_t since_ns, bool task);

/* A queued message with copies of `message` and its data; NULL when there is no memory. `task`: it
 * is for a scheduled object: work that has arrived, and is the program's to bound. In line, so that
 * what makes an envelope writes it where it stays, and field by field, as copy_message does. */
static inline fy_queued_message *fy_queued_create(fy_message_store *store,
                                                  const fy_envelope *envelope,
                                                  const ferry_message *message, uint64_t since_ns,
                                                  bool task)
{
    fy_queued_message *queued = fy_queued_make(store, envelope->origin, message, since_ns, task);
    if (queued == NULL)
        return NULL;
    queued->envelope.object = envelope->object;
    queued->envelope.movement = envelope->movement;
    queued->envelope.sequence = envelope->sequence;
    queued->envelope.origin = envelope->origin;
    queued->envelope.hops = envelope->hops;
    queued->envelope.op = envelope->op;
    return queued;
}

void fy_queued_destroy(fy_message_store *store, fy_queued_message *queued);

/* As fy_queued_uncount, for one that is counted. */
void fy_queued_discount(fy_message_store *store, fy_queued_message *queued);

/* The queued message is a task from now on. */
static inline void fy_queued_uncount(fy_message_store *store, fy_queued_message *queued)
{
    if (queued->counted)
        fy_queued_discount(store, queued);
}

static inline void fy_queued_list_push(fy_queued_list *messages, fy_queued_message *queued)
{
    queued->next = NULL;
    if (messages->head == NULL)
        messages->head = queued;
    else
        messages->tail->next = queued;
    messages->tail = queued;
    messages->count++;
}

static inline fy_queued_message *fy_queued_list_pop(fy_queued_list *messages)
{
    fy_queued_message *queued = messages->head;
    if (queued == NULL)
        return NULL;
    messages->head = queued->next;
    queued->next = NULL;
    messages->count--;
    return queued;
}

/* Keeps `messages` sorted by origin and then sequence. False when one like it is there already: the
 * queued message is the caller's. */
bool fy_queued_list_insert(fy_queued_list *messages, fy_queued_message *queued);

/* Takes out the queued message of `origin` with `sequence`; NULL when there is none. `messages` is
 * sorted as by fy_queued_list_insert. */
fy_queued_message *fy_queued_list_take(fy_queued_list *messages, int origin, uint32_t sequence);

#endif
