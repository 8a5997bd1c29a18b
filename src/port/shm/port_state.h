/* A rank's private side of port shm. */
#ifndef FY_SHM_PORT_STATE_H
#define FY_SHM_PORT_STATE_H

#include <pthread.h>

#include "port/shm/layout.h"

/* The producer's end of a ring. One thread's. */
typedef struct outbox {
    shm_ring *ring; /* NULL until the first frame */
    shm_slot *slots;
    shm_rank *target;
    shm_news *news;                /* the target's, of this lane */
    const _Atomic uint64_t *noted; /* the word of it with this rank's bit */
    bool plain;                    /* open, on the data lane, and stores need no fence */
    uint64_t tail, head_seen;
    uint64_t bytes_tail, bytes_head_seen;
    uint64_t copied_tail, copied_head_seen;
} outbox;

/* The consumer's end of a ring. That of whoever polls its lane. */
typedef struct inbox {
    shm_slot *slots;
    shm_ring *ring;        /* NULL until adopted */
    _Atomic uint64_t head; /* the other thread reads it in `pending` */
    uint64_t publish_at;   /* the head of which the source is told, at the latest */
    uint64_t bytes_head, bytes_published;
    uint64_t copied_head, copied_published;
    const _Atomic uint32_t *turn; /* of the next slot */
    uint32_t idle; /* what it is as this rank has left it; or it is to be looked at */
    uint32_t source;
    uint32_t place; /* in `order` */
    uint32_t found; /* the round in which it had a frame last */
    bool overtaken; /* a frame that came after the next one is there, and the next one is not */
} inbox;

/* The inboxes that are known. On the data lane the first `watched` of `order` are those where
 * frames were found lately: their sources' bits in `news` are set, and polls look at them. */
typedef struct lane_state {
    uint32_t count, watched;
    uint32_t first; /* of the watched: where the next poll begins */
    uint32_t turn;  /* of the others: which one is looked at next */
    int32_t empty;  /* polls that may find nothing before the round ends */
    uint32_t round;
    inbox **order;
} lane_state;

/* Blocks that `owner` found lately, by the spans of the addresses asked about: each thread
 * has its own. */
enum { MEMO_COUNT = 16 };
typedef struct owner_memo {
    fy_block_memo block;
    const _Atomic uint64_t *arena; /* the word of the arena that it is in */
} owner_memo;

typedef struct shm_port {
    fy_port port;
    fy_segment *segment;
    uint32_t rank, ranks;
    uint32_t slot_mask, slot_shift;
    uint32_t bytes_max; /* payloads up to here go through the byte ring */
    bool fence;         /* this process's stores must be ordered by itself on the data lane */
    bool barrier;       /* this rank can order the stores of others before it sleeps */
    bool fenced;        /* it does not, and has them do it: SHM_NEEDS_FENCE */
    bool quiet;         /* nobody waits to hear that this rank leaves */
    bool crowded; /* more ranks are there than processors, as the application thread saw last */
    fy_compute compute;
    shm_rank *self;
    _Atomic uint64_t *any[FY_LANES]; /* of this rank's `news` */
    fy_heap *heap;
    uint32_t arena;             /* its number */
    _Atomic uint32_t releasing; /* threads that give a block back to another rank */
    owner_memo memos[FY_THREADS][MEMO_COUNT];
    outbox *out[SHM_CHANNELS];
    inbox *in[SHM_CHANNELS];
    lane_state lanes[FY_LANES];
    /* By source: a bit for each inbox. The bits that sources set may be overwritten. */
    _Atomic uint64_t adopted[SHM_CHANNELS][SHM_OPEN_WORDS];
    uint32_t events_seen[FY_THREADS];
    uint32_t impatience;              /* decisions for which to sleep at once */
    uint32_t awake;                   /* waits in a row that ended without sleep */
    uint64_t repaired_ns[FY_THREADS]; /* when each thread did fy_shm_repair last */
    pthread_t helper;
    void (*helper_entry)(void *arg);
    void *helper_arg;
} shm_port;

static inline shm_port *state_of(fy_port *port)
{
    return (shm_port *)(void *)port;
}

/* send.c */
int fy_shm_send(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame);
int fy_shm_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                      const fy_frame *frame);

/* Writes again what this rank says of itself, where that was overwritten: that it is there, and to
 * targets that it has opened rings. A second passes at most without it while this rank waits. */
void fy_shm_repair(const shm_port *p, fy_thread thread);

/* receive.c */
int fy_shm_poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context);
/* Tells the producer how far this rank is, and wakes it when it waits for that. */
void fy_shm_publish(shm_port *p, inbox *in);
bool fy_shm_pending(fy_port *port, fy_lane lane);
const _Atomic uint64_t *fy_shm_news(fy_port *port, fy_lane lane);
/* As fy_shm_pending, of the application thread, where a frame that has just come may be missed: it
 * costs as much as a poll. */
