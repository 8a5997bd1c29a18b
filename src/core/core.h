/* A rank as the layers above core see it: dispatch of frames by kind, sending, counting, progress
 * hooks.
 *
 * Invariant: application code runs only on the application thread, one handler or callback at a
 * time (f->depth). The helper thread enters core only through fy_send_control and fy_control_poll,
 * and so through the control-lane kinds that say so where they are defined. */
#ifndef FY_CORE_H
#define FY_CORE_H

#include <stdio.h>

#include <ferry/core.h>
#include <ferry/trace.h>

#include "base/shared.h"
#include "port/port.h"

/* The layers above core that keep state in a rank. */
typedef enum fy_layer {
    FY_LAYER_MEMORY,
    FY_LAYER_OBJECT,
    FY_LAYER_BALANCE,
    FY_LAYER_MOVER,
    FY_LAYER_CELL,
    FY_LAYER_COLLECTION,
    FY_LAYER_WINDOW,
    FY_LAYERS
} fy_layer;

/* Frames have a kind, which says what they mean. A kind belongs to one layer. That layer defines
 * the number of the kind in a header of its own, and describes the kind in a constant table
 * (fy_kind_info). Core has the first numbers. Each layer above has a block of numbers. */
enum {
    FY_KINDS_OF_CORE = 16,
    FY_KINDS_OF_LAYER = 8,
    FY_KINDS_OF_MEMORY = FY_KINDS_OF_CORE + FY_LAYER_MEMORY * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_OBJECT = FY_KINDS_OF_CORE + FY_LAYER_OBJECT * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_BALANCE = FY_KINDS_OF_CORE + FY_LAYER_BALANCE * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_MOVER = FY_KINDS_OF_CORE + FY_LAYER_MOVER * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_CELL = FY_KINDS_OF_CORE + FY_LAYER_CELL * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_COLLECTION = FY_KINDS_OF_CORE + FY_LAYER_COLLECTION * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_WINDOW = FY_KINDS_OF_CORE + FY_LAYER_WINDOW * FY_KINDS_OF_LAYER,
    FY_KINDS = FY_KINDS_OF_CORE + FY_LAYERS * FY_KINDS_OF_LAYER,
};

/* The kinds of core. */
enum {
    FY_KIND_REQUEST,           /* run a handler */
    FY_KIND_LENT,              /* a frame of another kind, whose data are read where they are */
    FY_KIND_REQUEST_BROADCAST, /* pass on, and run a handler */
    FY_KIND_END,               /* an operation has ended (words: op, error) */
    FY_KIND_COLLECTIVE,        /* a part of a collective operation */
    FY_KIND_WAVE,              /* control lane, either thread: termination waves */
    FY_KIND_MAIL,              /* two-sided messages */
    FY_KIND_LEAVE,             /* a rank that leaves, and answers to it */
    FY_KIND_READY,             /* the source, which has joined, takes objects from now on */
    FY_KIND_REFUSAL, /* control lane, either thread: the source leaves this rank's requests with
                        it */
    FY_KIND_WHY,     /* control lane, either thread: this rank is to say what it does */
    FY_KIND_CREDIT,  /* control lane, either thread: tokens against sending messages */
    FY_KIND_LOSS,    /* work was lost; or handlers to compare */
};

/* Handles one frame of a kind; borrowed until it returns. */
typedef fy_verdict fy_kind_fn(ferry *f, int source, const fy_frame *frame);

/* Called before a frame is kept for a later poll, because it has another tag than the poll wants.
 * Tells the frame's source the event for which it waits, in memory reserved for one end. Removes
 * from the frame what need not be told again. False: the frame is not to be kept. */
typedef bool fy_hold_fn(ferry *f, int source, fy_frame *frame);

/* Properties of the frames of a kind for which core does more than hand them to their layer. */
enum {
    FY_FRAME_ASKS = 1,     /* its target may answer with more than the end of an operation */
    FY_FRAME_TAGGED = 2,   /* a poll for a tag selects among these frames */
    FY_FRAME_MAY_TAG = 4,  /* a poll for a tag selects among those of these frames with a tag */
    FY_FRAME_WRITES = 8,   /* writes memory; without a tag it stays after frames that are kept */
    FY_FRAME_READS = 16,   /* reads memory: frames that write and are kept run first */
    FY_FRAME_LENDABLE = 32 /* its data may be lent (lend.c) */
};

