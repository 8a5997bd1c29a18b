/* The owners of arenas. There is one arena for each number, or fewer if the requested size leaves
 * no room for so many. Then a rank that joins takes an arena whose owner has gone and in which no
 * block lives.
 *
 * An arena has a word. It says the owner, the rank that *tends* (cleans up) the arena, and how
 * often that rank was asked to look again. Nothing is allocated in an arena whose owner has gone,
 * so an empty one stays empty. It is free when its owner has gone, all ranks of the job know that
 * (bury.c), and its pages were given back. The rank that tends it finds that out. By then no rank
 * is about to store anything there for the old owner:
 *
 * - A rank that gives a block back to an owner that it takes for alive has not heard of the death
 *   yet, so not all ranks know.
 * - A rank that gives a block back after it has heard has one store to do. Before that store the
 *   block is not free.
 * - All work of several steps is done by the rank that tends the arena.
 *
 * Other ranks that find one tending ask it to look again, and go on: it may be stopped. If a rank
 * dies while it tends, another follows, at the latest the one that hears of this death. The word
 * names the owner for which it is, and numbers are not used again. So a late step changes nothing.
 *
 * A rank takes the arena of its own number if there is one. So addresses are used for another rank
 * only if they must be. */
#include "port/shm/port_state.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"

/* In an arena's word, above its owner: the rank that tends it, 1 + rank, 0: none; requests; their
 * number. */
#define ASKED_PLAIN (UINT64_C(1) << 32) /* to release also what is kept for all */
#define ASKED_ONCE (UINT64_C(1) << 40)

enum {
    TURNS = 200, /* how long to wait for the rank that tends it */
    PATIENCE_MS =
        10000,     /* how long a rank waits for a free arena: the others may not have looked */
    TELL_MS = 100, /* how often it makes the others look at arenas of ranks that have gone */
};

static uint32_t tender_of(uint64_t word)
{
    return (uint32_t)(word >> ARENA_RANK_BITS & ARENA_RANK_MASK);
}

static uint64_t word_make(uint32_t owner, uint32_t tender)
{
    return (uint64_t)(owner + 1) | (uint64_t)tender << ARENA_RANK_BITS;
}

/* Takes a free arena. Ranks that the job begins with own theirs before they open the port. */
static bool try_take(shm_port *p)
{
    const fy_segment *s = p->segment;
    uint32_t count = p->rank < s->starting ? 1 : s->arenas;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (p->rank + i) % s->arenas;
        uint64_t nobody = 0;
        if (number < s->starting && number != p->rank && fy_shm_state(s, number) == SHM_ABSENT)
            continue;
        /* acquire: pairs with the release in fy_shm_arena_tend: the pages are fresh */
        if (atomic_compare_exchange_strong_explicit(arena_word(s, number), &nobody,
                                                    word_make(p->rank, 0), memory_order_acquire,
                                                    memory_order_relaxed)) {
            p->arena = number;
            return true;
        }
    }
    return false;
}

int fy_shm_arena_take(shm_port *p)
{
    const fy_segment *s = p->segment;
    if (fy_shm_state(s, p->rank) != SHM_ABSENT)
        return FERRY_EINVAL;
    for (int ms = 0; !try_take(p); ms++) {
        if (p->rank < s->starting)
            return FERRY_EINVAL;
        if (ms == PATIENCE_MS)
            return fy_error_set(
                FERRY_ENOMEM,
                "rank %u: the %u heaps of %zu MiB belong to ranks that are there, or have gone and "
                "left what others hold (ferry_memory_reclaim); try a smaller FERRY_HEAP_BYTES",
                p->rank, s->arenas, s->heap_bytes >> 20);
        if (ms % TELL_MS == 0)
            fy_controls_tell(s->base, s->ranks);
        fy_clock_sleep_until(fy_clock_now_ns() + 1000000);
    }
    return 0;
}

void fy_shm_arena_return(const shm_port *p)
{
    uint64_t own = word_make(p->rank, 0);
    /* relaxed: nothing was written there. If other ranks take this one for dead and tend the arena,
     * they free it. */
    atomic_compare_exchange_strong_explicit(arena_word(p->segment, p->arena), &own, 0,
                                            memory_order_relaxed, memory_order_relaxed);
}

/* Begins to tend an arena of `owner`. Returns whether this rank does; `*word` is the new word. */
static bool claim(const shm_port *p, uint32_t number, uint32_t owner, bool plain, uint64_t *word)
{
    _Atomic uint64_t *at = arena_word(p->segment, number);
    uint64_t old = atomic_load_explicit(at, memory_order_relaxed), asked = plain ? ASKED_PLAIN : 0;
    for (int turn = 0; (old & ARENA_RANK_MASK) == owner + 1;) {
        uint32_t tender = tender_of(old);
        bool busy = tender != 0 && fy_shm_state(p->segment, tender - 1) < SHM_LEFT;
        if (busy && turn++ < TURNS) {
            fy_yield();
            old = atomic_load_explicit(at, memory_order_relaxed);
            continue;
        }
        *word = busy ? (old | asked) + ASKED_ONCE
                     : (old & ~(ARENA_RANK_MASK << ARENA_RANK_BITS)) |
                           word_make(owner, p->rank + 1) | asked;
        /* acquire, release: after the rank that tended it before, and after this rank's releases */
        if (atomic_compare_exchange_weak_explicit(at, &old, *word, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return !busy;
    }
    return false;
}

/* Releases all blocks kept for ranks that have gone, if all ranks know that. */
static void release_kept(const shm_port *p, const fy_arena *arena)
{
    for (uint32_t rank = 0; rank < p->segment->ranks; rank++)
        if (fy_shm_state(p->segment, rank) >= SHM_LEFT && fy_shm_all_know(p, rank))
            fy_arena_release_kept(arena, rank + 1);
}

void fy_shm_arena_tend(const shm_port *p, uint32_t number, uint32_t owner, uint32_t keeper,
                       const void *address)
{
    uint64_t word, next;
    if (!claim(p, number, owner, keeper == KEEPER_ALL, &word))
        return;
    fy_arena arena = arena_at(p->segment, number);
    if (keeper != 0)
        fy_arena_release_kept(&arena, keeper);
    do {
        if (word >= ASKED_PLAIN) { /* other ranks asked, and their keeper is not known */
            address = NULL;
            release_kept(p, &arena);
            if (word & ASKED_PLAIN)
                fy_arena_release_kept(&arena, KEEPER_ALL);
        }
        /* This comes first: a rank that has not heard of the death may still write to pages that
         * are given back. */
        bool known = fy_shm_all_know(p, owner);
        next = fy_arena_discard(&arena, address) && known ? 0 : word_make(owner, 0);
        /* release: pairs with the acquires in claim and try_take; acquire: with who asks */
    } while (!atomic_compare_exchange_strong_explicit(arena_word(p->segment, number), &word, next,
                                                      memory_order_acq_rel, memory_order_acquire));
}

void fy_shm_arenas_look(const shm_port *p)
{
    for (uint32_t number = 0; number < p->segment->arenas; number++) {
        int owner = arena_owner(p->segment, arena_word(p->segment, number));
        fy_arena arena = arena_at(p->segment, number);
        if (owner >= 0 && fy_shm_state(p->segment, (uint32_t)owner) >= SHM_LEFT &&
            fy_shm_all_know(p, (uint32_t)owner) && fy_arena_is_empty(&arena))
            fy_shm_arena_tend(p, number, (uint32_t)owner, 0, NULL);
    }
}
