/* Sending: directly to the port if it has room, otherwise to the peer's backlog.
 *
 * Order per (target, lane) holds because a frame goes to the port only if the target's backlog on
 * that lane is empty. The port's rings bound what is in flight. Outside handlers a caller waits for
 * room (fy_send_paced), so a backlog holds only frames of handlers. No call waits inside a handler,
 * and calls that wait take in frames that arrive. So two ranks that flood each other both make
 * progress.
 *
 * A layer may pace frames of its own: they wait for a permission of that layer as well (fy_pacing).
 * They have queues of their own, so that this rank's answers and other frames never wait for them.
 *
 * A frame on the data lane from a rank to itself waits in f->self for a poll: a handler is never
 * entered from inside another. */
#include "core/control.h"
#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/operation.h"
#include "core/outgoing.h"
#include "core/rank.h"
#include "core/work.h"

/* Bytes of requests to itself that a rank's main program may have waiting. */
enum { SELF_BYTES_MAX = 64 * 1024 };

/* Data of this size or more are worth lending. */
enum { LEND_MIN_BYTES = 4096 };

/* Rounds of polling before a caller without room sleeps. */
enum { ROOM_ROUNDS = 16 };

/* The queue of a lane, or of FY_PACED, if a frame waits in it; else NULL. */
static fy_queue *waiting(const ferry *f, int kind, int rank)
{
    if (f->head.slow_lanes == 0)
        return NULL;
    fy_queue *queue = fy_queue_find(&f->backlog, (uint32_t)(rank * FY_BACKLOGS + kind));
    return queue != NULL && queue->head != NULL ? queue : NULL;
}

bool fy_has_backlog(const ferry *f, int kind, int rank)
{
    return waiting(f, kind, rank) != NULL;
}

size_t fy_backlog_bytes(const ferry *f, int rank)
{
    const fy_queue *queue = waiting(f, FY_DATA, rank);
    return queue != NULL ? queue->bytes : 0;
}

__attribute__((cold)) size_t fy_answer_bytes(ferry *f, int rank)
{
    const fy_queue *paced = f->head.pacing->withheld(f) ? NULL : waiting(f, FY_PACED, rank);
    return fy_backlog_bytes(f, rank) + (paced != NULL ? paced->bytes : 0);
}

size_t *fy_kept_bytes(ferry *f)
{
    return &f->kept_bytes;
}

size_t fy_waiting_bytes(const ferry *f)
{
    return f->self.bytes + f->backlog.bytes + f->kept_bytes + f->head.owed_bytes + f->tags.bytes;
}

int fy_check_kept(ferry *f, const char *call, const char *why)
{
    size_t waiting_bytes = fy_waiting_bytes(f);
    if (waiting_bytes <= f->options.waiting_bytes)
        return 0;
    return fy_fail(f, FERRY_EAGAIN,
                   "%s: %zu bytes of tasks and messages wait on this rank, the limit for more of "
                   "its handlers is %zu (waiting_bytes, FERRY_WAITING_BYTES)%s",
                   call, waiting_bytes, f->options.waiting_bytes, why);
}

int fy_check_room(ferry *f, const char *call)
{
    return f->head.depth == 0 ? 0 : fy_check_kept(f, call, "");
}

/* Takes the packet on success. */
static __attribute__((cold)) bool keep(ferry *f, int kind, fy_packet *packet)
{
    bool filled = waiting(f, kind, packet->rank) != NULL;
    if (kind == FY_PACED && f->head.pacing->join(f, packet->rank, &packet->frame) != 0)
        return false;
    if (!fy_queue_set_push(&f->backlog, (uint32_t)(packet->rank * FY_BACKLOGS + kind), packet)) {
        if (kind == FY_PACED)
            f->head.pacing->leave(f, &packet->frame);
        return false;
    }
    f->head.slow_lanes += !filled;
    fy_rest_due(f);
    return true;
}

/* The first packet of a queue has gone. */
static void drop_first(ferry *f, fy_queue *queue)
{
    fy_packet *packet = fy_queue_set_unlink(&f->backlog, queue, NULL);
    if (queue->key % FY_BACKLOGS == FY_PACED)
        f->head.pacing->leave(f, &packet->frame);
    fy_packet_destroy(&f->packets, packet);
    f->head.slow_lanes -= queue->head == NULL;
}

