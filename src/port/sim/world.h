/* World: the state of a simulated job, shared by the files of port sim.
 *
 * There is one thread. The scheduler pops events in order. An event belongs to an actor: the
 * application fiber or the helper fiber of a rank. The scheduler switches to that actor. The actor
 * runs until it waits, computes or polls. Virtual time passes only as it is charged to the actor's
 * own clock.
 *
 * Invariants: an actor's clock is never before the world's. The world's clock never goes back.
 * Nothing is ordered by addresses. */
#ifndef FY_WORLD_H
#define FY_WORLD_H

#include <stdatomic.h>

#include "base/pool.h"
#include "base/table.h"
#include "port/sim/blocks.h"
#include "port/sim/events.h"
#include "port/sim/faults.h"
#include "port/sim/fiber.h"
#include "port/sim/net.h"
#include "port/sim/sim.h"

typedef struct fy_world fy_world;
typedef struct fy_sim_rank fy_sim_rank;
typedef struct fy_channel fy_channel;

/* Kinds of events. */
enum { FY_EVENT_RESUME, FY_EVENT_PACKET, FY_EVENT_TIMER, FY_EVENT_FAULT, FY_EVENT_NOTICE };

typedef enum fy_actor_state {
    FY_ACTOR_NONE,    /* never started, or ended */
    FY_ACTOR_READY,   /* goes on at its resume event */
    FY_ACTOR_RUNNING, /* runs now */
    FY_ACTOR_WAITING, /* in wait; a resume event, if any, is the deadline */
    FY_ACTOR_PAUSED,  /* polls without finding anything; as WAITING, but a wake is kept for a later
                         wait */
    FY_ACTOR_COMPUTING, /* in advance; work of the helper meanwhile delays its resume event */
    FY_ACTOR_JOINING,   /* waits for the helper's end */
} fy_actor_state;

enum { FY_LINE_BYTES = 64 };

typedef struct fy_actor {
    fy_event resume; /* first member: an event leads to its actor */
    fy_sim_rank *rank;
    fy_thread thread;
    fy_actor_state state;
    fy_fiber fiber;
    bool woken;
    bool inside;       /* in a function of the port: its allocations are the simulator's */
    uint64_t clock_ns; /* the actor's clock */
    uint64_t cpu_ns;   /* the part of it spent working */
    uint64_t woke_cpu_ns;
    void (*entry)(void *arg);
    void *arg;
} fy_actor;

/* A frame in flight, or waiting at its target. Its data follow in the same allocation, or are a
 * block. */
typedef struct fy_cargo {
    struct fy_cargo *next;  /* in the receiver's queue */
    struct fy_cargo *later; /* in the sender's queue of frames not acknowledged */
    uint64_t number;        /* on its channel, from 0 */
    uint32_t refs;
    uint8_t pool; /* index, or FY_CARGO_POOLS for malloc */
    bool settled; /* it has reached its target, or never will */
    bool counted; /* its data count against the room; data of a given block do not */
    bool side;    /* of fy_world.in_flight */
    void *block;  /* the block of its data; released with the cargo unless kept */
    fy_frame frame;
} fy_cargo;

enum { FY_CARGO_POOLS = 3 };

typedef struct fy_cargo_queue {
    fy_cargo *first, *last;
} fy_cargo_queue;

/* Something on the wire: a cargo, or the acknowledgement of all frames below `number`. */
typedef struct fy_packet_event {
    fy_event event; /* first */
    fy_channel *channel;
    fy_cargo *cargo; /* NULL: an acknowledgement */
    uint64_t number;
    bool landed; /* it has passed the target's adapter */
} fy_packet_event;

