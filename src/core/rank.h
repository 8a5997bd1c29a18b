/* Rank: the fields of a `ferry`. Private to core.
 *
 * Invariant: everything here belongs to the application thread, with two exceptions: control_lock
 * guards `wave`, and some fields are constant after open. */
#ifndef FY_RANK_H
#define FY_RANK_H

#include <pthread.h>
#include <signal.h>

#include "base/mutex.h"
#include "base/pool.h"
#include "base/table.h"
#include "core/collective.h"
#include "core/leave.h"
#include "core/loss.h"
#include "core/mail.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/profile.h"
#include "core/queue.h"
#include "core/quiesce.h"
#include "core/run.h"
#include "core/tags.h"
#include "core/trace.h"

enum {
    FY_HANDLERS_MAX = FY_HANDLERS_OWN + 1024,
    FY_ERROR_BYTES = 512,
    FY_BACKLOG_BYTES = 256 * 1024, /* the default of ferry_options */
    /* Frames that one poll takes from each lane, so that no lane starves the rest. */
    FY_POLL_BUDGET = 64,
};

/* How far ferry_close has come: not begun, before its first barrier, before its last one. */
typedef enum fy_closing { FY_CLOSING_NOT, FY_CLOSING_FIRST, FY_CLOSING_LAST } fy_closing;

/* The layers above, by fy_layer (layers.c). */
extern FY_SHARED const fy_layer_ops *const fy_layer_list[FY_LAYERS];
extern FY_SHARED const fy_layer_ops fy_layer_absent;

/* Has the frames of `count` kinds from `first` on handled as their tables say. */
void fy_kinds_set(ferry *f, int first, int count);

/* A layer's part; empty if the program is not linked to the layer. */
static inline const fy_layer_ops *fy_layer_at(int layer)
{
    return fy_layer_list[layer] != NULL ? fy_layer_list[layer] : &fy_layer_absent;
}

/* The thread of ferry_background_begin (background.c). */
typedef struct fy_background {
    pthread_t thread;
    /* Where `errno` of the thread lies: no other thread has it there. It tells a handler that ends
     * its own thread from a call while a handler runs. */
    _Atomic(int *) errno_at;
    bool begun;
    atomic_bool ends, left;
    stack_t crash_stack; /* of the thread that began, which only computes */
} fy_background;

struct ferry {
    fy_head head; /* first: the layers above find it there */

    fy_kind_fn *kinds[FY_KINDS];
    bool filtered; /* a tag-selective poll runs, for filter_tag */
    int32_t filter_tag;
    /* Requests are left in their rings if their source does not take the answers (progress.c). */
    int refused;            /* 1 + such a peer of this round; 0: there is none */
    int relieved;           /* 1 + the peer from which this round takes all */
    int told;               /* 1 + the peer that was told of it last */
    _Atomic int refuser;    /* 1 + the peer that told this rank last */
    uint32_t tell_pause_ns; /* until the next peer is told; 0: none was in the last round */
    uint64_t tell_since_ns; /* the begin of that pause */
    int taker;              /* with FY_DOING_SEND: the rank to which the call sends */
    uint32_t short_rounds;  /* see fy_progress */
    uint64_t done_before;   /* as the present call of ferry_poll found it */
    /* Words beside `due` that are 0 while nothing has come: the word of the layer that asked for
     * it, and the port's word of the control lane. */
    const _Atomic uint32_t *watch;
    const _Atomic uint64_t *control_news;
    bool control_tells;            /* that word is the port's */
    uint32_t layers_mask;          /* of `due`: those that have progress */
    _Atomic uint64_t work_shipped; /* created as well, by either thread */

    fy_pool packets;
    fy_queue_set backlog;     /* by rank * FY_BACKLOGS + lane, or FY_PACED */
    atomic_bool why_asked;    /* by a frame, and not told yet */
    atomic_bool control_left; /* a control frame was left where it is */
    fy_tags tags;             /* what polls for a tag have kept */
    fy_queue self;            /* requests of the rank to itself */
    size_t kept_bytes;        /* of messages that the layers above keep, see fy_check_room */
    fy_queue orphans;         /* ends of operations that found no memory for a backlog */
    fy_pool broadcasts;       /* broadcasts passed on that have not ended (request_broadcast.c) */

