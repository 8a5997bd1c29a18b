/* World: the state of a simulated job, shared by the files of port sim.
 *
 * One thread. The scheduler pops events in order and switches to the actor (application or helper
 * fiber of a rank) that one is for. An actor runs until it waits, computes, or polls. That costs no
 * virtual time but what is charged to its own clock. Invariants: an actor's clock is never
 * before the world's; the world's clock never goes back; nothing is ordered by addresses. */
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
    FY_ACTOR_NONE,      /* never started, or ended */
    FY_ACTOR_READY,     /* goes on at its resume event */
    FY_ACTOR_RUNNING,   /* is the one that runs */
    FY_ACTOR_WAITING,   /* in wait; a resume event, if any, is the deadline */
    FY_ACTOR_PAUSED,    /* polls in vain; as WAITING, but a wake is kept for a later wait */
    FY_ACTOR_COMPUTING, /* in advance; what the helper does meanwhile moves its resume event */
    FY_ACTOR_JOINING,   /* waits for the helper's end */
} fy_actor_state;

typedef struct fy_actor {
    fy_event resume; /* first: found from the event */
    fy_fiber fiber;
    fy_sim_rank *rank;
    fy_thread thread;
    fy_actor_state state;
    bool woken;
    bool inside;       /* in the port: what it allocates is the simulator's */
    uint64_t clock_ns; /* where it stands */
    uint64_t cpu_ns;   /* of that, spent working */
    uint64_t woke_cpu_ns;
    void (*entry)(void *arg);
    void *arg;
} fy_actor;

/* A frame on its way or waiting. Its data follow in the same piece of memory, or are a block. */
typedef struct fy_cargo {
    struct fy_cargo *next;  /* in the receiver's queue */
    struct fy_cargo *later; /* in the sender's queue of what is not acknowledged */
    uint64_t number;        /* on its channel, from 0 */
    uint32_t refs;
    uint8_t pool; /* index, or FY_CARGO_POOLS for malloc */
    bool settled; /* it has reached its target, or never will */
    bool counted; /* its data take room; not those of a block handed over */
    void *block;  /* from alloc, released with the cargo unless kept */
    fy_frame frame;
} fy_cargo;

enum { FY_CARGO_POOLS = 3 };

typedef struct fy_cargo_queue {
    fy_cargo *first, *last;
} fy_cargo_queue;

/* Something on the wire: a cargo, or the acknowledgement of all below `number`. */
typedef struct fy_packet_event {
    fy_event event; /* first */
    fy_channel *channel;
    fy_cargo *cargo; /* NULL: an acknowledgement */
    uint64_t number;
    bool landed; /* has waited for the target's adapter */
} fy_packet_event;

/* Frames from one thread of a rank to a rank on one lane. */
struct fy_channel {
    fy_event timer; /* first: retransmission */
    fy_link link;
    fy_sim_rank *source, *target;
    uint8_t lane, thread;
    bool listed; /* among those of the target's inbox */
    /* The sender's side. */
    uint64_t next_number;
    uint32_t ring_frames;           /* sent and not taken */
    uint64_t ring_bytes, big_bytes; /* of small data, and of data too big for the ring */
    fy_cargo_queue unacknowledged;  /* by `later`; of a lossy world alone */
    uint64_t patience_ns;           /* until the next retransmission */
    /* The receiver's side. */
    uint64_t expected;
    fy_cargo *early; /* by `next`, sorted by number */
    fy_cargo_queue arrived;
    fy_channel *inbox_next;
    uint64_t oracle_taken; /* frames handed to the client: what it must see next */
};

typedef struct fy_inbox {
    fy_channel *first, *last; /* channels with arrived frames, in the order they got them */
    bool fresh;               /* something came since the last poll */
} fy_inbox;

struct fy_sim_rank {
    fy_port port; /* first */
    fy_world *world;
    int rank;
    fy_actor actors[FY_THREADS];
    fy_inbox inbox[FY_LANES];
    uint64_t out_free_ns[FY_LANES], in_free_ns[FY_LANES];
    uint64_t stopped_until_ns;
    uint64_t undelivered;        /* cargo sent that is not settled */
    fy_peer_state state, seen;   /* what it is, and what the others know */
    fy_sim_rank *notice_next;    /* among those whose state is to be told */
    uint32_t speed, speed_later; /* per mille */
    uint64_t speed_later_ns;     /* when speed_later holds */
    uint32_t slow;               /* factor of the cost of receiving */
    uint64_t quantum_ns;         /* its helper looks every so often; 0: a control frame wakes it */
    uint32_t quiet_polls;        /* in vain, one after the other */
    size_t heap_used;
    fy_thread served_by;
    fy_doing doing;
    uint16_t handler;
    bool finished, asked;
    bool quiet;   /* nobody waits to hear that it leaves */
    int outcome;  /* as fy_member_ops.outcome says */
    char *answer; /* what it does, when it was asked; NULL: it has not answered */
    uint64_t busy_ns, end_ns;
};

enum { FY_SIM_NAMES = 1024, FY_SIM_NAME_BYTES = 32 };

typedef struct fy_sim_counts {
    uint64_t events, switches, frames, bytes, packets, lost, resent, doubles;
} fy_sim_counts;

