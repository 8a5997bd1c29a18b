/* The shared heap: one arena per rank, and whose arena an address is in. */
#include "port/shm/port_state.h"

/* The rank whose arena `address` lies in, or -1. */
static int arena_rank(const fy_segment *s, const void *address)
{
    uintptr_t at = (uintptr_t)address, heaps = (uintptr_t)s->base + s->heaps_offset;
    if (at < heaps || at >= (uintptr_t)s->base + s->total_bytes)
        return -1;
    return (int)((at - heaps) / s->heap_stride);
}

static uint32_t keeper_of(int rank)
{
    return rank == FY_KEEP_ALL ? KEEPER_ALL : (uint32_t)(rank + 1);
}

void *fy_shm_alloc(fy_port *port, size_t size_bytes, int rank)
{
    return fy_heap_alloc(state_of(port)->heap, size_bytes, keeper_of(rank));
}

int fy_shm_release(fy_port *port, void *address)
{
    shm_port *p = state_of(port);
    int rank = arena_rank(p->segment, address);
    if (rank < 0)
        return FERRY_EINVAL;
    if ((uint32_t)rank == p->rank)
        return fy_heap_release(p->heap, address);
    fy_arena arena = arena_at(p->segment, (uint32_t)rank);
    int error = fy_arena_release(&arena, address);
    if (error == 0 && p->port.ops->peer(port, rank) != FY_PEER_ALIVE)
        fy_arena_discard(&arena, address); /* its owner takes nothing back any more */
    return error;
}

static __attribute__((noinline)) int find_owner(shm_port *p, const void *address, size_t size_bytes,
                                                owner_memo *memo)
{
    int rank = arena_rank(p->segment, address);
    if (rank < 0)
        return -1;
    fy_arena arena = arena_at(p->segment, (uint32_t)rank);
    if (!fy_arena_find(&arena, address, &memo->block))
        return -1;
    memo->rank = rank;
    size_t at = (uintptr_t)address - memo->block.start;
    bool inside = at < memo->block.size_bytes && size_bytes <= memo->block.size_bytes - at;
    return inside ? rank : -1;
}

int fy_shm_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    shm_port *p = state_of(port);
    owner_memo *memo = &p->memos[thread][(uintptr_t)address / FY_HEAP_SPAN_BYTES % MEMO_COUNT];
    if (fy_memo_holds(&memo->block, address, size_bytes))
        return memo->rank;
    return find_owner(p, address, size_bytes, memo);
}

int fy_shm_keep(const fy_segment *segment, void *address, uint32_t keeper)
{
    int rank = arena_rank(segment, address);
    if (rank < 0)
        return FERRY_EINVAL;
    fy_arena arena = arena_at(segment, (uint32_t)rank);
    return fy_arena_keep_for(&arena, address, keeper);
}

int fy_shm_keep_for(fy_port *port, void *address, int rank)
{
    return fy_shm_keep(state_of(port)->segment, address, keeper_of(rank));
}

size_t fy_shm_block_bytes(const fy_segment *segment, const void *address)
{
    int rank = arena_rank(segment, address);
    if (rank < 0)
        return 0;
    fy_arena arena = arena_at(segment, (uint32_t)rank);
    return fy_arena_block_bytes(&arena, address);
}