    fy_ops ops_table;
    fy_peers peers;
    fy_mail mail;
    fy_collectives collectives;
    fy_quiescence quiescence;
    fy_leaves *leaves; /* NULL: no rank has ever begun to leave */
    fy_trace trace;
    fy_trace_file *file; /* NULL: FERRY_TRACE is not set */

    fy_mutex control_lock;
    void (*helper_poll)(ferry *f); /* how the helper polls the control lane; under the lock */
    bool control_shared;           /* a helper thread may poll the control lane */

    fy_port_info info;
    ferry_options options;
    void *user_data;
    bool kept_by_main;              /* ferry_main closes it */
    uint8_t closing;                /* fy_closing */
    bool ready;                     /* it joined, and has said that it takes objects */
    bool left;                      /* it has left, and is only freed */
    void (*after_close)(void *arg); /* frees what the port used; may be NULL */
    void *after_close_arg;
    void (*abort)(void *after_close_arg, int status); /* ends another launcher's job; may be NULL */
    char error_text[FY_ERROR_BYTES];
    fy_loss loss;
    fy_background background; /* while a thread of its own drives the rank */
};

/* Makes a rank over `port`, which it takes, and opens the layers. After a failure the port is
 * closed. */
int fy_rank_create(fy_port *port, const ferry_options *options, ferry **out);

/* As ferry_close, for a rank that ferry_main keeps as well. */
int fy_rank_close(ferry *f);

/* Polls until no frame of this rank waits to be sent and its operations have ended. The second
 * function says whether that is so. */
void fy_rank_drain(ferry *f);
bool fy_rank_is_drained(const ferry *f);

/* Tells the layers that the set of ranks that take objects has changed. */
void fy_layers_members(ferry *f);

/* Frees the rank immediately, without waiting for others. */
void fy_rank_destroy(ferry *f);

/* Progress. */

/* All layers are due. */
static inline void fy_layers_due(ferry *f)
{
    f->head.due |= f->layers_mask;
}

/* Called by code that makes work for a round that belongs to no layer (has_rest). */
static inline void fy_rest_due(ferry *f)
{
    f->head.due |= FY_DUE_REST;
}

/* One round: handles the frames that wait here and those that have arrived, and, with `tasks`, runs
 * the layers' own work. Returns how much there was. Not in handlers. */
int fy_progress(ferry *f, bool tasks);

/* Lets the layer of its kind handle a frame, whatever the poll selects. */
fy_verdict fy_dispatch(ferry *f, int source, const fy_frame *frame);

/* Takes a frame that has come on the data lane. */
fy_verdict fy_data_deliver(void *context, int source, const fy_frame *frame);
fy_verdict fy_lent_deliver(ferry *f, int source, const fy_frame *frame);

/* The result of a poll: how much was done since `done` was `before`. */
int fy_poll_result(const ferry *f, uint64_t before);

/* How long a caller has waited for something in vain. */
typedef struct fy_patience {
    uint32_t rounds;
    uint32_t pause_ns;   /* for waiting for room, which no frame announces */
    fy_lookout *lookout; /* what ends a wait beside frames; NULL: nothing */
} fy_patience;

/* The next pause of a caller that waits for room. Returns its end: the first takes FY_PAUSE_MIN_NS,
 * each next one twice as long. */
enum { FY_PAUSE_MIN_NS = 2000, FY_PAUSE_MAX_NS = 512 * 1000 };
uint64_t fy_patience_pause(ferry *f, fy_patience *patience);

/* Whether the next fy_progress_wait sleeps if it finds no work. */
bool fy_patience_ends(const ferry *f, const fy_patience *patience);

/* One round, with tasks. If there was no work, sleeps until there may be some, but not beyond
 * `deadline_ns`. The caller looks at its condition after each call. */
