/* Outlet: the source's end of a ring of slots in memory that the target sees too. A port that has
 * such rings shows their ends to its client, which writes most requests into them itself, without a
 * call. All else goes by `send`, through the same outlet.
 *
 * A frame is written into the next slot, and published by the slot's turn. The outlet belongs to
 * the thread that sends, and stays until the port is closed. One that is all 0 has no room. */
#ifndef FY_OUTLET_H
#define FY_OUTLET_H

#include <stdatomic.h>

#include "port/port.h"

/* A frame in a ring: one cache line. It is full when `turn` is the number of its lap, from 1. */
typedef struct fy_ring_slot {
    _Atomic uint32_t turn;
    uint32_t position; /* bytes: running count, modulo 2^32; block: its number, low bits */
    uint32_t op;
    uint32_t aux;
    uint16_t handler;
    uint8_t count_place; /* word_count | where the payload is << 4; 0: nowhere */
    uint8_t kind;
    int32_t tag;
    uint64_t words[FY_FRAME_WORDS];
    uint64_t size; /* low 48 bits; above them the block position's high bits */
} fy_ring_slot;

_Static_assert(sizeof(fy_ring_slot) == 64, "a request is one cache line");

struct fy_outlet {
    fy_ring_slot *slots;
    uint64_t tail, limit; /* the next slot's number, and the one that is not free yet */
    uint32_t slot_mask, slot_shift;
    /* The target's words: its state, and whether its application thread sleeps. `joined` is the
     * state in which it takes frames, and orders the stores of others before it sleeps. No state if
     * this side has to order them. */
    const _Atomic uint32_t *target;
    uint32_t joined;
    uint64_t own_bit;              /* of this rank, in */
    const _Atomic uint64_t *noted; /* the sources that the target knows to have sent */
};

/* Whether a frame may be written. */
static inline bool fy_outlet_is_ready(const fy_outlet *o)
{
    /* relaxed: a send that just misses a death is like one just before it */
    return o->tail != o->limit &&
           atomic_load_explicit(&o->target[0], memory_order_relaxed) == o->joined;
}

static inline fy_ring_slot *fy_outlet_next(const fy_outlet *o)
{
    return &o->slots[o->tail & o->slot_mask];
}

/* Asks for the line of a slot that is written soon, two ahead: the next one is what the consumer
 * looks at. While the two are far apart a stream is a fifth faster so. */
static inline void fy_outlet_claim(const fy_outlet *o)
{
    const fy_ring_slot *slot = &o->slots[(o->tail + 2) & o->slot_mask];
#if defined(__x86_64__)
    /* The compiler's own would ask for a line to read, which then has to be asked for again. */
    __asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
    __builtin_prefetch(slot, 1);
#endif
}

static inline bool fy_outlet_is_noted(const fy_outlet *o, memory_order order)
{
    return atomic_load_explicit(o->noted, order) & o->own_bit;
}

/* Moves on to the next slot. Returns the turn of the one that was filled. */
static inline uint32_t fy_outlet_advance(fy_outlet *o)
{
    uint32_t turn = (uint32_t)(o->tail >> o->slot_shift) + 1;
    o->tail++;
    fy_outlet_claim(o);
    return turn;
}

/* Publishes the slot that was filled. True: there is rare work to do (fy_transport_ops.follow). */
static inline bool fy_outlet_publish(fy_outlet *o, fy_ring_slot *slot)
{
    uint32_t turn = fy_outlet_advance(o);
    /* release: pairs with the acquire of who takes the slot */
    atomic_store_explicit(&slot->turn, turn, memory_order_release);
    /* The store of the turn must not be passed by the look at whether the target sleeps. The target
     * orders our stores before it sleeps, so only the compiler is held back. */
    atomic_signal_fence(memory_order_seq_cst);
    /* seq_cst, then relaxed: a bit that is just being taken away is seen late, which the target
     * allows for */
    return atomic_load(&o->target[1]) != 0 ||
           atomic_load_explicit(&o->target[0], memory_order_relaxed) != o->joined ||
           !fy_outlet_is_noted(o, memory_order_relaxed);
}

#endif
