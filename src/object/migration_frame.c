#include "object/migration_frame.h"

#include <stdlib.h>
#include <string.h>

#include "core/why.h"
#include "object/entry.h"
#include "object/store_calls.h"
#include "object/wire.h"

/* The flags. Each of the first five says that more words follow the head, in this order. */
enum {
    HAS_EARLY = 1 << 0, /* how many early queued messages */
    HAS_ADDRESS = 1 << 1,
    HAS_LEFT = 1 << 2,     /* left_ns */
    HAS_LOAD = 1 << 3,     /* a double */
    HAS_AFFINITY = 1 << 4, /* counts of priorities and dependencies */
    WORDS = (1 << 5) - 1,  /* all of these */
    SCHEDULED = 1 << 5,
    BARE = 1 << 6,
    PLACED = 1 << 7,
    PAD_SHIFT = 8,
    PAD_MASK = 7
};

/* `hops` of a queued message also says that a token of the origin comes with it, and gives the
 * epoch of the token. */
enum { TOKEN = 1 << 8, EPOCH_SHIFT = 16 };

typedef struct migration_head {
    uint64_t object;
    uint64_t size_bytes;
    uint32_t movement;
    uint16_t type;
    uint16_t flags;
    uint32_t source_count;
    uint32_t pending_count;
} migration_head;

typedef struct migration_queued {
    uint64_t size_bytes;
    uint32_t origin;
    uint32_t sequence;
    uint32_t op;
    int32_t tag;
    uint16_t handler;
    uint16_t word_count; /* the number of words that follow */
    uint32_t hops;
} migration_queued;

_Static_assert(sizeof(migration_head) == 32 && sizeof(migration_queued) == 32,
               "they have no holes");

static inline size_t padded(size_t size_bytes)
{
    return (size_bytes + 7) & ~(size_t)7;
}

static inline size_t queued_bytes(const fy_queued_list *messages)
{
    size_t sum = 0;
    for (const fy_queued_message *queued = messages->head; queued != NULL; queued = queued->next)
        sum += sizeof(migration_queued) + queued->message.word_count * sizeof(uint64_t) +
               padded(queued->message.size_bytes);
    return sum;
}

static inline unsigned flags_of(const fy_record *record)
{
    return (record->early.count != 0 ? HAS_EARLY : 0u) | (record->handed ? HAS_ADDRESS : 0u) |
           (record->left_ns != 0 ? HAS_LEFT : 0u) | (record->load != 0 ? HAS_LOAD : 0u) |
           (record->affinity != NULL ? HAS_AFFINITY : 0u) | (record->scheduled ? SCHEDULED : 0u) |
           (record->placed ? PLACED : 0u);
}

static inline size_t words_behind(unsigned flags)
{
    size_t words = 0;
    for (unsigned left = flags & WORDS; left != 0; left &= left - 1)
        words++;
    return words * sizeof(uint64_t);
}

size_t fy_migration_bytes(const fy_record *record, size_t data_bytes)
{
    size_t head = sizeof(migration_head) + words_behind(flags_of(record)) +
                  record->sources.count * sizeof(fy_source) + queued_bytes(&record->pending) +
                  queued_bytes(&record->early);
    if (record->affinity != NULL)
        head += fy_affinity_bytes(record->affinity);
    return data_bytes > SIZE_MAX - head - 8 ? 0 : head + padded(data_bytes);
}

static unsigned char *migration_put(unsigned char *at, const void *bytes, size_t size_bytes)
{
    memcpy(at, bytes, size_bytes);
    return at + size_bytes;
}

static uint32_t token_of(const fy_queued_message *queued)
{
    return queued->token ? TOKEN | (uint32_t)queued->token_epoch << EPOCH_SHIFT : 0;
}