int fy_progress_wait(ferry *f, uint64_t deadline_ns, fy_patience *patience);

/* Lets another rank have the processor once, if nothing is left to do here. For a rank that has
 * just looked at what `lookout` looks at. It counts no round. */
void fy_progress_yield(ferry *f, fy_lookout *lookout);

/* Whether nothing is left to do here until a frame arrives. */
bool fy_rank_idle(ferry *f);

/* FERRY_ESTATE with a message when application code runs inside Ferry. */
int fy_check_outside(ferry *f, const char *call);

/* FERRY_EINVAL with an error text if `rank` is no rank of the job. */
int fy_check_rank(ferry *f, const char *call, int rank);

/* Sending. */

/* The bytes that wait on this rank: `waiting_bytes` limits them. */
size_t fy_waiting_bytes(const ferry *f);

/* Bytes of frames of the data lane that wait for `rank`, except paced ones without permission. */
size_t fy_answer_bytes(ferry *f, int rank);

/* Paced frames for `rank` need no permission any more. FERRY_ENOMEM: some do. */
int fy_paced_release(ferry *f, int rank);

/* Sends what waits for room. Returns packets sent. */
int fy_backlog_flush(ferry *f);

/* Sends the end of an operation in a packet that was created beforehand, so that it cannot fail for
 * memory. Takes it. FERRY_EPEER. */
int fy_send_packet(ferry *f, fy_packet *packet);

/* The end of a collective or of ferry_close if some ranks have gone and the program survives that.
 * Returns when all living ranks have called it and nothing is in flight. */
int fy_quiesce(ferry *f, fy_doing doing);

/* Requests. */

/* The frame that carries `message`, whose data it names. FERRY_EINVAL with a message. */
int fy_request_frame(ferry *f, const ferry_message *message, fy_frame *out);

/* Runs the handler that `frame` names, as a request from `source`; the caller counts the work.
 * FERRY_ENOENT: there is none like it; it was logged. */
int fy_request_run(ferry *f, int source, const fy_frame *frame);

void fy_request_broadcast_pool_init(fy_pool *pool);

/* Kind functions of core. */
fy_hold_fn fy_request_hold;
fy_verdict fy_request_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_request_broadcast_deliver(ferry *f, int source, const fy_frame *frame);
/* Joining (join.c). A rank that has joined says, when it first quiesces, that it takes objects; and
 * says so to one that joins later. */
void fy_join_ready(ferry *f);
void fy_join_tell(ferry *f, int rank);
fy_verdict fy_ready_deliver(ferry *f, int source, const fy_frame *frame);

/* Refusals (refuse.c). fy_refuses: whether to leave a request in its ring, because its source does
 * not take the answers to earlier ones. fy_refusals_settle: called in the rounds after that. */
bool fy_refuses(ferry *f, int source, const fy_frame *frame);
void fy_refusals_settle(ferry *f);
/* [either thread] */
fy_verdict fy_refusal_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_op_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_collective_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_wave_deliver(ferry *f, int source, const fy_frame *frame);

/* Account. */

/* The rank does `activity` from now on; reads the clock. */
void fy_account_to(ferry *f, ferry_activity activity, uint32_t handler);

/* Counts the processor time from now on. The account has just been brought up to date. */
void fy_account_start_cpu(ferry *f);

/* Sleeps in the port, as idle time, until something comes or `deadline_ns`, or until `lookout`, if
 * not NULL, ends it. With deadline FY_ONE_YIELD it does not sleep, and the activity stays what it
 * was. */
#define FY_ONE_YIELD UINT64_C(1) /* in the past, as no other deadline is */
void fy_account_wait(ferry *f, uint64_t deadline_ns, fy_lookout *lookout);

/* At the start and the end of each call that polls. `doing` is what the port is told while it
 * waits. fy_account_leave restores what fy_account_enter returned. */
fy_doing fy_account_enter(ferry *f, fy_doing doing);
void fy_account_leave(ferry *f, fy_doing before);

uint32_t fy_handlers_signature(const ferry *f);
void fy_handlers_fini(ferry *f);

#endif
