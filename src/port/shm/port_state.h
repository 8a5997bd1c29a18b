/* A rank's private side of port shm. */
#ifndef FY_SHM_PORT_STATE_H
#define FY_SHM_PORT_STATE_H

#include <pthread.h>

#include "port/shm/layout.h"

/* The producer's end of a ring. It belongs to one thread. */
typedef struct outbox {
    fy_outlet outlet; /* first: `follow` finds the rest there */
    shm_ring *ring;   /* NULL until the first frame */
    shm_rank *target;
    shm_news *news; /* the target's `news` for this lane */
    uint64_t bytes_tail, bytes_head_seen;
    uint64_t copied_tail, copied_head_seen;
} outbox;

/* The consumer's end of a ring. It belongs to the thread that polls its lane. */
typedef struct inbox {
    fy_ring_slot *slots;
    shm_ring *ring;        /* NULL until adopted */
    _Atomic uint64_t head; /* the other thread reads it in `pending` */
    uint64_t publish_at;   /* the head at which the source is told at the latest */
    uint64_t bytes_head, bytes_published;
    uint64_t copied_head, copied_published;
    const _Atomic uint32_t *turn; /* `turn` of the next slot */
    uint32_t idle; /* its value while the slot is empty; or another one, so that the inbox is looked
                      at */
    uint32_t source;
    uint32_t place; /* in `order` */
    uint32_t found; /* the last round in which it had a frame */
    bool overtaken; /* a later frame is there, but the next one is not */
} inbox;

/* The known inboxes of a lane. On the data lane polls look at the first `watched` of `order`: in
 * these a frame was found lately, and their sources' bits in `news` are set. */
typedef struct lane_state {
    uint32_t count, watched;
    uint32_t first; /* among the watched ones: where the next poll begins */
    uint32_t turn;  /* among the others: which one is looked at next */
    int32_t empty;  /* how many more polls may find nothing before the round ends */
    uint32_t round;
    inbox **order;
} lane_state;

/* Blocks that `owner` has found lately, by the spans of the addresses. Each thread has its own. */
enum { MEMO_COUNT = 16 };
typedef struct owner_memo {
    fy_block_memo block;
    const _Atomic uint64_t *arena; /* the word of the block's arena */
} owner_memo;

typedef struct shm_port {
    fy_port port;
    fy_segment *segment;
    uint32_t rank, ranks;
    uint32_t slot_mask, slot_shift;
    uint32_t bytes_max; /* payloads of up to this size go through the byte ring */
    bool fence;         /* on the data lane this process must order its stores itself */
    bool barrier;       /* this rank can order the stores of others before it sleeps */
    bool fenced;        /* it does not, and has set SHM_NEEDS_FENCE: senders order them */
    bool quiet;         /* no rank waits to be told that this rank leaves */
    bool crowded; /* there are more ranks than processors, as the application thread saw last */
    fy_compute compute;
    shm_rank *self;
    _Atomic uint64_t *any[FY_LANES]; /* of this rank's `news` */
    fy_heap *heap;
    uint32_t arena;             /* number of this rank's arena */
    _Atomic uint32_t releasing; /* how many threads are giving a block back to another rank */
    owner_memo memos[FY_THREADS][MEMO_COUNT];
    outbox *out[SHM_CHANNELS];
    inbox *in[SHM_CHANNELS];
    lane_state lanes[FY_LANES];
    /* By source: a bit for each known inbox. A program may overwrite the bits that sources set. */
    _Atomic uint64_t adopted[SHM_CHANNELS][SHM_OPEN_WORDS];
    uint32_t events_seen[FY_THREADS];
    uint32_t impatience;              /* for how many waits to sleep immediately */
    uint32_t impatience_last;         /* for how many it was after the last slow yield */
    uint32_t calm;                    /* how many looks have begun since then */
    uint32_t awake;                   /* how many waits in a row have ended without sleep */
    uint64_t repaired_ns[FY_THREADS]; /* when each thread called fy_shm_repair last */
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
fy_outlet *fy_shm_outlet(fy_port *port, int rank);
void fy_shm_follow(fy_port *port, fy_outlet *outlet);
int fy_shm_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                      const fy_frame *frame);

/* Writes again what this rank has said in shared memory, if it was overwritten: that it has joined,
 * and to targets that it has opened rings. While this rank waits, it is called once a second or
 * more often. */
void fy_shm_repair(const shm_port *p, fy_thread thread);

/* receive.c */
int fy_shm_poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context);
/* Tells the producer how far this rank has read, and wakes it if it waits for that. */
void fy_shm_publish(shm_port *p, inbox *in);
bool fy_shm_pending(fy_port *port, fy_lane lane);
const _Atomic uint64_t *fy_shm_news(fy_port *port, fy_lane lane);
/* As fy_shm_pending for the application thread. It may miss a frame that has just come, and costs
 * as much as a poll. */
