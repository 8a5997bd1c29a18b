/* Head: the first fields of a rank. The layers above core read them without a call.
 *
 * Invariant: application code runs only on the application thread, one handler or callback at a
 * time (fy_head.depth). */
#ifndef FY_HEAD_H
#define FY_HEAD_H

#include <ferry/core.h>
#include <ferry/trace.h>

#include "base/shared.h"
#include "core/layer.h"
#include "port/port.h"

typedef enum fy_handler_kind {
    FY_HANDLER_REQUEST,
    FY_HANDLER_OBJECT,
    FY_HANDLER_MEMORY,
    FY_HANDLER_NONE,
} fy_handler_kind;
typedef void fy_any_fn(void);
enum { FY_HANDLER_NAME_BYTES = 32 };

/* A handler of any kind. `signature` covers the names and kinds of this one and all before it:
 * two ranks agree on an index when it is equal. */
typedef struct fy_handler_entry {
    fy_any_fn *fn;
    uint32_t signature;
    uint8_t kind;      /* fy_handler_kind */
    uint8_t untimed;   /* calls left that are not timed (account.c) */
    bool told_unknown; /* a log line about it was written */
} fy_handler_entry;

/* Handlers 1 to FY_HANDLERS_OWN are Ferry's own, of the collection layer. They have the same
 * numbers whatever a rank has registered before its first collection, and they do not count in
 * signatures: a rank that joins later has none of them. */
enum { FY_HANDLERS_OWN = 5 };

typedef struct fy_handlers {
    fy_handler_entry *entries;
    char (*names)[FY_HANDLER_NAME_BYTES];
    uint32_t count, capacity;
    bool told_unknown; /* a log line about an index without a handler was written */
} fy_handlers;

/* Where the rank's time goes (account.c). */
typedef struct fy_account {
    ferry_activity activity; /* since stamp_ns */
    uint32_t handler;
    uint64_t stamp_ns;
    bool timed;           /* every entry to Ferry is stamped: tasks run, or a trace is on */
    fy_doing doing, base; /* as told to the port; what to go back to after handlers */
    uint32_t told;        /* 1 + the handler, as told with `doing` and no time; else 0 */
    /* When processor time was last read, by all three clocks. */
    uint64_t cpu_ns, cpu_stamp_ns, cpu_runtime_ns, cpu_read_ns;
    uint64_t task_cpu_ns; /* of the task that ends, for the trace; else 0 */
    /* The open batch of tasks: how many have run in it, and when; what it was opened from. */
    uint32_t batch_tasks, outer_handler;
    uint32_t unread; /* tasks until the clock is read */
    ferry_activity outer;
    uint64_t batch_start_ns, batch_end_ns, batch_cpu_ns;
    uint64_t between_ns;           /* from the end of its first task to the start of the second */
    uint64_t quiet_ns, quiet_done; /* since when nothing was done, and `done` then */
} fy_account;

/* The first fields of a rank, which every layer may read for each message. They are constant after
 * open, except for the counters. */
typedef struct fy_head {
    fy_port *port;
    const fy_port_ops *ops;
    int rank, ranks;
    void *layers[FY_LAYERS];
    struct fy_profile *profile; /* NULL: nothing is counted */
    uint64_t work_created, work_finished;
    uint64_t depth; /* application code that runs inside Ferry */
    fy_handlers handlers;
    fy_account account;
    fy_doing_note *note;         /* the port's; NULL: it has none */
    struct fy_peer **peer_pages; /* peer.h */
    int32_t *successors;         /* by rank, of those that have left; else -1; NULL: nobody has */
    uint32_t complete_frames;    /* of this round, see fy_progress */
    uint64_t done;               /* handlers, tasks, callbacks run and operations ended */
    ferry_stats stats;
    size_t owed_bytes;   /* of copies and records of operations that wait here, in no queue */
    size_t unseen_bytes; /* of messages sent since the control lane was looked at */
    const struct fy_pacing *pacing; /* of the layer that paces its frames (outgoing.h) */
    bool ends;                      /* the rank closes or leaves, and sends all it has */
    /* While `detours` is not 0, sends do not take the short ways. slow_lanes: queues with a
     * backlog; sends look for theirs only when not 0. at_rest: the board says that this rank has no
     * work (rest.c). */
    union {
        struct {
            uint32_t slow_lanes, at_rest;
        };
        uint64_t detours;
    };
    uint32_t due; /* a bit per layer whose progress is to run; FY_DUE_... */
    /* Set by a layer while the members must stay as they are. Returns the error of a call that
     * starts `count` ranks, or that leaves the job (0). */
    int (*stays)(ferry *f, int count);
} fy_head;

/* Core's own bits of `due`, in their order. A part of a round beside the data lane has something to
 * do, or may. A helper may have something for a layer. The round is never short: the port has no
 * words that say what has come, or all of it is timed. */
#define FY_DUE_REST (UINT32_C(1) << FY_LAYERS)
#define FY_DUE_HELPER (UINT32_C(2) << FY_LAYERS)
#define FY_DUE_ALWAYS (UINT32_C(4) << FY_LAYERS)

static inline const fy_head *fy_head_of(const ferry *f)
{
    return (const fy_head *)(const void *)f;
}

static inline void *fy_layer_state(const ferry *f, fy_layer layer)
{
    return fy_head_of(f)->layers[layer];
}

FY_SHARED void fy_layer_state_set(ferry *f, fy_layer layer, void *state);

/* A layer without work rests: polls do not call its progress until it is due again. Its own calls
 * say when. Frames, callbacks, and changes of members make all layers due. At the start all are
 * due. [application thread] */
static inline void fy_layer_due(ferry *f, fy_layer layer)
{
    ((fy_head *)(void *)f)->due |= UINT32_C(1) << layer;
}

static inline void fy_layer_rest(ferry *f, fy_layer layer)
{
    ((fy_head *)(void *)f)->due &= ~(UINT32_C(1) << layer);
}

/* A word that other processes write: while it is not 0 all layers are due. Borrowed until the layer
 * closes. One layer has such a word. */
FY_SHARED void fy_layer_watch(ferry *f, const _Atomic uint32_t *word);

/* Called by either thread that has work for any layer. While there is a helper, all layers are due
 * in each round anyway. */
void fy_layers_signal(ferry *f);

/* The port's table, for layers that need memory, time or the helper thread. */
static inline fy_port *fy_port_of(const ferry *f)
{
    return fy_head_of(f)->port;
}

/* A kind calls this for the frame that it takes. The rest of the round has no work for that frame,
 * so a rank that waits for it can continue immediately. [application thread] */
static inline void fy_frame_done(ferry *f)
{
    ((fy_head *)(void *)f)->complete_frames++;
}

static inline bool fy_in_handler(const ferry *f)
{
    return fy_head_of(f)->depth > 0;
}

/* Counts `bytes` of a copy or a record that waits here, outside queues, until an operation has
 * ended (fy_check_room). The second function subtracts them again. */
static inline void fy_owe(ferry *f, ptrdiff_t bytes)
{
    ((fy_head *)(void *)f)->owed_bytes += (size_t)bytes;
}

/* This rank's account, for layers to add to. */
static inline ferry_stats *fy_stats(ferry *f)
{
    return &((fy_head *)(void *)f)->stats;
}

#endif
