/* The inside of a segment: a header, one control block per rank, rings, one board per rank, and
 * arenas. Each rank of the job has one arena (arenas.c).
 *
 * Memory is committed only when it is written: no rank reads a ring before its source has opened
 * it. Numbers that steer a process are read from the header once, when it maps the segment. They
 * are checked and kept in its private fy_segment. */
#ifndef FY_SHM_LAYOUT_H
#define FY_SHM_LAYOUT_H

#include <stdatomic.h>

#include "base/heap.h"
#include "base/shared.h"
#include "port/outlet.h"
#include "port/shm/shm.h"

#define SHM_MAGIC 0x31676573797272fau
#define SHM_VERSION 11
#define SHM_HANDLERS_MAX 1024
#define SHM_NAME_BYTES 32
#define SHM_CHANNELS (FY_THREADS * FY_LANES)
#define SHM_OPEN_WORDS (FY_RANKS_MAX / 64)

/* The state of a rank's place. */
typedef enum shm_state { SHM_ABSENT, SHM_JOINED, SHM_LEFT, SHM_DEAD } shm_state;

/* In `state`, besides the shm_state: this rank does not order the stores of senders when it goes to
 * sleep, because it cannot, or because it sleeps often. So senders order their stores
 * themselves. */
#define SHM_NEEDS_FENCE 0x100u
/* In `state`: this is the place of a rank of another node, filled by a relay (port/nodes/relay.c),
 * or the relay's own place. Set before any rank joins. */
#define SHM_FAR 0x200u
#define SHM_STATE_MASK 0xffu
/* The high bits of `state` if this rank takes nothing more from others, and of `events` if those
 * who come have to say so there. Many bits: a program may overwrite both words. */
#define SHM_SHUT 0xa5bu
#define SHM_SHUT_SHIFT 20

typedef struct shm_header {
    uint64_t magic;
    uint32_t version;
    uint32_t ranks;    /* how many places there are, also for ranks that may join later */
    uint64_t nonce[2]; /* differs from job to job */
    uint64_t address;  /* the address at which every process maps the segment */
    uint64_t total_bytes;
    uint64_t heap_bytes;
    uint32_t ring_slots;
    uint32_t ring_bytes;
    uint32_t starting; /* the job begins with the ranks below this number */
    uint32_t arenas;
} shm_header;

/* The part after the header, which all ranks write. */
typedef struct shm_common {
    /* How many numbers were given to ranks besides those the job began with. */
    _Atomic uint32_t spawned;
    /* If the job has several nodes: the end of this node's numbers, and the relay's place. Written
     * before any rank joins; else 0. */
    uint32_t spawned_max, relay;
} shm_common;
#define SHM_COMMON_OFFSET 1024

/* A rank's control block. It is divided into cache lines by who writes them and how often. */
typedef struct shm_rank {
    /* Read by every sender to this rank. */
    _Alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t app_asleep; /* futex: 1 while the application thread sleeps or is about to;
                                    behind `state`, as an outlet has it */

    /* Read by senders on the control lane. */
    _Alignas(64) _Atomic uint32_t serve; /* fy_thread */
    _Atomic uint32_t helper_asleep;      /* as app_asleep */

    /* Written by sources at their first frame: a bit per source. */
    _Alignas(64) _Atomic uint64_t open[SHM_CHANNELS][SHM_OPEN_WORDS];

    /* By lane: the words that a poll reads instead of the rings (receive.c). */
    struct shm_news {
        _Alignas(64) _Atomic uint64_t any; /* a bit for each word of `from` with a new bit */
        /* A bit for each source that has sent since the poll looked. */
        _Atomic uint64_t from[SHM_OPEN_WORDS];
    } news[FY_LANES];

    /* Written by ranks and by the launcher: they tell this rank of changes, or wake it. */
    _Alignas(64) _Atomic uint32_t events; /* changes of peers' states */
    _Atomic uint32_t signal[FY_THREADS];  /* wake was called */

    /* Written when this rank has gone: a bit for each rank that knows, and whether its memory was
     * given back. */
    _Alignas(64) _Atomic uint64_t buried[SHM_OPEN_WORDS];
    _Atomic uint32_t reclaimed;

    /* The word of the arena with this number, whichever rank owns the arena (arenas.c). */
    _Alignas(64) _Atomic uint64_t arena;

    /* Written by this rank, read by the launcher. */
    _Alignas(64) fy_doing_note note;
    _Atomic int32_t pid;
    _Atomic uint32_t endures; /* this rank goes on when others die */
    _Atomic uint32_t outcome; /* 1 + its status of wait(2); 0: not known. Written by the process
                                 that watches it, before it is marked dead */
    _Atomic uint32_t aborts;  /* 1 + the exit status with which this rank ends the job; else 0 */
    _Atomic uint32_t fails;   /* 1 + the exit status with which it will end by itself; else 0 */
    /* If the job has several segments: its number of ranks << 32 | this rank's number there + 1;
     * else 0. */
    _Atomic uint64_t in_job;
    char name[SHM_HANDLERS_MAX][SHM_NAME_BYTES];

    /* The answer to a status query (why.c), with the numbers of the last query and of the last one
     * answered. */
    _Alignas(64) _Atomic uint32_t asked;
    _Atomic uint32_t answered;
    _Atomic uint64_t answer[FY_ANSWER_BYTES / sizeof(uint64_t)];
} shm_rank;