static int no_memory(ferry *f, int rank, size_t size_bytes)
{
    return fy_fail(f, FERRY_ENOMEM,
                   "send: no memory to keep %zu bytes for rank %d until it has room", size_bytes,
                   rank);
}

/* `call`: a call of the program, for which there must be room here. NULL: frames that the program
 * does not send itself are exempt. */
static __attribute__((cold)) int keep_copy(ferry *f, int kind, int rank, const fy_frame *frame,
                                           const char *call)
{
    fy_lane lane = kind == FY_PACED ? FY_DATA : (fy_lane)kind;
    int error = call == NULL ? 0 : fy_check_room(f, call);
    if (error != 0)
        return error;
    fy_packet *packet = fy_packet_create(&f->packets, frame->size_bytes);
    if (packet == NULL)
        return no_memory(f, rank, frame->size_bytes);
    fy_packet_fill(packet, rank, lane, frame);
    if (lane == FY_DATA && rank == f->head.rank) {
        fy_queue_push(&f->self, packet);
        fy_rest_due(f);
        return 0;
    }
    if (!keep(f, kind, packet)) {
        fy_packet_destroy(&f->packets, packet);
        return no_memory(f, rank, frame->size_bytes);
    }
    return 0;
}

static __attribute__((cold)) int port_failed(ferry *f, int rank, int error)
{
    if (error == FERRY_EPEER)
        return fy_fail(f, error, "send: rank %d %s", rank, fy_peer_outcome(f, rank));
    return fy_fail(f, error, "send: the port cannot send to rank %d: %s", rank,
                   ferry_strerror(error));
}

/* `call`: as in keep_copy. */
static __attribute__((noinline)) int send_or_keep(ferry *f, fy_lane lane, int rank,
                                                  const fy_frame *frame, const char *call)
{
    if (lane == FY_DATA)
        fy_work_stirs(f);
    if ((rank == f->head.rank && lane == FY_DATA) || fy_has_backlog(f, (int)lane, rank))
        return keep_copy(f, (int)lane, rank, frame, call);
    int error = f->head.ops->transport.send(f->head.port, FY_APP, lane, rank, frame);
    if (error == 0)
        return 0;
    if (error == FERRY_EAGAIN)
        return keep_copy(f, (int)lane, rank, frame, call);
    /* No call of the program fails because such a frame is not sent. So no error text is written: a
     * call that has failed for another reason keeps its own. */
    bool unsaid =
        lane == FY_CONTROL || frame->kind == FY_KIND_COLLECTIVE || frame->kind == FY_KIND_LOSS;
    return error == FERRY_EPEER && unsaid ? error : port_failed(f, rank, error);
}

typedef int send_fn(ferry *f, int rank, const fy_frame *frame, const char *call);

static int send_data(ferry *f, int rank, const fy_frame *frame, const char *call)
{
    return send_or_keep(f, FY_DATA, rank, frame, call);
}

static __attribute__((cold)) int send_control(ferry *f, int rank, const fy_frame *frame,
                                              const char *call)
{
    return send_or_keep(f, FY_CONTROL, rank, frame, call);
}

static int try_control(ferry *f, int rank, const fy_frame *frame, const char *call)
{
    (void)call;
    return f->head.ops->transport.send(f->head.port, FY_APP, FY_CONTROL, rank, frame);
}

/* Counts the frame for the report of FERRY_PROFILE. */
static __attribute__((cold, noinline)) int send_counted(ferry *f, int rank, const fy_frame *frame,
                                                        const char *call, send_fn *send)
{
    fy_stretch stretch = fy_profile_begin(f);
    int error = send(f, rank, frame, call);
    fy_profile_end(f, &stretch, &f->head.profile->sent[frame->kind], frame->size_bytes);
    return error;
}

int fy_send(ferry *f, fy_lane lane, int rank, const fy_frame *frame)
{
    if (f->head.profile != NULL)
        return send_counted(f, rank, frame, NULL, lane == FY_DATA ? send_data : send_control);
    return send_or_keep(f, lane, rank, frame, NULL);
}

int fy_send_now(ferry *f, int rank, const fy_frame *frame)
{
    return f->head.profile != NULL ? send_counted(f, rank, frame, NULL, try_control)
                                   : try_control(f, rank, frame, NULL);
}

static int keep_paced(ferry *f, int rank, const fy_frame *frame, const char *call)
{
    return keep_copy(f, FY_PACED, rank, frame, call);
}

