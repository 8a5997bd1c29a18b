/* Queued message: a message to an object that is kept because it waits for its turn, for its
 * object, or to run.
 *
 * Invariant: a queued message is in one list or in none. The application thread makes and frees
 * queued messages. The helper only reads those of an object that it migrates. The bytes of queued
 * messages that are not tasks are counted per origin. The bytes of all queued messages, tasks
 * included, are counted in one number. */
#ifndef FY_QUEUED_H
#define FY_QUEUED_H

#include <ferry/object.h>

#include "base/pool.h"
#include "base/table.h"
#include "port/port.h"

/* The part of a message that its route needs, beside its contents. */
typedef struct fy_envelope {
    ferry_object object;
    uint32_t movement; /* the highest movement number that the route knew */
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
    bool counted;         /* it counts in the bytes held of its origin */
    bool token;           /* a token of the origin travels with it to another rank */
    bool overdue;         /* gaps.c has found that it waits before its turn */
    uint16_t token_epoch; /* which tokens count there */
    int16_t error;        /* the error that its sender has still to be told (fy_queued_list_fail) */
    ferry_message message; /* its data follow the queued message */
} fy_queued_message;

/* A queued message from the pool has room for FY_QUEUED_DATA_BYTES of data. */
enum { FY_QUEUED_DATA_BYTES = 64 };
enum { FY_QUEUED_BYTES = sizeof(fy_queued_message) + FY_QUEUED_DATA_BYTES };

typedef struct fy_queued_list {
    fy_queued_message *head, *tail;
    uint32_t count;
} fy_queued_list;

/* The messages that are held of one origin: a slot of a table. */
typedef struct fy_held {
    uint64_t origin_plus_1;
    size_t bytes;           /* of queued messages */
    uint32_t onward_plus_1; /* a rank to which this one forwards too much of it; 0: none */
    uint32_t tokens;        /* of this rank, which keep the origin from sending */
    uint32_t round;         /* the round in which one of the tokens was marked to leave */
} fy_held;

typedef struct fy_message_store {
    fy_pool pool; /* queued messages whose data is small */
    fy_table held;
    fy_held *last[2]; /* the last even and the last odd origin that was looked up; NULL: none */
    size_t limit_bytes;
    size_t *kept_bytes; /* of all queued messages, tasks included; the rank's */
    size_t full_bytes;  /* above it all origins get tokens, until half of it has gone */
    bool full;
    uint32_t epoch; /* of all tokens */
    uint32_t tokens;
    uint32_t round; /* of the last object that was to leave */
    bool unsettled; /* the bytes held of an origin have passed the limit, or have fallen below half
                       of it */
} fy_message_store;

/* `limit_bytes` bounds the bytes held of one origin. `full_bytes` bounds all queued messages, which
 * are counted in `*kept_bytes`. FERRY_ENOMEM. */
int fy_message_store_init(fy_message_store *store, size_t limit_bytes, size_t full_bytes,
                          size_t *kept_bytes);

/* Frees the accounts and the pool, with all queued messages that have small data. */
void fy_message_store_fini(fy_message_store *store);

/* As fy_held_of, for a rank that was not looked up last. */
fy_held *fy_held_find(fy_message_store *store, int origin);

/* The account of a rank, which is made if there is none. The pointer is valid until the next call.
 * NULL: there is no memory. */
static inline fy_held *fy_held_of(fy_message_store *store, int origin)
{
    fy_held *last = store->last[origin & 1];
    return last != NULL && last->origin_plus_1 == (uint64_t)origin + 1
               ? last
               : fy_held_find(store, origin);
}

/* Counts bytes that are held of an origin. */
static inline void fy_held_add(fy_message_store *store, fy_held *held, size_t bytes)
{
    held->bytes += bytes;
    store->unsettled |= held->tokens == 0 && (held->bytes > store->limit_bytes || store->full);
}

/* Writes what fy_queued_make promises, without the data. Copies field by field, as the program has
 * just written the message (fy_words_copy). */
static inline void fy_queued_fill(fy_queued_message *queued, const ferry_message *message,
                                  uint64_t since_ns, bool pooled, bool task)
{
    queued->next = NULL;
    queued->load = 0;
    queued->since_ns = since_ns;
    queued->pooled = pooled;
    queued->counted = !task;
    queued->token = false;
    queued->overdue = false;
    queued->message.handler = message->handler;
    queued->message.word_count = message->word_count;
    queued->message.tag = message->tag;
    fy_words_copy(queued->message.words, message->words, message->word_count);
    queued->message.data = NULL;
    queued->message.size_bytes = message->size_bytes;
}

/* As fy_queued_create, but the caller fills the envelope. */
fy_queued_message *fy_queued_make(fy_message_store *store, int origin, const ferry_message *message,
                                  uint64_t since_ns, bool task);

/* The fast path of fy_queued_make: the message has only words, the pool has an item, the store is
 * not full and `last` has the account of the origin. NULL: nothing has happened. */
static inline fy_queued_message *fy_queued_make_plain(fy_message_store *store, int origin,
                                                      const ferry_message *message,
                                                      uint64_t since_ns, bool task)
{
    fy_held *held = store->last[origin & 1];
    size_t kept_bytes = *store->kept_bytes + FY_QUEUED_BYTES;
    if (message->size_bytes != 0 || store->pool.free_items == NULL || store->full ||
        kept_bytes > store->full_bytes ||
        (!task && (held == NULL || held->origin_plus_1 != (uint64_t)origin + 1)))
        return NULL;
    *store->kept_bytes = kept_bytes;
    if (!task)
        fy_held_add(store, held, FY_QUEUED_BYTES);
    fy_queued_message *queued = fy_pool_get(&store->pool);
    fy_queued_fill(queued, message, since_ns, true, task);
    return queued;
}

/* A queued message with copies of `message` and its data; NULL without memory. `task`: it is for a
 * scheduled object. It is then work that has arrived, which the program has to bound. Inline, so
 * that the caller writes the envelope where it stays, field by field, as fy_queued_fill does. */
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

/* fy_queued_destroy, inline for a message of the pool whose end changes no token. */
static inline void fy_queued_end(fy_message_store *store, fy_queued_message *queued)
{
    int origin = queued->envelope.origin;
    fy_held *held = store->last[origin & 1];
    if (!queued->pooled || store->full ||
        (queued->counted &&
         (held == NULL || held->origin_plus_1 != (uint64_t)origin + 1 || held->tokens != 0))) {
        fy_queued_destroy(store, queued);
        return;
    }
    if (queued->counted)
        held->bytes -= FY_QUEUED_BYTES;
    *store->kept_bytes -= FY_QUEUED_BYTES;
    fy_pool_put(&store->pool, queued);
}

/* As fy_queued_uncount, for a message that is counted. */
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

/* Inserts a queued message into `messages`, which is sorted by origin and then sequence. False if a
 * message with the same origin and sequence is in it: the queued message still belongs to the
 * caller. */
bool fy_queued_list_insert(fy_queued_list *messages, fy_queued_message *queued);

/* Takes out the queued message of `origin` with `sequence`; NULL when there is none. `messages` is
 * sorted as by fy_queued_list_insert. */
fy_queued_message *fy_queued_list_take(fy_queued_list *messages, int origin, uint32_t sequence);

#endif