/* Where a frame's payload is. */
typedef enum shm_place {
    SHM_NOWHERE, /* the frame has no payload */
    SHM_INLINE,  /* in the words that the frame does not use */
    SHM_BYTES,   /* in the ring's bytes, at `position` */
    SHM_COPIED,  /* in a block of the source's heap; counts against the ring's limit */
    SHM_GIVEN,   /* in a block that the sender passed on */
} shm_place;

#define SHM_SIZE_BITS 48
#define SHM_SIZE_MASK ((UINT64_C(1) << SHM_SIZE_BITS) - 1)

/* A ring for one source, one target and one channel: one producer and one consumer. The slots
 * follow, then the bytes. */
typedef struct shm_ring {
    /* Written by the consumer: running counts of what it has finished, published now and then. */
    _Alignas(128) _Atomic uint64_t head; /* slots */
    _Atomic uint64_t bytes_head;         /* bytes of the byte ring, skipped ones included */
    _Atomic uint64_t copied_head;        /* bytes of SHM_COPIED blocks */
    /* Written by the producer: it found no room and waits to be woken. */
    _Alignas(64) _Atomic uint32_t stalled;
} shm_ring;

typedef struct shm_news shm_news;

/* Notes that `source` has sent. seq_cst: the bit is set before the target is told to look for it */
static inline void fy_shm_note(shm_news *news, uint32_t source)
{
    atomic_fetch_or(&news->from[source / 64], UINT64_C(1) << source % 64);
    atomic_fetch_or(&news->any, UINT64_C(1) << source / 64);
}

struct fy_segment {
    char *base;
    size_t total_bytes;
    uint32_t ranks, starting, ring_slots, ring_bytes;
    uint32_t arenas; /* how many arenas: from `starting` to `ranks` */
    int kept; /* descriptor of its file, which `ferry why` looks for; -1: the launcher has it */
    fy_spawner *spawner;
    void *spawner_arg;
    int pipe; /* the pipe of a joined process (launch/join.h); -1: none */
    int link; /* the socket to the launcher, for `spawner_arg`; closed with the segment; -1: none */
    int opened; /* the socket of fy_env_say_opened, if ranks are threads; -1: none */
    size_t heap_bytes;
    size_t rings_offset, ring_stride;
    size_t boards_offset;
    size_t heaps_offset, heap_stride;
};

static inline uint32_t channel_of(fy_thread thread, fy_lane lane)
{
    return (uint32_t)thread * FY_LANES + (uint32_t)lane;
}

static inline size_t controls_bytes(uint32_t ranks)
{
    return 4096 + (size_t)ranks * sizeof(shm_rank);
}

static inline shm_common *common_at(void *base)
{
    return (shm_common *)(void *)((char *)base + SHM_COMMON_OFFSET);
}

static inline shm_rank *rank_at(void *base, uint32_t rank)
{
    return (shm_rank *)(void *)((char *)base + 4096) + rank;
}