__attribute__((cold)) int fy_paced_keep(ferry *f, int rank, const fy_frame *frame)
{
    if (fy_peer_is_gone(f, rank)) /* frames that wait for it would be dropped without a word */
        return port_failed(f, rank, FERRY_EPEER);
    fy_work_stirs(f);
    return f->head.profile != NULL ? send_counted(f, rank, frame, NULL, keep_paced)
                                   : keep_paced(f, rank, frame, NULL);
}

/* Waits a little for room at a peer: polls, then sleeps for pauses that grow. */
static void wait_for_room(ferry *f, bool tasks, fy_patience *patience)
{
    if (fy_progress(f, tasks) > 0)
        *patience = (fy_patience){0};
    else
        f->head.unseen_bytes = 0; /* nothing has come */
    if (patience->rounds++ < ROOM_ROUNDS)
        return;
    fy_account_wait(f, fy_patience_pause(f, patience), NULL);
}

/* A call begins to wait until it can send to `rank`, for reports. */
static inline fy_doing begin_waiting(ferry *f, int rank)
{
    f->taker = rank;
    return fy_account_enter(f, FY_DOING_SEND);
}

__attribute__((cold)) void fy_paced_wait(ferry *f, int rank, bool (*waits)(ferry *f, int rank))
{
    fy_doing before = begin_waiting(f, rank);
    fy_patience patience = {0};
    while (waits(f, rank))
        wait_for_room(f, true, &patience);
    fy_account_leave(f, before);
}

static __attribute__((cold)) int send_slowly(ferry *f, int rank, const fy_frame *frame)
{
    fy_doing before = begin_waiting(f, rank);
    fy_patience patience = {0};
    bool held = fy_op_hold(f, frame->op, true);
    int error = FERRY_EAGAIN;
    if (rank == f->head.rank) {
        while (f->self.bytes > SELF_BYTES_MAX)
            fy_progress(f, false);
        error = keep_copy(f, FY_DATA, rank, frame, NULL);
    }
    while (error == FERRY_EAGAIN) {
        wait_for_room(f, false, &patience);
        if (!fy_has_backlog(f, FY_DATA, rank))
            error = f->head.ops->transport.send(f->head.port, FY_APP, FY_DATA, rank, frame);
    }
    (void)fy_op_hold(f, frame->op, held);
    fy_account_leave(f, before);
    return error == 0 || rank == f->head.rank ? error : port_failed(f, rank, error);
}

static __attribute__((noinline)) int send_paced(ferry *f, int rank, const fy_frame *frame,
                                                const char *call)
{
    fy_work_stirs(f);
    if (f->head.depth > 0)
        return send_data(f, rank, frame, call);
    if (rank == f->head.rank || fy_has_backlog(f, FY_DATA, rank))
        return send_slowly(f, rank, frame);
    int error = f->head.ops->transport.send(f->head.port, FY_APP, FY_DATA, rank, frame);
    if (error == 0)
        return 0;
    return error == FERRY_EAGAIN ? send_slowly(f, rank, frame) : port_failed(f, rank, error);
}

int fy_send_paced(ferry *f, int rank, const fy_frame *frame, const char *call)
{
    if (f->head.profile != NULL)
        return send_counted(f, rank, frame, call, send_paced);
    /* The fast path of send_paced. */
    if (f->head.detours == 0 && rank != f->head.rank) {
        int error = f->head.ops->transport.send(f->head.port, FY_APP, FY_DATA, rank, frame);
        if (error == 0)
            return 0;
    }
    return send_paced(f, rank, frame, call);
}

/* Waits until the port has read the data that it was lent. No frame announces that. Pauses are
 * short compared with the time that has passed already. */
static __attribute__((cold)) void wait_for_return(ferry *f, const atomic_bool *lent)
{
    uint64_t start = f->head.ops->host.now(f->head.port);
    uint32_t rounds = 0;
    /* acquire: pairs with the port's release when it has read the data */
    while (atomic_load_explicit(lent, memory_order_acquire)) {
        if (fy_progress(f, false) > 0 || rounds++ < ROOM_ROUNDS)
            continue;
        uint64_t now = f->head.ops->host.now(f->head.port), pause = (now - start) / 8;
        pause = pause < FY_PAUSE_MAX_NS ? pause : FY_PAUSE_MAX_NS;
        fy_account_wait(f, now + pause, NULL);
    }
}