bool fy_shm_has_news(const shm_port *p);
/* `news.c` */
/* The next slot is as this rank has left it. */
static inline bool inbox_is_idle(const inbox *in)
{
    /* relaxed: drain looks again */
    return atomic_load_explicit(in->turn, memory_order_relaxed) == in->idle;
}

/* Says what to look at until the next frame. */
static inline void inbox_note_next(const shm_port *p, inbox *in)
{
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    in->turn = &in->slots[head & p->slot_mask].turn;
    in->idle = (uint32_t)(head >> p->slot_shift);
}

/* The inbox of a source that has opened its ring, if it has; else NULL. */
inbox *fy_shm_inbox(shm_port *p, fy_lane lane, fy_thread thread, uint32_t source);
/* Watches the sources whose bits are new. */
void fy_shm_watch_new(shm_port *p);
/* Ends a round of polls that found nothing, as the last of them: returns 0. */
int fy_shm_end_round(shm_port *p);
/* Two inboxes change places in `order`. */
void fy_shm_swap(lane_state *lane, uint32_t a, uint32_t b);
/* Before the poller of `lane` sleeps: looks for what shared memory that was overwritten hides from
 * fy_shm_pending. True: it shall poll. */
bool fy_shm_look_closer(shm_port *p, fy_lane lane);

/* bury.c */
void fy_shm_bury(fy_port *port, int rank);
void fy_shm_free_gone(fy_port *port, int rank);
bool fy_shm_silent(fy_port *port, int rank);

/* Whether all ranks that are there have buried it: none reads from its memory any more. */
bool fy_shm_all_know(const shm_port *p, uint32_t gone);

/* arenas.c */
/* The part of an arena's word that says which rank has it, 1 + rank, 0 for none. */
#define ARENA_RANK_BITS 16
#define ARENA_RANK_MASK ((UINT64_C(1) << ARENA_RANK_BITS) - 1)

static inline _Atomic uint64_t *arena_word(const fy_segment *s, uint32_t number)
{
    return &rank_at(s->base, number)->arena;
}

/* The rank that a word names; -1: none, or the word was overwritten. */
static inline int arena_owner(const fy_segment *s, const _Atomic uint64_t *word)
{
    /* acquire: pairs with the exchange in try_take */
    uint64_t owner = atomic_load_explicit(word, memory_order_acquire) & ARENA_RANK_MASK;
    return owner <= s->ranks ? (int)owner - 1 : -1;
}

/* Finds one for this rank, which may take a while. FERRY_EINVAL: the rank has joined before.
 * FERRY_ENOMEM with fy_error_set. */
int fy_shm_arena_take(shm_port *p);
/* Gives it back untouched. */
void fy_shm_arena_return(const shm_port *p);
/* The owner has gone. Releases what is kept there for `keeper`, if not 0, gives pages back as
 * fy_arena_discard does with `address`, and frees the arena when all is over; nothing when it is
 * another rank's by now. */
void fy_shm_arena_tend(const shm_port *p, uint32_t number, uint32_t owner, uint32_t keeper,
                       const void *address);
/* Frees arenas of ranks that have gone, of which this one has been the last to know. */
void fy_shm_arenas_look(const shm_port *p);

/* wait.c */
void fy_shm_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns);
void fy_shm_wake(fy_port *port, fy_thread thread);
void fy_shm_serve(fy_port *port, fy_thread thread);
/* Finds out what the kernel offers; sets fence and barrier. */
void fy_shm_barrier_probe(shm_port *p);

/* Whether more ranks are there now than this process has processors. */
bool fy_shm_is_crowded(const fy_segment *segment);

/* why.c */
bool fy_shm_asked(fy_port *port);
void fy_shm_answer(fy_port *port, const char *text, size_t size_bytes);
bool fy_shm_ask(fy_port *port, bool print);

/* heap.c */
void *fy_shm_alloc(fy_port *port, size_t size_bytes, int rank);
int fy_shm_release(fy_port *port, void *address);
int fy_shm_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes);
/* 0: for nobody, else 1 + the rank. As fy_arena_keep_for. */
int fy_shm_keep(const fy_segment *segment, void *address, uint32_t keeper);
int fy_shm_keep_for(fy_port *port, void *address, int rank);
/* The keeper of blocks that are kept for FY_KEEP_ALL: above those for ranks. */
enum { KEEPER_ALL = FY_RANKS_MAX + 1 };
/* Size of the live block that starts at `address`, on any rank; 0 for none. */
size_t fy_shm_block_bytes(const fy_segment *segment, const void *address);

#endif