/* The channel for frames from one thread of a rank to another rank on one lane. */
struct fy_channel {
    fy_event timer; /* first: retransmission */
    fy_sim_link link;
    fy_sim_rank *source, *target;
    uint8_t lane, thread;
    bool listed; /* it is in the list of its target's inbox */
    /* The sender's side. */
    uint64_t next_number;
    uint32_t ring_frames;           /* frames sent and not taken */
    uint64_t ring_bytes, big_bytes; /* bytes of small data, and of data too large for the ring */
    fy_cargo_queue unacknowledged;  /* linked by `later`; only if the world is lossy */
    uint64_t timeout_ns;            /* time until the next retransmission */
    /* The receiver's side. */
    uint64_t expected;
    fy_cargo *early; /* frames that came too early, linked by `next`, sorted by number */
    fy_cargo_queue arrived;
    fy_channel *inbox_next;
    /* How many frames the client has got: the number that it must see next. */
    uint64_t oracle_taken;
};

typedef struct fy_inbox {
    fy_channel *first, *last; /* channels with arrived frames, in the order they got them */
    bool fresh;               /* a frame has come since the last poll */
} fy_inbox;

/* A rank that goes on touches little else of the world, and each time little else than before. So
 * what is used most comes first, in few cache lines. */
struct fy_sim_rank {
    fy_port port; /* first */
    fy_world *world;
    int rank;
    uint32_t quiet_polls;      /* polls in a row that found nothing */
    uint32_t looks;            /* for something to do, in this era of the world */
    fy_peer_state state, seen; /* its state, and the state that the others know */
    fy_thread served_by;
    fy_doing doing;
    uint64_t doing_ns;           /* since when */
    uint64_t era, looks_from_ns; /* the world's, and the time, when `looks` was 0 */
    uint64_t left_ns; /* to compute, when that was looked at last; 0: not since it began */
    uint64_t stopped_until_ns;
    uint16_t handler;
    bool finished, asked;
    bool quiet;   /* no rank waits to be told that it leaves */
    bool shut;    /* it takes nothing more from others */
    bool endures; /* it goes on when others die */
    _Alignas(FY_LINE_BYTES) fy_inbox inbox[FY_LANES];
    uint64_t in_free_ns[FY_LANES];
    _Alignas(FY_LINE_BYTES) fy_actor actors[FY_THREADS];
    uint64_t out_free_ns[FY_LANES];
    uint64_t undelivered;        /* how many cargoes it has sent that are not settled */
    uint64_t incoming;           /* how many that were sent to it are not settled */
    uint64_t quantum_ns;         /* how often its helper looks; 0: a control frame wakes it */
    uint32_t slow;               /* factor of the cost of receiving */
    fy_sim_rank *notice_next;    /* in the list of ranks whose state must be told */
    uint32_t speed, speed_later; /* per mille */
    uint64_t speed_later_ns;     /* from when on speed_later holds */
    size_t heap_used;
    fy_actor *preempted; /* it was stopped where it stands; NULL: none was */
    int outcome;         /* as fy_member_ops.outcome says */
    char *answer;        /* its answer to a status query; NULL: none yet */
    uint64_t busy_ns, end_ns;
    uint64_t *disk_free_ns; /* of each place in its disk's queue; NULL: not used yet */
    uint64_t disk_bytes_ns; /* when its disk has passed on the bytes of all calls */
};

/* The disks of ranks, all alike. */
typedef struct fy_sim_disk {
    uint64_t latency_ns;
    double bytes_per_s; /* 0: no limit */
    int depth;          /* calls at a time; 0: disks take no time */
} fy_sim_disk;

enum { FY_SIM_NAMES = 1024, FY_SIM_NAME_BYTES = 32 };

typedef struct fy_sim_counts {
    uint64_t events, switches, frames, bytes, packets, lost, resent, doubles;
} fy_sim_counts;