/* The shm_state in a rank's `state`. If the word has no valid state, a program has overwritten it.
 * Then the rank counts as joined, because ranks that have died or left write nothing. */
static inline uint32_t shm_state_in(uint32_t word)
{
    word &= SHM_STATE_MASK;
    return word <= SHM_DEAD ? word : SHM_JOINED;
}

/* The state of a rank's place (shm_state). */
static inline uint32_t fy_shm_state(const fy_segment *s, uint32_t rank)
{
    /* acquire: a rank that sees that this one has gone sees all that it wrote before */
    return shm_state_in(atomic_load_explicit(&rank_at(s->base, rank)->state, memory_order_acquire));
}

static inline shm_ring *ring_at(const fy_segment *s, uint32_t target, uint32_t source,
                                uint32_t channel)
{
    size_t index = ((size_t)target * s->ranks + source) * SHM_CHANNELS + channel;
    return (shm_ring *)(void *)(s->base + s->rings_offset + index * s->ring_stride);
}

static inline fy_ring_slot *ring_slots(shm_ring *ring)
{
    return (fy_ring_slot *)(void *)(ring + 1);
}

static inline char *ring_payload(const fy_segment *s, shm_ring *ring)
{
    return (char *)(ring_slots(ring) + s->ring_slots);
}

static inline void *board_at(const fy_segment *s, uint32_t rank)
{
    return s->base + s->boards_offset + (size_t)rank * FY_BOARD_BYTES;
}

static inline fy_arena arena_at(const fy_segment *s, uint32_t number)
{
    return fy_arena_at(s->base + s->heaps_offset + number * s->heap_stride, s->heap_bytes);
}

/* Opens the file of the segment that process `pid` itself has; the caller closes it. -1: it has
 * none, or belongs to another user. */
int fy_segment_held(long pid);

/* Opens the file of the segment that process `pid` has, or one of its children or, with
 * `or_parent`, its parent; the caller closes it. -1: none. */
FY_SHARED int fy_segment_of_process(long pid, bool or_parent);

/* Reads the header once and accepts it only if the creator's computation gives the same. Errors
 * with fy_error_set. */
FY_SHARED int fy_segment_read(int fd, fy_segment *s);

/* The control blocks alone, mapped at any address, for the launcher. */
typedef struct fy_controls {
    void *base;
    uint32_t ranks, starting;
} fy_controls;

/* FERRY_ESYSTEM with fy_error_set. */
int fy_controls_map(int fd, fy_controls *out);
void fy_controls_unmap(fy_controls *controls);

/* Takes `count` numbers for ranks that come later, in one step. Returns false if fewer are left. */
FY_SHARED bool fy_numbers_take(void *base, uint32_t ranks, uint32_t starting, uint32_t count,
                               uint32_t *first);

/* Wakes all ranks, so that they look at the states of the others. */
void fy_controls_tell(void *base, uint32_t ranks);

/* Sets the state of `rank`. */
void fy_controls_note(void *base, uint32_t rank, shm_state state);

/* Sets the state of `rank`, and wakes all ranks. */
FY_SHARED void fy_controls_mark(void *base, uint32_t ranks, uint32_t rank, shm_state state);

/* Writes what the rank does, or did last, after `lead`; nothing if it never joined. Checks the
 * contents of the control block: the program may have overwritten it. */
FY_SHARED void fy_doing_describe(const shm_rank *control, const char *lead, char *out, size_t size);

/* Asks every living rank what it does, and wakes it. Waits a moment for the answers. Writes them to
 * `fd`, and which rank waits for which. */
FY_SHARED void fy_why_query(const fy_controls *controls);
FY_SHARED void fy_why_print(const fy_controls *controls, int fd);

/* Sets a thread's signal and wakes it. */
FY_SHARED void fy_shm_signal(shm_rank *target, fy_thread thread);

/* Wakes a thread that sleeps on `asleep`, if one does. */
void fy_rouse(_Atomic uint32_t *asleep);

/* The first address of a short list at which this process has `total_bytes` free; 0: none. */
uint64_t fy_segment_free_address(size_t total_bytes);

#endif