bool fy_shm_has_news(const shm_port *p);
/* `news.c` */
/* Whether the next slot is empty. */
static inline bool inbox_is_idle(const inbox *in)
{
    /* relaxed: drain looks again */
    return atomic_load_explicit(in->turn, memory_order_relaxed) == in->idle;
}

/* Notes which word to look at until the next frame. */
static inline void inbox_note_next(const shm_port *p, inbox *in)
{
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    in->turn = &in->slots[head & p->slot_mask].turn;
    in->idle = (uint32_t)(head >> p->slot_shift);
}

/* The inbox of a source, if it has opened its ring; else NULL. */
inbox *fy_shm_inbox(shm_port *p, fy_lane lane, fy_thread thread, uint32_t source);
/* Begins to watch the sources whose bits are new. */
void fy_shm_watch_new(shm_port *p);
/* Ends a round with a poll that found nothing. Returns 0. */
int fy_shm_end_round(shm_port *p);
/* Exchanges two inboxes in `order`. */
void fy_shm_swap(lane_state *lane, uint32_t a, uint32_t b);
/* Called before the thread that polls `lane` sleeps. Looks for frames that fy_shm_pending does not
 * see because shared memory was overwritten. Returns true if the thread must poll. */
bool fy_shm_look_closer(shm_port *p, fy_lane lane);

/* bury.c */
void fy_shm_bury(fy_port *port, int rank);
void fy_shm_free_gone(fy_port *port, int rank);
bool fy_shm_silent(fy_port *port, int rank);

/* Whether all ranks of the job have called bury for it: none reads its memory any more. */
bool fy_shm_all_know(const shm_port *p, uint32_t gone);

/* arenas.c */
/* The part of an arena's word that says which rank has it, 1 + rank, 0 for none. */
#define ARENA_RANK_BITS 16
#define ARENA_RANK_MASK ((UINT64_C(1) << ARENA_RANK_BITS) - 1)

static inline _Atomic uint64_t *arena_word(const fy_segment *s, uint32_t number)
{
    return &rank_at(s->base, number)->arena;
}

/* The rank that owns the arena of this word; -1: none, or the word was overwritten. */
static inline int arena_owner(const fy_segment *s, const _Atomic uint64_t *word)
{
    /* acquire: pairs with the exchange in try_take */
    uint64_t owner = atomic_load_explicit(word, memory_order_acquire) & ARENA_RANK_MASK;
    return owner <= s->ranks ? (int)owner - 1 : -1;
}

/* Takes an arena for this rank. This may take a while. FERRY_EINVAL: the rank has joined before.
 * FERRY_ENOMEM with fy_error_set. */
int fy_shm_arena_take(shm_port *p);
/* Gives the arena back, in which nothing was written. */
void fy_shm_arena_return(const shm_port *p);
/* Cleans up an arena whose owner has gone. Releases the blocks kept there for `keeper`, if that is
 * not 0, and gives pages back as fy_arena_discard does with `address`. Frees the arena when nothing
 * is left. Does nothing if the arena belongs to another rank by now. */
void fy_shm_arena_tend(const shm_port *p, uint32_t number, uint32_t owner, uint32_t keeper,
                       const void *address);
/* Frees arenas of ranks that have gone, if this rank was the last to learn it. */
void fy_shm_arenas_look(const shm_port *p);

/* wait.c */
void fy_shm_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns);
uint64_t fy_shm_await(fy_port *port, uint64_t now_ns, uint64_t deadline_ns, fy_lookout *lookout);
void fy_shm_wake(fy_port *port, fy_thread thread);
void fy_shm_serve(fy_port *port, fy_thread thread);
/* Finds out whether the kernel has membarrier; sets fence and barrier. */
void fy_shm_barrier_probe(shm_port *p);

/* Whether the job has more ranks now than this process has processors. */
bool fy_shm_is_crowded(const fy_segment *segment);

/* why.c */
bool fy_shm_asked(fy_port *port);
void fy_shm_answer(fy_port *port, const char *text, size_t size_bytes);
bool fy_shm_ask(fy_port *port, bool print);

/* heap.c */
void *fy_shm_alloc(fy_port *port, size_t size_bytes, int rank);
int fy_shm_release(fy_port *port, void *address);
int fy_shm_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes);
/* As fy_arena_keep_for. `keeper`: 0 for no rank, else 1 + the rank. */
int fy_shm_keep(const fy_segment *segment, void *address, uint32_t keeper);
int fy_shm_keep_for(fy_port *port, void *address, int rank);
/* The keeper of blocks that are kept for FY_KEEP_ALL: a number above those of ranks. */
enum { KEEPER_ALL = FY_RANKS_MAX + 1 };
/* Size of the live block that starts at `address`, in the arena of any rank; 0: none. */
size_t fy_shm_block_bytes(const fy_segment *segment, const void *address);

#endif