struct fy_world {
    fy_sim_options options;
    fy_port_main *rank_main;
    void *arg;
    fy_net net;
    fy_faults faults;
    bool lossy; /* frames are acknowledged */
    fy_events events;
    uint64_t now_ns;
    fy_actor *running;
    fy_fiber scheduler;
    fy_sim_rank *ranks;
    int rank_count, unfinished; /* rank_count: numbers, of ranks that may join too */
    int starting, spawned; /* of those: with how many it began, and how many were started since */
    unsigned char *stacks; /* before them: as much as one more, which nobody may touch */
    size_t stacks_bytes;   /* of all */
    fy_table channels;
    fy_pool channel_pool, packet_pool, cargo_pools[FY_CARGO_POOLS];
    fy_blocks blocks;
    fy_event notice;
    fy_sim_rank *notice_first;
    bool deaths;                        /* some have died */
    _Atomic uint32_t changes;           /* counts notices; relaxed: all is one thread */
    uint64_t cpu_mark_ns;               /* processor time when the running actor's code went on */
    uint64_t progress_ns, idle_resumes; /* since when nothing was done, and how often in vain */
    uint64_t hash;
    size_t memory_start_bytes; /* in use before the first event */
    fy_sim_counts counts;
    char (*names)[FY_SIM_NAME_BYTES]; /* of handlers, as the first rank names them */
    int status;
    const char *stuck; /* why it goes no further: the ranks have been asked what they wait for */
    int unanswered;    /* of those asked, who have not said */
    bool ended;        /* the run is over, whatever ranks remain */
};

/* Writes which rank runs, at what time and what it does: a fy_crash_fn. */
void fy_report_running(void *world, const void *address, char *out, size_t size);

/* The port's table: with memory that ranks share, and without. */
extern const fy_port_ops fy_sim_ops_shared, fy_sim_ops_private;

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

/* Something useful happened: the job is not stuck. */
static inline void fy_world_progress(fy_world *world)
{
    world->progress_ns = world->now_ns;
    world->idle_resumes = 0;
}

/* Ends the run after the current actor's turn. The first status counts. */
void fy_world_end(fy_world *world, int status);

/* Starts the program of a rank that was spawned, a while after `time_ns`. FERRY_ENOMEM. */
int fy_world_spawn_ranks(fy_sim_rank *rank, uint64_t time_ns);

/* The rank's state has changed: tells the others, once what it sent has arrived. */
void fy_world_tell(fy_sim_rank *rank);

/* Actors (actor.c). */

/* The actor that runs, its program's processor time counted when that is asked for; leave before
 * the program goes on. */
fy_actor *fy_actor_enter(fy_sim_rank *rank);
void fy_actor_leave(fy_sim_rank *rank);

/* The actor works for `ns`. */
void fy_actor_charge(fy_actor *actor, uint64_t ns);
/* Lets happen what comes before the actor's clock. */
void fy_actor_sync(fy_actor *actor);
/* Leaves the actor in `state` until its resume event, at `time_ns`, if ever. */
void fy_actor_suspend(fy_actor *actor, fy_actor_state state, uint64_t time_ns);
/* Works for `ns` as the rank's speed has it, interruptible by its helper. */
void fy_actor_compute(fy_actor *actor, uint64_t ns);
/* Ends a waiting actor's wait at `time_ns`. */
void fy_actor_rouse(fy_actor *actor, uint64_t time_ns);
/* As the rank's client: wakes the thread's wait, or its next. */
void fy_actor_wake(fy_actor *actor, uint64_t time_ns);
/* A frame has come for the rank. */
void fy_actor_notify(fy_sim_rank *rank, fy_lane lane);
int fy_actor_start(fy_actor *actor, void (*entry)(void *arg), void *arg);
/* The scheduler's turn: the actor's resume event was popped. */
void fy_actor_run(fy_actor *actor);
/* Whether the actor's stack was overrun: its pattern is gone, or `address`, where it crashed (NULL:
 * it did not), lies below its stack by less than another. Logs a line then. */
bool fy_actor_overran(const fy_actor *actor, const void *address);
/* The actor will never run again. */
void fy_actor_kill(fy_actor *actor);

/* Channels (channel.c, wire.c). */

/* Finds or makes a channel; NULL when there is no memory. */
fy_channel *fy_channel_get(fy_sim_rank *source, int target, fy_lane lane, fy_thread thread);
/* Whether a frame with so much data, or one that hands a block over, may be sent now. */
bool fy_channel_has_room(const fy_channel *channel, size_t size_bytes, bool block);
/* Sends a copy of `frame`, or with `block` hands its data over. FERRY_ENOMEM. */
int fy_channel_send(fy_channel *channel, const fy_actor *actor, const fy_frame *frame, bool block);
/* The first frame that has arrived was taken; with `keep` its block is the client's. */
void fy_channel_taken(fy_channel *channel, bool keep);
/* Puts a channel with arrived frames at the end of its target's inbox. */
void fy_channel_list(fy_channel *channel);
void fy_cargo_release(fy_world *world, fy_cargo *cargo);

/* Puts `cargo` on the wire at `time_ns`. */
void fy_wire_send(fy_channel *channel, fy_cargo *cargo, uint64_t time_ns);
void fy_wire_packet(fy_world *world, fy_packet_event *packet);
void fy_wire_timer(fy_world *world, fy_channel *channel);

/* Bytes up to which data travel in the ring. */
size_t fy_sim_inline_bytes(const fy_world *world);

/* Memory (storage.c). */

/* From here on the plan decides about allocations of the ranks, when it has such faults.
 * FERRY_ENOTSUP with fy_error_set: memory cannot be watched here. */
int fy_storage_watch(fy_world *world);
void fy_storage_unwatch(void);
/* Ends the run when the process has more memory in use than it may. */
void fy_storage_check(fy_world *world);

/* Reports (report.c). */

/* Tells who waits for whom, as those said who were asked. */
void fy_report_stuck(const fy_world *world, const char *why);
void fy_report_end(const fy_world *world, uint64_t real_ns);
void fy_report_broken(fy_world *world, const fy_channel *channel, const char *what);

/* Reads the speeds of ranks. FERRY_EINVAL with fy_error_set. */
int fy_speeds_read(fy_world *world, const char *text);

#endif
