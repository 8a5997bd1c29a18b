/* The shared heap: an arena for each rank that is there, and whose arena an address is in. */
#include "port/shm/port_state.h"

/* The rank whose arena `address` lies in, or -1; the arena's number. */
static int arena_rank(const fy_segment *s, const void *address, uint32_t *number)
{
    uintptr_t at = (uintptr_t)address, heaps = (uintptr_t)s->base + s->heaps_offset;
    if (at < heaps || at >= (uintptr_t)s->base + s->total_bytes)
        return -1;
    *number = (uint32_t)((at - heaps) / s->heap_stride);
    if (*number >= s->arenas)
        return -1;
    return arena_owner(s, arena_word(s, *number));
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
    uint32_t number;
    int rank = arena_rank(p->segment, address, &number);
    if (rank < 0)
        return FERRY_EINVAL;
    if ((uint32_t)rank == p->rank)
        return fy_heap_release(p->heap, address);
    fy_arena arena = arena_at(p->segment, number);
    /* seq_cst: before the look at the owner; pairs with the look in bury.c's note */
    atomic_fetch_add(&p->releasing, 1);
    bool gone = fy_shm_state(p->segment, (uint32_t)rank) >= SHM_LEFT;
    int error = gone ? fy_arena_release_gone(&arena, address) : fy_arena_release(&arena, address);
    atomic_fetch_sub_explicit(&p->releasing, 1, memory_order_release);
    if (gone && error == 0)
        fy_shm_arena_tend(p, number, (uint32_t)rank, 0, address);
    return error;
}

static __attribute__((noinline)) int find_owner(shm_port *p, const void *address, size_t size_bytes,
                                                owner_memo *memo)
{
    uint32_t number;
    int rank = arena_rank(p->segment, address, &number);
    if (rank < 0)
        return -1;
    fy_arena arena = arena_at(p->segment, number);
    /* An empty range may begin at the end of a block, where no other need begin. */
    if (!fy_arena_find(&arena, address, &memo->block) &&
        (size_bytes != 0 || !fy_arena_find(&arena, (const char *)address - 1, &memo->block)))
        return -1;
    memo->arena = arena_word(p->segment, number);
    size_t at = (uintptr_t)address - memo->block.start;
    bool inside = at <= memo->block.size_bytes && size_bytes <= memo->block.size_bytes - at;
    return inside ? rank : -1;
}

int fy_shm_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    shm_port *p = state_of(port);
    owner_memo *memo = &p->memos[thread][(uintptr_t)address / FY_HEAP_SPAN_BYTES % MEMO_COUNT];
    if (fy_memo_holds(&memo->block, address, size_bytes))
        return arena_owner(p->segment, memo->arena);
    return find_owner(p, address, size_bytes, memo);
}

int fy_shm_keep(const fy_segment *segment, void *address, uint32_t keeper)
{
    uint32_t number;
    if (arena_rank(segment, address, &number) < 0)
        return FERRY_EINVAL;
    fy_arena arena = arena_at(segment, number);
    return fy_arena_keep_for(&arena, address, keeper);
}

int fy_shm_keep_for(fy_port *port, void *address, int rank)
{
    return fy_shm_keep(state_of(port)->segment, address, keeper_of(rank));
}

size_t fy_shm_block_bytes(const fy_segment *segment, const void *address)
{
    uint32_t number;
    if (arena_rank(segment, address, &number) < 0)
        return 0;
    fy_arena arena = arena_at(segment, number);
    return fy_arena_block_bytes(&arena, address);
}