static inline unsigned char *write_queued(const fy_queued_list *messages, unsigned char *at)
{
    for (const fy_queued_message *queued = messages->head; queued != NULL; queued = queued->next) {
        const ferry_message *message = &queued->message;
        size_t pad = padded(message->size_bytes) - message->size_bytes;
        const migration_queued head = {.size_bytes = message->size_bytes,
                                       .origin = (uint32_t)queued->envelope.origin,
                                       .sequence = queued->envelope.sequence,
                                       .op = queued->envelope.op,
                                       .tag = message->tag,
                                       .handler = message->handler.index,
                                       .word_count = message->word_count,
                                       .hops = queued->envelope.hops | token_of(queued)};
        at = migration_put(at, &head, sizeof head);
        for (unsigned i = 0; i < message->word_count; i++)
            at = migration_put(at, &message->words[i], sizeof(uint64_t));
        if (message->size_bytes != 0)
            at = migration_put(at, message->data, message->size_bytes);
        if (pad != 0)
            memset(at, 0, pad);
        at += pad;
    }
    return at;
}

static unsigned char *write_behind(const fy_record *record, unsigned flags, unsigned char *at)
{
    uint64_t early_count = record->early.count;
    uint64_t address = (uint64_t)(uintptr_t)record->data;
    if (flags & HAS_EARLY)
        at = migration_put(at, &early_count, sizeof early_count);
    if (flags & HAS_ADDRESS)
        at = migration_put(at, &address, sizeof address);
    if (flags & HAS_LEFT)
        at = migration_put(at, &record->left_ns, sizeof record->left_ns);
    if (flags & HAS_LOAD)
        at = migration_put(at, &record->load, sizeof record->load);
    if (flags & HAS_AFFINITY) {
        at = migration_put(at, &record->affinity->priority_count, sizeof(uint32_t));
        at = migration_put(at, &record->affinity->dependency_count, sizeof(uint32_t));
    }
    return at;
}

void *fy_migration_write(const fy_record *record, size_t size_bytes, size_t data_bytes, bool bare,
                         void *block)
{
    unsigned flags = flags_of(record);
    size_t pad = padded(data_bytes) - data_bytes;
    const migration_head head = {
        .object = record->object.word,
        .size_bytes = size_bytes,
        .movement = record->movement + FY_MOVE_STEP,
        .type = record->type_index,
        .flags = (uint16_t)(flags | (bare ? BARE : 0u) | (unsigned)pad << PAD_SHIFT),
        .source_count = record->sources.count,
        .pending_count = record->pending.count,
    };
    unsigned char *at = migration_put(block, &head, sizeof head);
    if (flags & WORDS)
        at = write_behind(record, flags, at);
    fy_sources_copy(&record->sources, (fy_source *)(void *)at);
    at += record->sources.count * sizeof(fy_source);
    if (flags & HAS_AFFINITY)
        at = fy_affinity_write(record->affinity, at);
    at = write_queued(&record->pending, at);
    at = write_queued(&record->early, at);
    if (pad != 0)
        memset(at + data_bytes, 0, pad);
    return at;
}

bool fy_address_shared(const fy_objects *objects, fy_thread thread, const void *address)
{
    const fy_port_ops *ops = objects->port->ops;
    return objects->info.shares_memory && ops->heap.owner != NULL &&
           ops->heap.owner(objects->port, thread, address, 1) >= 0;
}

bool fy_data_leaves(const fy_objects *objects, fy_thread thread, const fy_record *record)
{
    if (record->type->leaving != NULL)
        record->type->leaving(objects->f, thread, record->data);
    return (record->type->ops.flags & FERRY_OBJECT_SHARED) != 0 &&
           fy_address_shared(objects, thread, record->data);
}

void fy_data_keep(const fy_objects *objects, fy_record *record)
{
    const fy_port_ops *ops = objects->port->ops;
    if ((record->type->ops.flags & FERRY_OBJECT_SHARED) != 0 && objects->info.shares_memory &&
        ops->heap.keep_for != NULL)
        (void)ops->heap.keep_for(objects->port, record->data,
                                 objects->rank); /* fails harmlessly if the data are no block */
    if (objects->store != NULL)
        objects->store->keep(objects->f, record);
}