/* One kind of frame, as its layer describes it. */
typedef struct fy_kind_info {
    fy_kind_fn *deliver; /* those of the control lane run on either thread, under the lock that
                            fy_control_poll's caller holds; all others on the application thread */
    fy_hold_fn *hold;    /* may be NULL */
    const char *name;    /* in reports */
    uint32_t properties; /* FY_FRAME_... */
} fy_kind_info;

/* The lines that a rank reports about itself (why.h). */
typedef struct fy_why fy_why;

/* A layer's part in the life of a rank. Core keeps the constant list of them in src/core/layers.c.
 * That list and fy_layer are the places where core names the layers above. Any function may be
 * NULL. All on the application thread. */
typedef int fy_progress_fn(ferry *f);
typedef struct fy_layer_ops {
    fy_layer layer;
    uint32_t kind_count;                                 /* at most FY_KINDS_OF_LAYER */
    const fy_kind_info *kinds;                           /* by kind, from the layer's first */
    const char *name;                                    /* in reports */
    int (*open)(ferry *f, const ferry_options *options); /* in order; undone by close on failure */
    void (*close)(ferry *f);  /* in reverse order, after the last barrier */
    void (*drain)(ferry *f);  /* before the last barrier: stop helpers, give up nothing */
    fy_progress_fn *progress; /* part of every poll, unless it rests: returns how much it did */
    fy_progress_fn *settle;   /* part of polls that run no tasks: what frames may wait for */
    bool (*busy)(ferry *f);   /* whether a poll would find work that no frame will announce */
    uint64_t (*deadline)(
        ferry *f); /* when progress must run again without a frame; UINT64_MAX for never */
    void (*peer_gone)(ferry *f, int rank); /* a rank has gone; nothing more comes from it */
    void (*trace)(ferry *f, FILE *out);    /* adds lines to the file of FERRY_TRACE */
    /* Adds lines to what the rank tells of itself (why.h); the second on the helper thread, with
     * the control lock held, while a task runs. */
    void (*why)(ferry *f, fy_why *why);
    void (*why_helper)(ferry *f, fy_why *why);
    void (*members)(ferry *f);           /* others take objects than before: fy_peer_takes */
    bool (*settled)(ferry *f, int rank); /* nothing is in flight that `rank`, which is leaving,
                                            would have to pass on */
    bool (*leave)(ferry *f,
                  int successor); /* gives away what is here; whether all has gone. Is called
                                again until then, and once more when more has come */
} fy_layer_ops;

