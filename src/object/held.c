/* Bytes held: how many bytes of each origin this rank keeps. These are queued messages that are not
 * tasks, and forwarded messages that wait for room. If an origin passes the limit, this rank sends
 * it a token, which stops its messages to objects (credit.c). The token is taken back when
 * half of the limit is gone. Only messages that were in flight come meanwhile. So all that is ever
 * held of an origin is a few times the limit and what rings hold.
 *
 * When an object leaves with queued messages of an origin that has a token of this rank, the token
 * goes with one of them. Otherwise the origin could send while they are in flight, and with each
 * move send more than the object handles between two moves. If all queued messages
 * together, tasks included, take too much, every origin gets a token. Two kinds of queued messages
 * carry no token: messages before their turn that the helper ships, and tasks. A task runs without
 * any message that a token stops, so tasks free their memory by themselves. Application thread. */
#include "core/membership.h"
#include "core/outgoing.h"
#include "object/delivery.h"
#include "object/object.h"
#include "object/pacing.h"

/* Whether the origin must have a token: this rank holds more of it than the limit or, once it has a
 * token, than half the limit. */
static bool is_over(ferry *f, fy_held *held)
{
    const fy_message_store *store = &fy_objects_of(f)->messages;
    size_t limit_bytes = held->tokens != 0 ? store->limit_bytes / 2 : store->limit_bytes;
    if (held->onward_plus_1 != 0 &&
        fy_backlog_bytes(f, (int)held->onward_plus_1 - 1) <= limit_bytes)
        held->onward_plus_1 = 0;
    return store->full || held->bytes > limit_bytes || held->onward_plus_1 != 0;
}

/* Sends the origin a token, or takes back all tokens that it has of this rank. Returns whether the
 * notice was sent. */
static bool held_tell(ferry *f, fy_held *held, int tokens)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    if (fy_credit_tell(f, (int)held->origin_plus_1 - 1, tokens, store->epoch) == FERRY_ENOMEM)
        return false;
    held->tokens += (uint32_t)tokens;
    store->tokens += (uint32_t)tokens;
    return true;
}

/* Ranks have come or gone: all ranks forget all earlier tokens. `ahead`: a rank that has learned of
 * it has an epoch that is so much later than this one's. */
static void renew(ferry *f, int ahead)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    uint32_t known = store->epoch + (uint32_t)(ahead > 0 ? ahead : 0), epoch = fy_peer_shifts(f);
    size_t index = 0;
    epoch = epoch > known ? epoch : known;
    if (store->epoch == epoch)
        return;
    for (fy_held *h; (h = fy_table_next(&store->held, &index)) != NULL;)
        h->tokens = 0;
    store->epoch = epoch;
    store->tokens = 0;
}

void fy_held_settle(ferry *f, bool give)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    size_t index = 0;
    renew(f, 0);
    store->unsettled = false;
    for (fy_held *h; (h = fy_table_next(&store->held, &index)) != NULL;) {
        bool over = is_over(f, h);
        bool done = over == (h->tokens != 0) ||
                    (over ? held_tell(f, h, 1) : give && held_tell(f, h, -(int)h->tokens));
        /* No event tells when forwarded messages find room, so a later call looks again. */
        store->unsettled |= !done || h->onward_plus_1 != 0;
    }
}

void fy_held_passed_on(ferry *f, int origin, int rank)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    if (fy_backlog_bytes(f, rank) <= store->limit_bytes)
        return;
    fy_held *held = fy_held_of(store, origin);
    if (held == NULL || held->tokens != 0)
        return;
    held->onward_plus_1 = (uint32_t)rank + 1;
    store->unsettled = true;
}

/* Calls `fn` for the queued messages that the object takes along when it moves. */
static inline void each(ferry *f, const fy_record *record,
                        void (*fn)(ferry *f, fy_queued_message *queued))
{
    for (fy_queued_message *queued = record->pending.head; queued != NULL; queued = queued->next)
        fn(f, queued);
    for (fy_queued_message *queued = record->early.head; queued != NULL; queued = queued->next)
        fn(f, queued);
}

static void mark(ferry *f, fy_queued_message *queued)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    fy_held *held = fy_table_find(&store->held, (uint64_t)queued->envelope.origin + 1);
    queued->token = held != NULL && held->tokens != 0 && held->round != store->round;
    queued->token_epoch = (uint16_t)store->epoch;
    if (queued->token)
        held->round = store->round;
}

static void unmark(ferry *f, fy_queued_message *queued)
{
    (void)f;
    queued->token = false;
}

void fy_held_mark(ferry *f, const fy_record *record)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    renew(f, 0);
    store->round++;
    /* If others know of a change of which this rank does not, the target may be dead. A token that
     * went there would be lost forever: the epoch is that of its death already. */
    each(f, record, store->epoch == fy_peer_shifts(f) ? mark : unmark);
}

void fy_held_stay(ferry *f, const fy_record *record)
{
    each(f, record, unmark);
}

static void let_go(ferry *f, fy_queued_message *queued)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    fy_held *held = queued->token ? fy_held_of(store, queued->envelope.origin) : NULL;
    if (held == NULL || held->tokens == 0 || queued->token_epoch != (uint16_t)store->epoch)
        return;
    held->tokens--;
    store->tokens--;
    store->unsettled = true; /* the messages that stay may need a new token */
}

void fy_held_leave(ferry *f, const fy_record *record)
{
    each(f, record, let_go);
}

static void take_token(ferry *f, fy_queued_message *queued)
{
    fy_message_store *store = &fy_objects_of(f)->messages;
    if (!queued->token)
        return;
    renew(f, (int16_t)(queued->token_epoch - (uint16_t)store->epoch));
    queued->token = false;
    if (queued->token_epoch != (uint16_t)store->epoch)
        return;
    /* The account exists, because the queued message counts in it. */
    fy_held_of(store, queued->envelope.origin)->tokens++;
    store->tokens++;
    store->unsettled = true;
}

void fy_held_arrive(ferry *f, const fy_record *record)
{
    each(f, record, take_token);
}