struct fy_world {
    fy_sim_options options;
    fy_port_main *rank_main;
    void *arg;
    fy_net net;
    fy_sim_disk disk;
    fy_faults faults;
    bool lossy; /* frames are acknowledged */
    fy_events events;
    uint64_t now_ns;
    fy_actor *running;
    fy_fiber scheduler;
    fy_sim_rank *ranks;
    unsigned char *boards;      /* FY_BOARD_BYTES each; NULL: not with this network */
    int rank_count, unfinished; /* rank_count: numbers, of ranks that may join too */
    int starting, spawned; /* with how many ranks the job began, and how many were started since */
    /* The stacks; before them is room for one more, which nobody may touch. */
    unsigned char *stacks;
    size_t stacks_bytes; /* of all */
    fy_table channels;
    fy_pool channel_pool, packet_pool, cargo_pools[FY_CARGO_POOLS];
    fy_blocks blocks;
    fy_event notice;
    fy_sim_rank *notice_first;
    bool deaths;              /* a rank has died */
    _Atomic uint32_t changes; /* counts changes of states; relaxed: there is one thread */
    uint64_t cpu_mark_ns;     /* processor time when the running actor's program went on */
    uint64_t progress_ns, idle_resumes; /* when something useful was done last; resumes since */
    uint64_t era;                       /* how often it was done */
    const fy_sim_rank *restless;        /* it has looked too often since; NULL: none has */
    /* Cargoes not settled, of two sides. New ones go to `side`. The sides are swapped when the
     * other is empty, while nothing useful is done: how often since, and not before so many
     * resumes. */
    uint64_t in_flight[2], swap_resumes;
    bool side;
    uint32_t swaps;
    uint64_t hash;
    size_t memory_start_bytes; /* in use before the first event */
    fy_sim_counts counts;
    fy_port_ops ops;                  /* of all ranks */
    char (*names)[FY_SIM_NAME_BYTES]; /* names of handlers, as the first rank gives them */
    int status;
    char why[96];
    const char *stuck; /* why the job is stuck: the ranks were asked what they wait for */
    int unanswered;    /* how many ranks have not answered */
    bool ended;        /* the run is over, even if ranks remain */
};

/* Writes which rank runs, at what time and what it does: a fy_crash_fn. */
void fy_report_running(void *world, const void *address, char *out, size_t size);

/* Sets the options that are 0 or NULL to their defaults. */
void fy_sim_options_fill(fy_sim_options *options);

/* The port's table, for ranks that share memory. */
extern const fy_port_ops fy_sim_ops;

static inline fy_sim_rank *fy_sim_rank_of(const fy_port *port)
{
    return (fy_sim_rank *)(uintptr_t)port;
}

/* Folds a word into the run's hash. */
static inline void fy_world_note(fy_world *world, uint64_t word)
{
    uint64_t hash = (world->hash ^ word) * 0x100000001b3u;
    world->hash = hash ^ hash >> 29;
}

/* Notes that something useful was done: the job is not stuck. */
static inline void fy_world_progress(fy_world *world)
{
    world->progress_ns = world->now_ns;
    world->idle_resumes = world->swap_resumes = 0;
    world->swaps = 0;
    world->era++;
    world->restless = NULL;
}

/* Ends the run after the current actor's turn. The first status counts. */
void fy_world_end(fy_world *world, int status);

/* Starts the program of a rank that was spawned, a while after `time_ns`. FERRY_ENOMEM. */
int fy_world_spawn_ranks(fy_sim_rank *rank, uint64_t time_ns);

/* Tells the others the new state of a rank, when all that it sent has arrived. */
void fy_world_tell(fy_sim_rank *rank);

/* How often a rank may look for something to do in so much virtual time, while no rank does
 * anything: more often than every 40 ns. A rank that waits looks every 0.1 ms, and one that waits
 * for 1 us at a time every 146 ns. */
enum { FY_LOOKS_MAX = 4000000, FY_LOOKS_NS = 160 * 1000 * 1000 };

/* Actors (actor.c). */

/* Returns the running actor. If asked for, counts the processor time of its program up to now. Call
 * leave before the program goes on. */
fy_actor *fy_actor_enter(fy_sim_rank *rank);
void fy_actor_leave(fy_sim_rank *rank);

