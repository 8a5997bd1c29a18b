#include "object/queued.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { CHUNK_QUEUED = 64 };

__attribute__((cold)) int fy_message_store_init(fy_message_store *store, size_t limit_bytes,
                                                size_t full_bytes, size_t *kept_bytes)
{
    *store = (fy_message_store){
        .limit_bytes = limit_bytes, .full_bytes = full_bytes, .kept_bytes = kept_bytes};
    fy_pool_init(&store->pool, FY_QUEUED_BYTES, CHUNK_QUEUED);
    return fy_table_init(&store->held, sizeof(fy_held));
}

void fy_message_store_fini(fy_message_store *store)
{
    fy_table_fini(&store->held);
    fy_pool_fini(&store->pool);
}

__attribute__((cold)) fy_held *fy_held_find(fy_message_store *store, int origin)
{
    uint64_t key = (uint64_t)origin + 1;
    void *slot = fy_table_find(&store->held, key);
    if (slot == NULL) {
        if (fy_table_insert(&store->held, key, &slot) != 0)
            return NULL;
        store->last[0] = store->last[1] = NULL; /* the accounts may have moved */
    }
    return store->last[origin & 1] = slot;
}

static inline size_t queued_message_bytes(const fy_queued_message *queued)
{
    return queued->pooled ? FY_QUEUED_BYTES : sizeof *queued + queued->message.size_bytes;
}

/* Counts the bytes of a message. A task does not count in the account of its origin. While the
 * store is full, the account is made all the same, because only an origin with an account can get a
 * token. False: there is no memory for the account. */
static bool count(fy_message_store *store, int origin, size_t bytes, bool task)
{
    *store->kept_bytes += bytes;
    store->full |= *store->kept_bytes > store->full_bytes;
    if (task && !store->full)
        return true;
    fy_held *held = fy_held_of(store, origin);
    if (held == NULL) {
        *store->kept_bytes -= bytes;
        return false;
    }
    fy_held_add(store, held, task ? 0 : bytes);
    return true;
}

static inline void discount(fy_message_store *store, const fy_queued_message *queued)
{
    fy_held *held =
        fy_held_of(store, queued->envelope.origin); /* exists: the message counts in it */
    held->bytes -= queued_message_bytes(queued);
    store->unsettled |= held->tokens != 0 && held->bytes <= store->limit_bytes / 2 && !store->full;
}

__attribute__((cold)) void fy_queued_discount(fy_message_store *store, fy_queued_message *queued)
{
    queued->counted = false;
    discount(store, queued);
}

static void queued_release(fy_message_store *store, fy_queued_message *queued)
{
    if (queued->pooled)
        fy_pool_put(&store->pool, queued);
    else
        free(queued);
}

static __attribute__((cold, noinline)) fy_queued_message *make_any(fy_message_store *store,
                                                                   int origin,
                                                                   const ferry_message *message,
                                                                   uint64_t since_ns, bool task)
{
    size_t size_bytes = message->size_bytes;
    bool pooled = size_bytes <= FY_QUEUED_DATA_BYTES;
    if (size_bytes > SIZE_MAX - sizeof(fy_queued_message))
        return NULL;
    fy_queued_message *queued =
        pooled ? fy_pool_get(&store->pool) : fy_malloc(sizeof(fy_queued_message) + size_bytes);
    if (queued == NULL)
        return NULL;
    fy_queued_fill(queued, message, since_ns, pooled, task);
    if (!count(store, origin, queued_message_bytes(queued), task)) {
        queued_release(store, queued);
        return NULL;
    }
    if (size_bytes != 0)
        queued->message.data = memcpy(queued + 1, message->data, size_bytes);
    return queued;
}

fy_queued_message *fy_queued_make(fy_message_store *store, int origin, const ferry_message *message,
                                  uint64_t since_ns, bool task)
{
    fy_queued_message *queued = fy_queued_make_plain(store, origin, message, since_ns, task);
    return queued != NULL ? queued : make_any(store, origin, message, since_ns, task);
}

void fy_queued_destroy(fy_message_store *store, fy_queued_message *queued)
{
    if (queued->counted)
        discount(store, queued);
    *store->kept_bytes -= queued_message_bytes(queued);
    if (store->full && *store->kept_bytes <= store->full_bytes / 2) {
        store->full = false;
        store->unsettled = true;
    }
    queued_release(store, queued);
}

/* Order of the early list. Sequence numbers of one origin lie close together, so their difference
 * tells which is earlier even after the numbers have wrapped. */
static int queued_compare(const fy_queued_message *a, int origin, uint32_t sequence)
{
    if (a->envelope.origin != origin)
        return a->envelope.origin < origin ? -1 : 1;
    int32_t difference = (int32_t)(a->envelope.sequence - sequence);
    return (difference > 0) - (difference < 0);
}

__attribute__((cold)) bool fy_queued_list_insert(fy_queued_list *messages,
                                                 fy_queued_message *queued)
{
    int origin = queued->envelope.origin;
    uint32_t sequence = queued->envelope.sequence;
    if (messages->head == NULL || queued_compare(messages->tail, origin, sequence) < 0) {
        fy_queued_list_push(messages, queued);
        return true;
    }
    fy_queued_message **where = &messages->head;
    while (queued_compare(*where, origin, sequence) < 0)
        where = &(*where)->next;
    if (queued_compare(*where, origin, sequence) == 0)
        return false;
    queued->next = *where;
    *where = queued;
    messages->count++;
    return true;
}

fy_queued_message *fy_queued_list_take(fy_queued_list *messages, int origin, uint32_t sequence)
{
    fy_queued_message *before = NULL;
    fy_queued_message *queued = messages->head;
    while (queued != NULL && queued_compare(queued, origin, sequence) < 0) {
        before = queued;
        queued = queued->next;
    }
    if (queued == NULL || queued_compare(queued, origin, sequence) != 0)
        return NULL;
    if (before == NULL)
        messages->head = queued->next;
    else
        before->next = queued->next;
    if (messages->tail == queued)
        messages->tail = before;
    messages->count--;
    queued->next = NULL;
    return queued;
}