static const unsigned char *get(const unsigned char *at, void *out, size_t size_bytes)
{
    memcpy(out, at, size_bytes);
    return at + size_bytes;
}

static void read_behind(const unsigned char *at, unsigned flags, fy_migration *out)
{
    uint64_t early_count = 0;
    if (flags & HAS_EARLY)
        at = get(at, &early_count, sizeof early_count);
    out->early_count = early_count < UINT32_MAX ? (uint32_t)early_count : UINT32_MAX;
    if (flags & HAS_ADDRESS)
        at = get(at, &out->address, sizeof out->address);
    if (flags & HAS_LEFT)
        at = get(at, &out->left_ns, sizeof out->left_ns);
    if (flags & HAS_LOAD)
        at = get(at, &out->load, sizeof out->load);
    if (flags & HAS_AFFINITY) {
        at = get(at, &out->priority_count, sizeof(uint32_t));
        (void)get(at, &out->dependency_count, sizeof(uint32_t));
    }
}

static bool migration_frame_is_sound(const fy_objects *objects, unsigned flags,
                                     const fy_migration *migration)
{
    const ferry_object object = {migration->object};
    if ((flags & HAS_ADDRESS) &&
        !fy_address_shared(objects, FY_APP, (const void *)(uintptr_t)migration->address))
        return false;
    return fy_object_is_name(objects, object) && migration->type < FY_TYPES_MAX &&
           (!migration->placed || objects->take != NULL) && migration->load >= 0 &&
           (migration->priority_count == 0 ||
            migration->priority_count == (uint32_t)objects->ranks);
}

bool fy_migration_has_next(const void *block, size_t size_bytes)
{
    migration_head head;
    if (size_bytes < sizeof head)
        return false;
    memcpy(&head, block, sizeof head);
    return head.size_bytes < size_bytes;
}

bool fy_migration_read(const fy_objects *objects, const void *block, size_t size_bytes,
                       fy_migration *out)
{
    migration_head head;
    if (size_bytes < sizeof head)
        return false;
    memcpy(&head, block, sizeof head);
    size_t head_bytes = sizeof head + words_behind(head.flags);
    if (head.size_bytes > size_bytes || head.size_bytes % 8 != 0 || head_bytes > head.size_bytes)
        return false;
    out->object = head.object;
    out->address = out->left_ns = 0;
    out->size_bytes = head.size_bytes;
    out->head_bytes = head_bytes;
    out->data_pad = head.flags >> PAD_SHIFT & PAD_MASK;
    out->movement = head.movement;
    out->type = head.type;
    out->source_count = head.source_count;
    out->pending_count = head.pending_count;
    out->early_count = out->priority_count = out->dependency_count = 0;
    out->scheduled = (head.flags & SCHEDULED) != 0;
    out->has_affinity = (head.flags & HAS_AFFINITY) != 0;
    out->bare = (head.flags & BARE) != 0;
    out->placed = (head.flags & PLACED) != 0;
    out->load = 0;
    if (head.flags & WORDS)
        read_behind((const unsigned char *)block + sizeof head, head.flags, out);
    return migration_frame_is_sound(objects, head.flags, out);
}

static int read_sources(const fy_objects *objects, const fy_migration *migration,
                        const unsigned char **at, const unsigned char *end, fy_record *record)
{
    if ((size_t)(end - *at) / sizeof(fy_source) < migration->source_count)
        return FERRY_EINVAL;
    const unsigned char *from = *at;
    *at += migration->source_count * sizeof(fy_source);
    if (migration->source_count <= FY_SOURCES_INLINE && record->sources.many == NULL)
        return fy_sources_read(&record->sources, from, migration->source_count, objects->ranks);
    for (uint32_t i = 0; i < migration->source_count; i++, from += sizeof(fy_source)) {
        fy_source source;
        memcpy(&source, from, sizeof source);
        if (source.rank_plus_1 - 1 >= (uint32_t)objects->ranks)
            return FERRY_EINVAL;
        uint32_t *expected = fy_sources_of(&record->sources, (int)source.rank_plus_1 - 1);
        if (expected == NULL)
            return FERRY_ENOMEM;
        *expected = source.expected;
    }
    return 0;
}