/* Charges `ns` of work to the actor. */
void fy_actor_charge(fy_actor *actor, uint64_t ns);
/* Handles all events before the actor's clock. */
void fy_actor_sync(fy_actor *actor);
/* Suspends the actor in `state` until `time_ns`, or until it is woken. */
void fy_actor_suspend(fy_actor *actor, fy_actor_state state, uint64_t time_ns);
/* Stops the actor for `ns` between any two of its instructions, and its rank's other one too. */
void fy_actor_preempt(fy_actor *actor, uint64_t ns);
/* Works for `ns` at the rank's speed. Its helper can interrupt that. */
void fy_actor_compute(fy_actor *actor, uint64_t ns);
/* Does what `wake` of the port promises: ends the thread's wait, or its next one. */
void fy_actor_wake(fy_actor *actor, uint64_t time_ns);
/* Handles the arrival of a frame for the rank. */
void fy_actor_notify(fy_sim_rank *rank, fy_lane lane);
int fy_actor_start(fy_actor *actor, void (*entry)(void *arg), void *arg);
/* The scheduler's turn: the actor's resume event was popped. */
void fy_actor_run(fy_actor *actor);
/* Has what a turn of the actor reads first fetched into the cache. */
void fy_actor_fetch(const fy_actor *actor);
/* Whether the actor has overrun its stack: the pattern is gone, or it crashed at `address` (NULL:
 * it did not crash) less than a stack's length below its stack. Logs a line then. */
bool fy_actor_overran(const fy_actor *actor, const void *address);
/* Ends an actor that will never run again. */
void fy_actor_kill(fy_actor *actor);

/* Channels (channel.c, wire.c). */

/* Finds or makes a channel; NULL when there is no memory. */
fy_channel *fy_channel_get(fy_sim_rank *source, int target, fy_lane lane, fy_thread thread);
/* Whether a frame with this much data, or with a given block, may be sent now. */
bool fy_channel_has_room(const fy_channel *channel, size_t size_bytes, bool block);
/* Sends a copy of `frame` or, with `block`, its block itself. FERRY_ENOMEM. */
int fy_channel_send(fy_channel *channel, const fy_actor *actor, const fy_frame *frame, bool block);
/* Removes the first frame that has arrived. With `keep` the client keeps its block. */
void fy_channel_taken(fy_channel *channel, bool keep);
/* Puts a channel with arrived frames at the end of its target's inbox. */
void fy_channel_list(fy_channel *channel);
void fy_cargo_release(fy_world *world, fy_cargo *cargo);

/* Puts `cargo` on the wire at `time_ns`. */
void fy_wire_send(fy_channel *channel, fy_cargo *cargo, uint64_t time_ns);
void fy_wire_packet(fy_world *world, fy_packet_event *packet);
/* Has what the packet's event reads first fetched into the cache. */
void fy_wire_fetch(const fy_packet_event *packet);
void fy_wire_timer(fy_world *world, fy_channel *channel);

/* Bytes up to which data travel in the ring. */
size_t fy_sim_inline_bytes(const fy_world *world);

/* Disks (disk.c). */

/* Reads how long disks take; NULL: no time. FERRY_EINVAL with fy_error_set. */
int fy_sim_disk_read(fy_world *world, const char *text);

/* Decides about a call, as fy_host_ops.disk does. */
void fy_sim_disk_call(fy_sim_rank *rank, uint64_t now_ns, bool writes, uint64_t size_bytes,
                      fy_disk_outcome *out);

/* Memory (storage.c). */

/* From now on the plan of faults decides about allocations of the ranks, if it has such faults.
 * FERRY_ENOTSUP with fy_error_set: allocations cannot be watched here. */
int fy_storage_watch(fy_world *world);
void fy_storage_unwatch(void);
/* Ends the run if the process uses more memory than it may. */
void fy_storage_check(fy_world *world);

/* Reports (report.c). */

/* Prints which ranks wait for which, as the ranks have answered. */
void fy_report_stuck(const fy_world *world, const char *why);
void fy_report_end(const fy_world *world, uint64_t real_ns);
void fy_report_broken(fy_world *world, const fy_channel *channel, const char *what);

/* Reads the speeds of ranks. FERRY_EINVAL with fy_error_set. */
int fy_speeds_read(fy_world *world, const char *text);

#endif
