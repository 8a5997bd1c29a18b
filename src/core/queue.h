/* Queue: copies of frames that wait for room at their target (backlog), for a poll that wants their
 * tag (tags.h), or in flight from a rank to itself.
 *
 * A set keeps one queue per key, made when a frame of its key first has to wait. So memory grows
 * with the peers that were slow, not with the ranks of the job. Queues with packets form a list in
 * the order in which they filled, so no walk depends on addresses. Application thread only. */
#ifndef FY_QUEUE_H
#define FY_QUEUE_H

#include <stdbool.h>

#include "base/pool.h"
#include "port/port.h"

/* A frame and a copy of its data. */
typedef struct fy_packet {
    struct fy_packet *next;
    int rank; /* the other rank: target or source */
    fy_lane lane;
    bool pooled;
    fy_frame frame; /* its data follow the packet */
} fy_packet;

/* Packets whose data fits are taken from a pool, others from malloc. */
enum { FY_PACKET_POOLED_BYTES = 128 };

void fy_packet_pool_init(fy_pool *pool);

/* A packet with room for `size_bytes` of data, or NULL. */
fy_packet *fy_packet_create(fy_pool *pool, size_t size_bytes);

/* Copies `frame` into a packet that was created for its size. */
void fy_packet_fill(fy_packet *packet, int rank, fy_lane lane, const fy_frame *frame);

/* The address of a packet's data. */
unsigned char *fy_packet_data(fy_packet *packet);
void fy_packet_destroy(fy_pool *pool, fy_packet *packet);

/* Memory that a packet takes: with small data some of it is empty. */
size_t fy_packet_bytes(const fy_packet *packet);

typedef struct fy_queue {
    fy_packet *head, *tail;
    size_t bytes; /* of the memory that the packets take */
    uint32_t key;
    struct fy_queue *hash_next;
    struct fy_queue *prev, *next; /* among the filled; next is NULL and prev undefined when empty */
} fy_queue;

typedef struct fy_queue_set {
    fy_queue **buckets;
    uint32_t bucket_count; /* power of two, or 0 */
    uint32_t queue_count;
    size_t bytes;           /* in all queues */
    fy_queue *first, *last; /* those with packets */
} fy_queue_set;

void fy_queue_push(fy_queue *queue, fy_packet *packet);

/* Unlinks the packet after `before`, or the head when that is NULL. */
fy_packet *fy_queue_unlink(fy_queue *queue, fy_packet *before);

/* The queue of `key`; NULL when it never had packets. */
fy_queue *fy_queue_find(const fy_queue_set *set, uint32_t key);

/* Appends to the queue of `key`. Returns whether there was memory. If not, the packet still belongs
 * to the caller. */
bool fy_queue_set_push(fy_queue_set *set, uint32_t key, fy_packet *packet);

/* Unlinks as fy_queue_unlink. Removes a queue that is then empty from the list of filled queues. */
fy_packet *fy_queue_set_unlink(fy_queue_set *set, fy_queue *queue, fy_packet *before);

/* Frees all queues and their packets. */
void fy_queue_set_fini(fy_queue_set *set, fy_pool *pool);

#endif
