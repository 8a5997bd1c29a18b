/* Channels: room, copies of frames, and the queues of what has arrived.
 *
 * A channel is made when its pair of ranks first communicates, so memory goes with these pairs. Its
 * ring is counted at the sender: a frame takes room when it is sent and gives it back when the
 * receiver takes it, however often it was lost on the way. */
#include <stdlib.h>
#include <string.h>

#include "port/sim/world.h"

/* Data beside the ring that may be in flight on one channel, unless it is a single frame's. */
enum { BIG_BYTES_MAX = 16 << 20 };

static const size_t pool_bytes[FY_CARGO_POOLS] = {64, 512, 4096};

size_t fy_sim_inline_bytes(const fy_world *world)
{
    size_t bytes = world->options.ring_bytes / 4;
    return bytes < pool_bytes[FY_CARGO_POOLS - 1] ? bytes : pool_bytes[FY_CARGO_POOLS - 1];
}

fy_channel *fy_channel_get(fy_sim_rank *source, int target, fy_lane lane, fy_thread thread)
{
    fy_world *world = source->world;
    uint64_t key = (uint64_t)source->rank * (uint64_t)world->rank_count + (uint64_t)target;
    key = (key * FY_LANES + lane) * FY_THREADS + thread + 1;
    struct slot {
        uint64_t key;
        fy_channel *channel;
    } *slot = fy_table_find(&world->channels, key);
    if (slot != NULL)
        return slot->channel;
    fy_channel *channel = fy_pool_get(&world->channel_pool);
    void *place;
    if (channel == NULL)
        return NULL;
    if (fy_table_insert(&world->channels, key, &place) != 0) {
        fy_pool_put(&world->channel_pool, channel);
        return NULL;
    }
    slot = place;
    slot->channel = channel;
    *channel = (fy_channel){.timer = {.kind = FY_EVENT_TIMER},
                            .source = source,
                            .target = &world->ranks[target],
                            .lane = (uint8_t)lane,
                            .thread = (uint8_t)thread};
    fy_net_link(&world->net, source->rank, target, &channel->link);
    return channel;
}

bool fy_channel_has_room(const fy_channel *channel, size_t size_bytes, bool block)
{
    const fy_sim_options *options = &channel->source->world->options;
    if (channel->ring_frames >= options->ring_slots)
        return false;
    if (block)
        return true;
    if (size_bytes > fy_sim_inline_bytes(channel->source->world))
        return channel->big_bytes == 0 || channel->big_bytes + size_bytes <= BIG_BYTES_MAX;
    return channel->ring_bytes + size_bytes <= options->ring_bytes;
}

/* The account that data of this size are on. */
static uint64_t *channel_bytes(fy_channel *channel, size_t size_bytes)
{
    bool big = size_bytes > fy_sim_inline_bytes(channel->source->world);
    return big ? &channel->big_bytes : &channel->ring_bytes;
}

static fy_cargo *cargo_create(fy_world *world, size_t size_bytes)
{
    uint8_t pool = 0;
    while (pool < FY_CARGO_POOLS && size_bytes > pool_bytes[pool])
        pool++;
    fy_cargo *cargo = pool < FY_CARGO_POOLS ? fy_pool_get(&world->cargo_pools[pool])
                                            : malloc(sizeof(*cargo) + size_bytes);
    if (cargo != NULL)
        *cargo = (fy_cargo){.pool = pool, .refs = 1};
    return cargo;
}

void fy_cargo_release(fy_world *world, fy_cargo *cargo)
{
    if (--cargo->refs > 0)
        return;
    if (cargo->block != NULL) {
        int rank;
        size_t size_bytes;
        if (fy_blocks_release(&world->blocks, cargo->block, &rank, &size_bytes) == 0)
            world->ranks[rank].heap_used -= size_bytes;
    }
    if (cargo->pool < FY_CARGO_POOLS)
        fy_pool_put(&world->cargo_pools[cargo->pool], cargo);
    else
        free(cargo);
}

/* Data too big for the ring travel as a block where memory is shared, so that the receiver may keep
 * them. */
static fy_cargo *cargo_fill(fy_channel *channel, const fy_frame *frame, bool block)
{
    fy_world *world = channel->source->world;
    bool copied = !block && frame->size_bytes > 0;
    bool as_block = copied && world->net.shared && frame->size_bytes > fy_sim_inline_bytes(world);
    void *room = NULL;
    if (as_block) {
        room = channel->source->port.ops->heap.alloc(&channel->source->port, frame->size_bytes, -1);
        if (room == NULL)
            return NULL;
    }
    fy_cargo *cargo = cargo_create(world, copied && !as_block ? frame->size_bytes : 0);
    if (cargo == NULL) {
        if (as_block)
            channel->source->port.ops->heap.release(&channel->source->port, room);
        return NULL;
    }
    cargo->frame = *frame;
    cargo->frame.block = block || as_block;
    cargo->block = as_block ? room : block ? (void *)(uintptr_t)frame->data : NULL;
    cargo->counted = !block;
    if (copied) {
        void *data = as_block ? room : (void *)(cargo + 1);
        memcpy(data, frame->data, frame->size_bytes);
        cargo->frame.data = data;
    } else if (!block) {
        cargo->frame.data = NULL;
    }
    return cargo;
}

int fy_channel_send(fy_channel *channel, const fy_actor *actor, const fy_frame *frame, bool block)
{
    fy_world *world = channel->source->world;
    fy_cargo *cargo = cargo_fill(channel, frame, block);
    if (cargo == NULL)
        return FERRY_ENOMEM;
    cargo->number = channel->next_number++;
    channel->ring_frames++;
    if (cargo->counted)
        *channel_bytes(channel, frame->size_bytes) += frame->size_bytes;
    channel->source->undelivered++;
    channel->target->incoming++;
    cargo->side = world->side;
    world->in_flight[cargo->side]++;
    world->counts.frames++;
    world->counts.bytes += frame->size_bytes;
    fy_world_note(world, actor->clock_ns);
    fy_world_note(world, (uint64_t)channel->source->rank << 32 | (uint32_t)channel->target->rank);
    fy_world_note(world, (uint64_t)frame->handler << 32 | (uint64_t)frame->kind << 16 |
                             (uint64_t)channel->lane << 1 | channel->thread);
    fy_world_note(world, frame->size_bytes);
    fy_wire_send(channel, cargo, actor->clock_ns);
    return 0;
}

void fy_channel_list(fy_channel *channel)
{
    fy_inbox *inbox = &channel->target->inbox[channel->lane];
    channel->listed = true;
    channel->inbox_next = NULL;
    if (inbox->first == NULL)
        inbox->first = channel;
    else
        inbox->last->inbox_next = channel;
    inbox->last = channel;
}

void fy_channel_taken(fy_channel *channel, bool keep)
{
    fy_world *world = channel->source->world;
    fy_cargo *cargo = channel->arrived.first;
    channel->arrived.first = cargo->next;
    channel->ring_frames--;
    if (cargo->counted)
        *channel_bytes(channel, cargo->frame.size_bytes) -= cargo->frame.size_bytes;
    if (keep)
        cargo->block = NULL;
    fy_cargo_release(world, cargo);
    /* Waves of a quiescence, and idle ranks that ask for work, may go on forever. */
    if (channel->lane == FY_DATA)
        fy_world_progress(world);
}