/* Reads a queued message. If `out` is NULL, only skips it: an earlier call has read it. */
static int read_queued(fy_objects *objects, ferry_object object, const unsigned char **at,
                       const unsigned char *end, fy_queued_message **out)
{
    migration_queued head;
    if ((size_t)(end - *at) < sizeof head)
        return FERRY_EINVAL;
    memcpy(&head, *at, sizeof head);
    *at += sizeof head;
    size_t words_bytes = head.word_count * sizeof(uint64_t);
    if (head.word_count > FERRY_WORDS_MAX || words_bytes > (size_t)(end - *at))
        return FERRY_EINVAL;
    const unsigned char *words = *at;
    *at += words_bytes;
    if (head.size_bytes > (size_t)(end - *at) || padded(head.size_bytes) > (size_t)(end - *at) ||
        head.origin >= (uint32_t)objects->ranks)
        return FERRY_EINVAL;
    fy_envelope envelope = {.object = object,
                            .origin = (int)head.origin,
                            .sequence = head.sequence,
                            .hops = head.hops & FY_WIRE_HOPS_MAX,
                            .op = head.op};
    ferry_message message = {.handler = {head.handler},
                             .word_count = (uint8_t)head.word_count,
                             .tag = head.tag,
                             .data = head.size_bytes != 0 ? *at : NULL,
                             .size_bytes = head.size_bytes};
    for (unsigned i = 0; i < head.word_count; i++)
        memcpy(&message.words[i], words + i * sizeof(uint64_t), sizeof(uint64_t));
    const unsigned char *next = *at + padded(head.size_bytes);
    if (out == NULL) {
        *at = next;
        return 0;
    }
    *out = fy_queued_create(&objects->messages, &envelope, &message, fy_stamp(objects->f), false);
    if (*out == NULL)
        return FERRY_ENOMEM;
    *at = next;
    (*out)->token = (head.hops & TOKEN) != 0;
    (*out)->token_epoch = (uint16_t)(head.hops >> EPOCH_SHIFT);
    return 0;
}

int fy_migration_unload(fy_objects *objects, const fy_migration *migration, const void *block,
                        fy_record *record, const void **data, size_t *data_bytes)
{
    const unsigned char *at = (const unsigned char *)block + migration->head_bytes;
    const unsigned char *end = (const unsigned char *)block + migration->size_bytes;
    int error = read_sources(objects, migration, &at, end, record);
    free(record->affinity);
    record->affinity = NULL;
    if (error == 0 && migration->has_affinity)
        error = fy_affinity_read(&at, end, migration->priority_count, migration->dependency_count,
                                 &record->affinity);
    uint32_t pending_before = record->pending.count, early_before = record->early.count;
    for (uint32_t i = 0; error == 0 && i < migration->pending_count; i++) {
        fy_queued_message *queued = NULL;
        error = read_queued(objects, record->object, &at, end, i < pending_before ? NULL : &queued);
        if (queued != NULL)
            fy_queued_list_push(&record->pending, queued);
    }
    for (uint32_t i = 0; error == 0 && i < migration->early_count; i++) {
        fy_queued_message *queued = NULL;
        error = read_queued(objects, record->object, &at, end, i < early_before ? NULL : &queued);
        if (queued != NULL && !fy_queued_list_insert(&record->early, queued)) {
            fy_queued_destroy(&objects->messages, queued);
            error = FERRY_EINVAL;
        }
    }
    if (error == 0 && migration->data_pad > (size_t)(end - at))
        error = FERRY_EINVAL;
    if (error != 0)
        return error;
    *data = at;
    *data_bytes = (size_t)(end - at) - migration->data_pad;
    return 0;
}
