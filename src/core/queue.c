#include "core/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* The offset of a packet's data, which follow its head, aligned to 16 bytes. */
enum { DATA_OFFSET = (sizeof(fy_packet) + 15) / 16 * 16, PACKETS_PER_CHUNK = 64 };

void fy_packet_pool_init(fy_pool *pool)
{
    fy_pool_init(pool, DATA_OFFSET + FY_PACKET_POOLED_BYTES, PACKETS_PER_CHUNK);
}

fy_packet *fy_packet_create(fy_pool *pool, size_t size_bytes)
{
    bool pooled = size_bytes <= FY_PACKET_POOLED_BYTES;
    if (size_bytes > SIZE_MAX - DATA_OFFSET)
        return NULL;
    fy_packet *packet = pooled ? fy_pool_get(pool) : fy_malloc(DATA_OFFSET + size_bytes);
    if (packet != NULL)
        packet->pooled = pooled;
    return packet;
}

unsigned char *fy_packet_data(fy_packet *packet)
{
    return (unsigned char *)packet + DATA_OFFSET;
}

void fy_packet_fill(fy_packet *packet, int rank, fy_lane lane, const fy_frame *frame)
{
    packet->next = NULL;
    packet->rank = rank;
    packet->lane = lane;
    packet->frame = *frame;
    packet->frame.data = fy_packet_data(packet);
    packet->frame.block = false;
    if (frame->size_bytes > 0)
        memcpy(fy_packet_data(packet), frame->data, frame->size_bytes);
}

void fy_packet_destroy(fy_pool *pool, fy_packet *packet)
{
    if (packet->pooled)
        fy_pool_put(pool, packet);
    else
        free(packet);
}

size_t fy_packet_bytes(const fy_packet *packet)
{
    enum { MALLOC_BYTES = 16 };
    return DATA_OFFSET + (packet->pooled ? (size_t)FY_PACKET_POOLED_BYTES
                                         : MALLOC_BYTES + packet->frame.size_bytes);
}

void fy_queue_push(fy_queue *queue, fy_packet *packet)
{
    packet->next = NULL;
    if (queue->head == NULL)
        queue->head = packet;
    else
        queue->tail->next = packet;
    queue->tail = packet;
    queue->bytes += fy_packet_bytes(packet);
}

fy_packet *fy_queue_unlink(fy_queue *queue, fy_packet *before)
{
    fy_packet *packet = before == NULL ? queue->head : before->next;
    if (before == NULL)
        queue->head = packet->next;
    else
        before->next = packet->next;
    if (queue->tail == packet)
        queue->tail = before;
    queue->bytes -= fy_packet_bytes(packet);
    return packet;
}

fy_queue *fy_queue_find(const fy_queue_set *set, uint32_t key)
{
    if (set->bucket_count == 0)
        return NULL;
    fy_queue *queue = set->buckets[key & (set->bucket_count - 1)];
    while (queue != NULL && queue->key != key)
        queue = queue->hash_next;
    return queue;
}

static __attribute__((cold)) bool queues_grow(fy_queue_set *set)
{
    uint32_t count = set->bucket_count == 0 ? 16 : set->bucket_count * 2;
    fy_queue **buckets = fy_calloc(count, sizeof(*buckets));
    if (buckets == NULL)
        return false;
    for (uint32_t i = 0; i < set->bucket_count; i++) {
        for (fy_queue *queue = set->buckets[i], *next; queue != NULL; queue = next) {
            next = queue->hash_next;
            queue->hash_next = buckets[queue->key & (count - 1)];
            buckets[queue->key & (count - 1)] = queue;
        }
    }
    free(set->buckets);
    set->buckets = buckets;
    set->bucket_count = count;
    return true;
}

static __attribute__((cold)) fy_queue *create_queue(fy_queue_set *set, uint32_t key)
{
    if (set->queue_count >= set->bucket_count && !queues_grow(set))
        return NULL;
    fy_queue *queue = fy_calloc(1, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->key = key;
    queue->hash_next = set->buckets[key & (set->bucket_count - 1)];
    set->buckets[key & (set->bucket_count - 1)] = queue;
    set->queue_count++;
    return queue;
}

bool fy_queue_set_push(fy_queue_set *set, uint32_t key, fy_packet *packet)
{
    fy_queue *queue = fy_queue_find(set, key);
    if (queue == NULL)
        queue = create_queue(set, key);
    if (queue == NULL)
        return false;
    if (queue->head == NULL) {
        queue->next = NULL;
        queue->prev = set->last;
        if (set->last == NULL)
            set->first = queue;
        else
            set->last->next = queue;
        set->last = queue;
    }
    set->bytes -= queue->bytes;
    fy_queue_push(queue, packet);
    set->bytes += queue->bytes;
    return true;
}

fy_packet *fy_queue_set_unlink(fy_queue_set *set, fy_queue *queue, fy_packet *before)
{
    set->bytes -= queue->bytes;
    fy_packet *packet = fy_queue_unlink(queue, before);
    set->bytes += queue->bytes;
    if (queue->head != NULL)
        return packet;
    if (queue->prev == NULL)
        set->first = queue->next;
    else
        queue->prev->next = queue->next;
    if (queue->next == NULL)
        set->last = queue->prev;
    else
        queue->next->prev = queue->prev;
    return packet;
}

__attribute__((cold)) void fy_queue_set_fini(fy_queue_set *set, fy_pool *pool)
{
    for (uint32_t i = 0; i < set->bucket_count; i++) {
        for (fy_queue *queue = set->buckets[i], *next; queue != NULL; queue = next) {
            next = queue->hash_next;
            while (queue->head != NULL)
                fy_packet_destroy(pool, fy_queue_unlink(queue, NULL));
            free(queue);
        }
    }
    free(set->buckets);
    *set = (fy_queue_set){0};
}