static __attribute__((cold)) int send_lent(ferry *f, int rank, const fy_frame *frame,
                                           const char *call)
{
    (void)call;
    fy_work_stirs(f);
    fy_doing before = begin_waiting(f, rank);
    fy_patience patience = {0};
    atomic_bool lent = false;
    int error = FERRY_EAGAIN;
    while (error == FERRY_EAGAIN) {
        if (fy_has_backlog(f, FY_DATA, rank) ||
            (error = f->head.ops->transport.send_lent(f->head.port, FY_APP, FY_DATA, rank, frame,
                                                      &lent)) == FERRY_EAGAIN)
            wait_for_room(f, false, &patience);
    }
    if (error == 0)
        wait_for_return(f, &lent);
    fy_account_leave(f, before);
    return error == 0 ? 0 : port_failed(f, rank, error);
}

int fy_send_lent(ferry *f, int rank, const fy_frame *frame, const char *call)
{
    if (f->head.ops->transport.send_lent == NULL || frame->size_bytes < LEND_MIN_BYTES ||
        f->head.depth > 0 || rank == f->head.rank)
        return fy_send_paced(f, rank, frame, call);
    return f->head.profile == NULL ? send_lent(f, rank, frame, call)
                                   : send_counted(f, rank, frame, call, send_lent);
}

int fy_send_packet(ferry *f, fy_packet *packet)
{
    int rank = packet->rank;
    if (f->head.profile != NULL)
        f->head.profile->sent[packet->frame.kind].calls++;
    if (rank == f->head.rank && packet->lane == FY_DATA) {
        fy_queue_push(&f->self, packet);
        fy_rest_due(f);
        return 0;
    }
    int error = FERRY_EAGAIN;
    if (!fy_has_backlog(f, (int)packet->lane, rank))
        error =
            f->head.ops->transport.send(f->head.port, FY_APP, packet->lane, rank, &packet->frame);
    if (error == FERRY_EAGAIN) {
        if (!keep(f, (int)packet->lane, packet))
            fy_queue_push(&f->orphans, packet);
        fy_rest_due(f);
        return 0;
    }
    fy_packet_destroy(&f->packets, packet);
    return error == 0 ? 0 : port_failed(f, rank, error);
}

__attribute__((cold)) int fy_paced_release(ferry *f, int rank)
{
    for (fy_queue *queue; (queue = waiting(f, FY_PACED, rank)) != NULL;) {
        int error = send_data(f, rank, &queue->head->frame, NULL);
        if (error == FERRY_ENOMEM)
            return error;
        drop_first(f, queue);
    }
    return 0;
}

/* Sends from one queue until the port has no more room. */
static int flush_queue(ferry *f, fy_queue *queue)
{
    int count = 0;
    bool paced = queue->key % FY_BACKLOGS == FY_PACED;
    if (paced && waiting(f, FY_DATA, queue->head->rank) != NULL)
        return 0;
    while (queue->head != NULL && !(paced && f->head.pacing->withheld(f))) {
        const fy_packet *head = queue->head;
        int error =
            f->head.ops->transport.send(f->head.port, FY_APP, head->lane, head->rank, &head->frame);
        if (error == FERRY_EAGAIN || error == FERRY_ENOMEM)
            break;
        fy_unseen_count(f, head->frame.size_bytes);
        drop_first(f, queue);
        count++;
    }
    return count;
}

/* Orphans are single frames without memory for a queue of their own; their order does not matter.
 */
static __attribute__((cold)) int flush_orphans(ferry *f)
{
    int count = 0;
    for (fy_packet *before = NULL, *at = f->orphans.head, *next; at != NULL; at = next) {
        next = at->next;
        if (f->head.ops->transport.send(f->head.port, FY_APP, at->lane, at->rank, &at->frame) ==
            FERRY_EAGAIN) {
            before = at;
            continue;
        }
        fy_packet_destroy(&f->packets, fy_queue_unlink(&f->orphans, before));
        count++;
    }
    return count;
}

__attribute__((cold)) int fy_backlog_flush(ferry *f)
{
    int count = f->orphans.head == NULL ? 0 : flush_orphans(f);
    for (fy_queue *queue = f->backlog.first, *next; queue != NULL; queue = next) {
        next = queue->next;
        count += flush_queue(f, queue);
    }
    return count;
}