extern const fy_layer_ops fy_memory_layer, fy_object_layer, fy_balance_layer;
extern FY_SHARED const fy_layer_ops fy_mover_layer, fy_cell_layer, fy_collection_layer,
    fy_window_layer;

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
    uint64_t cpu_ns, cpu_stamp_ns, cpu_runtime_ns;
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
typedef struct __attribute__((may_alias)) fy_head {
    fy_port *port;
    const fy_port_ops *ops;
    int rank, ranks;
    void *layers[FY_LAYERS];
    struct fy_profile *profile; /* NULL: nothing is counted */
    uint64_t work_created, work_finished;
    uint64_t depth; /* application code that runs inside Ferry */
    fy_handlers handlers;
    fy_account account;
    struct fy_peer **peer_pages; /* peer.h */
    int32_t *successors;         /* by rank, of those that have left; else -1; NULL: nobody has */
    uint32_t complete_frames;
    uint64_t done;
    ferry_stats stats;
    size_t owed_bytes;   /* of copies and records of operations that wait here, in no queue */
    uint32_t slow_lanes; /* queues with a backlog: sends look for theirs only when not 0 */
    uint32_t carried;    /* objects that arrive only if the main program continues */
    uint32_t due;        /* a bit per layer whose progress is to run; FY_DUE_... */
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

/* The description of a kind; NULL when no layer of this program has it. */
const fy_kind_info *fy_kind_find(uint8_t kind);

/* Sets another function for a kind than its table names. Called by its layer's `open`. */
void fy_kind_set(ferry *f, uint8_t kind, fy_kind_fn *fn);

/* Sends a frame from the application thread. Never blocks and keeps order: without room the frame
 * is copied to the peer's backlog, which polls send. FERRY_EPEER, FERRY_ENOMEM. */
FY_SHARED int fy_send(ferry *f, fy_lane lane, int rank, const fy_frame *frame);

/* The count to which the layers above add the bytes that they keep; and the limit of all that waits
 * on this rank, tasks included. */
size_t *fy_kept_bytes(ferry *f, size_t *limit_bytes);

/* For a call in a handler that would keep its message here. Returns 0, or FERRY_EAGAIN with a
 * reason if that limit is passed. [application thread] */
int fy_check_room(ferry *f, const char *call);

/* As fy_check_room for ferry_object_send, also outside handlers while fy_message_pace waits for
 * nothing. */
int fy_message_check(ferry *f);

/* Bytes that wait for room at `rank`. */
size_t fy_backlog_bytes(const ferry *f, fy_lane lane, int rank);

/* The number of objects that the program took from this rank, will install here, or whose type it
 * has still to register. While there are any, fy_message_pace waits for nothing. [application
 * thread] */
static inline uint32_t *fy_carried_of(ferry *f)
{
    return &((fy_head *)(void *)f)->carried;
}

/* Outside handlers: polls, and runs tasks, until a message to `object`, which is on `rank`, may be
 * sent and has room. Returns whether it has polled. */
bool fy_message_pace(ferry *f, uint64_t object, int rank);

/* The queue in which this rank's own messages to an object wait, and the sender's knowledge of its
 * place: a slot of a table (route.c). */
typedef struct fy_route {
    uint64_t object;
    int32_t rank;
    uint32_t movement;
    uint32_t count;
} fy_route;

/* The route of an object to which messages wait; else NULL. Lends it until the next message is
 * sent.
 */
const fy_route *fy_route_find(const ferry *f, uint64_t object);

/* As fy_route_find. A message to `object` must follow those that wait, wherever the object is. */
static inline const fy_route *fy_message_route(const ferry *f, uint64_t object)
{
    return fy_head_of(f)->slow_lanes != 0 ? fy_route_find(f, object) : NULL;
}

/* Sends a message to an object on `rank` by the data lane, as fy_send does. From now on it counts
 * as work of `rank`. If this rank only passes it on, the caller counts it as finished here. `own`:
 * it is a message of this rank. While the rank's credit is withdrawn or other own messages wait, it
 * waits after them, and no other frame waits for it. If the object has a route
 * (fy_message_route), `rank` is the route's. */
int fy_message_send(ferry *f, int rank, bool own, const fy_frame *frame);

/* Gives `rank` tokens of an epoch, or takes some back (credit.c). FERRY_ENOMEM. */
int fy_credit_tell(ferry *f, int rank, int tokens, uint32_t epoch);

/* The epoch of tokens: how many ranks are known to have come and gone. Tokens of other epochs do
 * not count. */
uint32_t fy_credit_epoch(const ferry *f);

/* Bytes of messages from one rank that another holds before it gives it a token. */
size_t fy_credit_bytes(const ferry *f);

/* As fy_send in the data lane. But outside handlers it polls until there is room. In handlers a
 * frame that would have to wait is checked as by fy_check_room, for `call`. If `call` is NULL it is
 * not checked, because earlier frames of the operation have left. */
int fy_send_paced(ferry *f, int rank, const fy_frame *frame, const char *call);

/* As fy_send_paced. But outside handlers large data that would be copied are left in place, and the
 * call polls until the port has read them. That is no sooner than the target takes them up. */
int fy_send_lent(ferry *f, int rank, const fy_frame *frame, const char *call);

/* Sends a control frame from the helper thread. Waits for room, which the control lane always gets.
 * While the helper serves the control lane it polls the lane meanwhile, because two helpers may
 * wait for each other. `block`: the data are a block of the port's alloc, and are handed over. The
 * application thread may call it too, with `thread` FY_APP. */
int fy_send_control(ferry *f, fy_thread thread, int rank, const fy_frame *frame, bool block);

/* Polls the control lane. The caller holds the balancing lock when a helper exists. Returns frames
 * taken. */
int fy_control_poll(ferry *f);

/* The lock that says who polls the control lane; taken by poll and by the helper. */
void fy_control_lock(ferry *f);
void fy_control_unlock(ferry *f);

/* Says whether a helper exists: true before it is started, false after it has been joined. Without
 * one, polls do not take the lock. [application thread] */
void fy_control_share(ferry *f, bool shared);

/* Says how the helper polls the control lane from now on; NULL: it does not. [application thread,
 * lock held] */
void fy_control_serve(ferry *f, void (*poll)(ferry *f));
bool fy_control_is_shared(const ferry *f);

/* How many quiescences have ended. [application thread] */
uint64_t fy_quiesced(const ferry *f);

/* Application work in the sense of ferry_quiesce: everything that is created must be finished on
 * some rank. A message counts as created when it is sent. It counts as finished when its handler
 * has returned, or when it has failed. [application thread] */
static inline void fy_work_created(ferry *f, uint64_t count)
{
    ((fy_head *)(void *)f)->work_created += count;
}

static inline void fy_work_finished(ferry *f, uint64_t count)
{
    ((fy_head *)(void *)f)->work_finished += count;
}

/* As fy_work_created, for work that is about to be sent. [either thread] */
void fy_work_shipped(ferry *f, uint64_t count);

/* Runs `call` as application code: sets depth, activity, stats and what the rank is doing. */
typedef void fy_call(ferry *f, void *arg);
FY_SHARED void fy_run(ferry *f, fy_doing what, uint16_t handler, fy_call *call, void *arg);

/* Tells the port what the rank is doing. */
static inline void fy_doing_set(ferry *f, fy_doing doing, uint16_t handler)
{
    fy_head *head = (fy_head *)(void *)f;
    if (head->account.doing == doing && head->account.told == handler + 1u)
        return; /* unchanged, as in a batch of messages for one handler */
    head->account.doing = doing;
    head->account.told = handler + 1u;
    head->ops->diagnosis.doing(head->port, doing, handler, 0);
}

/* The steps of fy_run before and after a task. */
void fy_task_begin(ferry *f, uint16_t handler);
void fy_task_end(ferry *f);

/* fy_run inline, while neither the time of handlers nor a profile of tasks is taken. The caller
 * makes the call between the two functions. False: the caller must use fy_run. */
static inline bool fy_run_begin(ferry *f, fy_doing what, uint16_t handler)
{
    fy_head *head = (fy_head *)(void *)f;
    if (what == FY_DOING_TASK ? head->profile != NULL : head->account.timed)
        return false;
    if (what == FY_DOING_TASK) {
        fy_task_begin(f, handler);
        return true;
    }
    head->depth++;
    head->done++;
    fy_doing_set(f, what, handler);
    return true;
}

static inline void fy_run_end(ferry *f, fy_doing what)
{
    if (what == FY_DOING_TASK)
        fy_task_end(f);
    else
        ((fy_head *)(void *)f)->depth--;
}

static inline bool fy_in_handler(const ferry *f)
{
    return fy_head_of(f)->depth > 0;
}

/* As fy_send in the data lane, but a frame that would have to wait is checked, as by fy_send_paced.
 */
static inline int fy_send_checked(ferry *f, int rank, const fy_frame *frame, const char *call)
{
    return fy_in_handler(f) ? fy_send_paced(f, rank, frame, call)
                            : fy_send(f, FY_DATA, rank, frame);
}

/* Counts `bytes` of a copy or a record that waits here, outside queues, until an operation has
 * ended (fy_check_room). The second function subtracts them again. */
static inline void fy_owe(ferry *f, ptrdiff_t bytes)
{
    ((fy_head *)(void *)f)->owed_bytes += (size_t)bytes;
}

/* fy_run of a task opens a batch unless one is open, and closes it when enough time has passed.
 * While a batch is open, the next task costs less, if it runs immediately. Otherwise fy_batch_end
 * is called before anything else is done. */
static inline bool fy_batch_is_open(const ferry *f)
{
    return fy_head_of(f)->account.batch_tasks != 0;
}

void fy_batch_end(ferry *f);

int fy_handler_add(ferry *f, const char *name, fy_handler_kind kind, fy_any_fn *fn,
                   ferry_handler *out);

/* A handler's function by index; NULL when it is not of that kind. */
static inline fy_any_fn *fy_handler_find(const ferry *f, uint16_t index, fy_handler_kind kind)
{
    const fy_handlers *h = &fy_head_of(f)->handlers;
    return index < h->count && h->entries[index].kind == kind ? h->entries[index].fn : NULL;
}

/* Fails `call`, which was given a handler of the wrong type. The type that it needs is "" for
 * requests, "object_" or "memory_". FERRY_EINVAL. */
int fy_handler_refuse(ferry *f, const char *call, uint16_t index, const char *type);

const char *fy_handler_name(const ferry *f, uint16_t index);
/* A hash that is equal on two ranks if the handler of that index, and all before it, are the same
 * on both. 0 for no handler. */
uint32_t fy_handler_signature(const ferry *f, uint16_t index);

/* Operations. fy_op_start makes a record from `track` (0 when it is NULL) for a frame's `op` field;
 * the target's layer answers with fy_op_end_remote; local ends use fy_op_end. Each started
 * operation ends once, in a poll. */
FY_SHARED int fy_op_start(ferry *f, const ferry_track *track, int rank, int tag, size_t size_bytes,
                          uint32_t *op);
FY_SHARED void fy_op_submitted(ferry *f, uint32_t op);

/* Stands in a frame instead of the data that are lent. */
typedef struct fy_loan {
    uint64_t address, size_bytes, kind;
} fy_loan;

/* Whether data of an operation are lent to `rank` rather than copied (lend.c): only where its
 * target tells its end after it has read them. */
bool fy_may_lend(const ferry *f, int rank, const void *data, size_t size_bytes, uint32_t op);

/* Makes the operation report submitted when its target has told its end. Turns the frame into one
 * that names its data, by `loan`. */
void fy_lend(ferry *f, fy_frame *frame, fy_loan *loan);

/* Whether the program learns of the end of the operation that `track` describes. If not, its target
 * need not tell the end: the operation ends when it has been submitted. progressive-messages.txt
 * 5.2. */
static inline bool fy_track_asks(const ferry_track *track)
{
    return track->size != sizeof(*track) || track->completed != NULL || track->failed != NULL ||
           track->timed_out != NULL || track->op != NULL;
}

FY_SHARED void fy_op_end(ferry *f, uint32_t op, int error);
/* Removes an operation whose call fails. Nothing is reported of it, whatever happens to its frames.
 */
FY_SHARED void fy_op_drop(ferry *f, uint32_t op);
/* Says whether the call that starts it polls. If so, its callbacks wait until that call returns.
 * Returns the previous value. fy_send_paced says so itself for the frame's `op`. */
bool fy_op_hold(ferry *f, uint32_t op, bool held);
bool fy_op_is_pending(const ferry *f, uint32_t op);
/* Sends a frame for which another rank's operation waits. With the memory of fy_op_end_reserve it
 * does not fail. */
FY_SHARED void fy_op_tell(ferry *f, int rank, const fy_frame *frame);
void fy_op_end_remote(ferry *f, int rank, uint32_t op, int error);

/* In an operation's name: it ends when its target takes it up. */
#define FY_OP_ON_ARRIVAL 0x80000000u

/* The other values of a receipt. */
typedef struct fy_op_about {
    ferry_handler handler;
    ferry_object object;
    void *local_address;
    uint64_t remote_address;
} fy_op_about;
void fy_op_describe(ferry *f, uint32_t op, const fy_op_about *about);

/* `gone` is called when a pending operation is cancelled, times out or loses its peer. Its layer
 * then frees `arg` and does not end the operation any more. fy_op_owned gives `arg` while the
 * operation is pending with this same `gone`, otherwise NULL. */
typedef void fy_op_gone_fn(ferry *f, void *arg, uint32_t op, int error);
FY_SHARED void fy_op_own(ferry *f, uint32_t op, fy_op_gone_fn *gone, void *arg);
void *fy_op_owned(const ferry *f, uint32_t op, fy_op_gone_fn *gone);

/* ferry_quiesce does not wait for this operation: the program of another rank may do its part
 * later. */
FY_SHARED void fy_op_aside(ferry *f, uint32_t op);

/* Closing does not wait either: the program of another rank may never do its part. */
FY_SHARED void fy_op_lazy(ferry *f, uint32_t op);

/* A receive has matched its message. */
void fy_op_matched(ferry *f, uint32_t op, int rank, int tag, size_t size_bytes);

/* Ends with FERRY_ETOOLONG: the receive allowed `size_max` bytes. */
void fy_op_too_long(ferry *f, uint32_t op, size_t size_max);
void fy_op_too_long_remote(ferry *f, int rank, uint32_t op, size_t size_max);

/* The message of `op`, an operation of `rank`, was forwarded to `new_rank`, which its object
 * reached with its `movement`-th move. Both the rank that forwards it (`giver`) and the rank that
 * gets it say so. Until `new_rank` has said so, the operation fails if either of them dies.
 * Afterwards it fails if `new_rank` dies. */
void fy_op_moved(ferry *f, uint32_t op, int giver, int new_rank, uint32_t movement);
void fy_op_moved_remote(ferry *f, int rank, uint32_t op, int new_rank, uint32_t movement);

/* Whether `rank` has died or left, and everything it sent has been handled. */
bool fy_peer_is_gone(const ferry *f, int rank);

/* An object has moved to `rank`, with `count` units of work (fy_work_leaves). The second function:
 * an object has come from `rank`, which has a record. FERRY_ENOMEM: not counted. */
int fy_move_leaves(ferry *f, int rank, uint64_t count);
void fy_move_arrives(ferry *f, int rank);

/* The rank to ask in place of `rank`: its successor if it has left by ferry_leave, otherwise
 * `rank`. */
static inline int fy_peer_successor(const ferry *f, int rank)
{
    const int32_t *successors = fy_head_of(f)->successors;
    while (successors != NULL && successors[rank] >= 0)
        rank = successors[rank];
    return rank;
}

/* Whether objects may be sent to `rank`. It must be another rank that is present and does not
 * leave. If it joined later, it must have called ferry_quiesce, so that it knows their types. */
bool fy_peer_takes(const ferry *f, int rank);

/* Whether `rank`, which may be this one, has begun to leave. */
bool fy_peer_leaves(const ferry *f, int rank);

/* Sends a notice to `rank`. It counts as work until its handler calls fy_work_arrives and
 * fy_work_finished, so no quiescence ends before. FERRY_EPEER, FERRY_ENOMEM: nothing is counted. */
int fy_join_word(ferry *f, int rank, const fy_frame *frame);

/* The next rank after `after`, around the ring of ranks, to which objects may be sent; -1: there is
 * none. */
int fy_peer_taker(const ferry *f, int after);

/* `count` units of work go to another rank, or have come from it, in addition to what the other
 * calls count. They are finished on one rank and created on the other. If either rank dies, its
 * share can be told from the rest. FERRY_ENOMEM: not counted. [application thread] */
FY_SHARED int fy_work_leaves(ferry *f, int rank, uint64_t count);
FY_SHARED int fy_work_arrives(ferry *f, int rank, uint64_t count);

/* Whether there is memory for one call each of fy_op_end_remote and fy_op_moved_remote, if nothing
 * else is sent before. If there is none, a kind answers FY_LEAVE, and a later poll asks it again.
 */
FY_SHARED bool fy_op_end_reserve(ferry *f);

/* Keeps the memory for one end while application code sends, between the two calls. The next end
 * that is told then gets it. NULL: there is none, unless fy_op_end_reserve has just said that there
 * is. */
void *fy_op_end_hold(ferry *f);
void fy_op_end_release(ferry *f, void *held);

/* Keeps the message of a failing call and returns `error`. */
FY_SHARED int fy_fail(ferry *f, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As fy_sized_read; sets the error text of the rank. */
FY_SHARED int fy_read_sized(ferry *f, const char *who, const void *given, void *out,
                            size_t size_bytes);
/* As fy_sized_write; sets the error text of the rank. */
FY_SHARED int fy_write_sized(ferry *f, const char *who, void *out, const void *from,
                             size_t size_bytes);
/* A line on standard error that begins with the rank. */
FY_SHARED void fy_log(const ferry *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Logs that a frame, meant as `what`, is malformed and dropped; the first few of a rank only. From
 * then on quiescences and collectives fail (loss.h). [either thread] */
FY_SHARED void fy_bad_frame(ferry *f, int source, const fy_frame *frame, const char *what);

/* Adds a line to what a rank tells of itself. Text without room is left out. */
FY_SHARED void fy_why_line(fy_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* When the clock was last read for the account: a time for uses that need no precise one. And the
 * seconds since a time of this kind. [application thread] */
uint64_t fy_stamp(const ferry *f);
double fy_why_age(const ferry *f, uint64_t since_ns);

/* Answers for the rank while a task runs, if somebody has asked (why.h). [helper thread, control
 * lock held] */
void fy_why_helper(ferry *f);

/* This rank's account, for layers to add to. */
static inline ferry_stats *fy_stats(ferry *f)
{
    return &((fy_head *)(void *)f)->stats;
}

#endif
