/* Progress: one round handles, in this order, callbacks that are due, requests kept by earlier
 * tag-selective polls (tags.h), the rank's requests to itself, frames of the port, and the layers'
 * own work.
 *
 * Held requests of a source are handled before newer frames of it. While some are held, the frames
 * of that source stay in the port. A tag-selective poll may pass over held requests, and holds a
 * limited number of bytes per source. Frames beyond that stay in the port, so that their sender
 * waits.
 *
 * Most polls find nothing. Words say whether a round has anything to do beside the data lane
 * (`noise`). If they are all 0, a poll looks at the data lane, and ends. */
#include <assert.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/pause.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/profile.h"
#include "core/rank.h"
#include "core/why.h"

/* The largest number of rounds in a row that only handle frames that are complete (fy_frame_done).
 */
enum { SHORT_ROUNDS = 8 };

/* Other ranks may wait for a lost frame, and it may be counted as work forever. So the rank ends,
 * and the job with it, unless the job survives deaths. */
static __attribute__((cold, noinline)) void end_damaged(const ferry *f, int source)
{
    fy_log(f, "messages from rank %d are lost, as shared memory was overwritten: this rank ends",
           source);
    _exit(1);
}

static fy_verdict dispatch(ferry *f, fy_kind_fn *const kinds[FY_KINDS], int source,
                           const fy_frame *frame)
{
    if (frame->kind < FY_KINDS && kinds[frame->kind] != NULL && source >= 0 &&
        source < f->head.ranks)
        return kinds[frame->kind](f, source, frame);
    if (fy_frame_is_lost(frame))
        end_damaged(f, source);
    fy_bad_frame(f, source, frame, "a frame of unknown kind");
    return FY_TAKEN;
}

fy_verdict fy_dispatch(ferry *f, int source, const fy_frame *frame)
{
    return dispatch(f, f->kinds, source, frame);
}

static __attribute__((noinline)) fy_verdict deliver_slowly(ferry *f, int source,
                                                           const fy_frame *frame)
{
    if (f->peers.gone_count != 0 && fy_peer_is_gone(f, source) && !fy_peers_arrived(f, source))
        return FY_TAKEN;
    if (f->head.slow_lanes != 0 && fy_refuses(f, source, frame))
        return FY_LEAVE;
    return !f->filtered && f->tags.count == 0 ? dispatch(f, f->kinds, source, frame)
                                              : fy_tags_deliver(f, source, frame);
}

fy_verdict fy_data_deliver(void *context, int source, const fy_frame *frame)
{
    ferry *f = context;
    /* The fast path of deliver_slowly. */
    if (((uint32_t)f->peers.gone_count | f->head.slow_lanes | f->tags.count | f->filtered) == 0 &&
        frame->kind < FY_KINDS && (uint32_t)source < (uint32_t)f->head.ranks &&
        f->kinds[frame->kind] != NULL)
        return f->kinds[frame->kind](f, source, frame);
    return deliver_slowly(f, source, frame);
}

/* Delivers the frames that the rank has sent to itself before this round. */
static int run_self(ferry *f)
{
    int count = 0;
    const fy_packet *last = f->self.tail;
    for (bool more = f->self.head != NULL; more && count < FY_POLL_BUDGET; count++) {
        fy_packet *packet = f->self.head;
        more = packet != last;
        /* Unlinked first: the handler may send to this rank again. */
        fy_queue_unlink(&f->self, NULL);
        if (fy_data_deliver(f, packet->rank, &packet->frame) == FY_LEAVE) {
            packet->next = f->self.head;
            f->self.head = packet;
            f->self.bytes += fy_packet_bytes(packet);
            if (f->self.tail == NULL)
                f->self.tail = packet;
            break;
        }
        fy_packet_destroy(&f->packets, packet);
    }
    return count;
}

/* Not counted by a profile: its rows are the application thread's, and the helper polls here too.
 */
static fy_verdict deliver_control(void *context, int source, const fy_frame *frame)
{
    ferry *f = context;
    fy_verdict verdict =
        dispatch(f, f->head.profile != NULL ? f->head.profile->kinds : f->kinds, source, frame);
    if (verdict == FY_LEAVE) /* relaxed: see wait.c */
        atomic_store_explicit(&f->control_left, true, memory_order_relaxed);
    return verdict;
}

int fy_control_poll(ferry *f)
{
    return f->head.ops->transport.poll(f->head.port, FY_CONTROL, FY_POLL_BUDGET, deliver_control,
                                       f);
}

void fy_layers_signal(ferry *f)
{
    if (!f->control_shared)
        fy_layers_due(f);
}

void fy_layer_watch(ferry *f, const _Atomic uint32_t *word)
{
    f->watch = word;
}

/* Whether the helper or another rank may have left something for a layer. */
static inline bool is_called(const ferry *f)
{
    /* relaxed: the layer acquires */
    return f->control_shared || atomic_load_explicit(f->watch, memory_order_relaxed) != 0;
}

/* Runs the layers that are due. One may continue with the results of another. */
static int run_layers(ferry *f)
{
    int count = 0;
    for (uint32_t due = f->head.due & (FY_DUE_REST - 1); due != 0; due &= due - 1)
        count += fy_layer_list[__builtin_ctz(due)]->progress(f);
    f->head.done += (uint64_t)count;
    if (count > 0)
        fy_layers_due(f);
    return count;
}

/* For calls that wait for room or for a tag, in which no pending work of a layer runs. The frame
 * for which this rank waits may follow a frame that stays in its ring until a layer has settled. */
static __attribute__((cold)) int settle_layers(ferry *f)
{
    int count = 0;
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->settle != NULL)
            count += fy_layer_at(i)->settle(f);
    return count;
}

static inline fy_doing account_enter(ferry *f, fy_doing doing)
{
    fy_doing before = f->head.account.base;
    if (doing != FY_DOING_MAIN)
        f->head.account.base = doing;
    if (f->head.account.base != f->head.account.doing)
        fy_doing_set(f, f->head.account.base, 0);
    if (f->head.account.timed)
        fy_account_to(f, FERRY_RUNTIME, 0);
    return before;
}

static inline void account_leave(ferry *f, fy_doing before)
{
    f->head.account.base = before;
    if (before != f->head.account.doing)
        fy_doing_set(f, before, 0);
    /* A sleep has left the account at runtime, timed or not. */
    if (f->head.account.timed || f->head.account.activity != FERRY_MAIN)
        fy_account_to(f, before == FY_DOING_MAIN ? FERRY_MAIN : FERRY_RUNTIME, 0);
}

fy_doing fy_account_enter(ferry *f, fy_doing doing)
{
    return account_enter(f, doing);
}

void fy_account_leave(ferry *f, fy_doing before)
{
    account_leave(f, before);
}

/* Takes in the frames that the port has on the data lane. */
static inline int poll_data(ferry *f)
{
    f->head.complete_frames = 0;
    int count =
        f->head.ops->transport.poll(f->head.port, FY_DATA, FY_POLL_BUDGET, fy_data_deliver, f);
    if (f->head.account.doing != f->head.account.base)
        fy_doing_set(f, f->head.account.base, 0);
    return count;
}

/* The part of a round beside the data lane. */
static int serve_the_rest(ferry *f, bool tasks)
{
    int count = 0;
    if (f->collectives.first != NULL)
        fy_collectives_advance(f);
    int control = fy_control_look(f);
    if (control > 0)
        fy_layers_due(f);
    count += control;
    /* relaxed: fy_why_tell looks again */
    if (atomic_load_explicit(&f->why_asked, memory_order_relaxed))
        fy_why_tell(f);
    if (f->head.slow_lanes != 0 || f->orphans.head != NULL)
        count += fy_backlog_flush(f);
    count += tasks ? run_layers(f) : settle_layers(f);
    if (f->leaves != NULL && f->leaves->waiting_count > 0)
        fy_leave_answer(f);
    if (f->peers.news)
        count += fy_peers_bury(f);
    if (f->collectives.first != NULL && fy_loss_is_due(f))
        fy_collectives_fail_lost(f);
    /* relaxed: pairs with the store in quiesce.c; the rest is read with the lock held */
    if (f->collectives.first != NULL &&
        atomic_load_explicit(&f->quiescence.seen, memory_order_relaxed))
        fy_quiesce_doubt(f);
    return count;
}

/* Whether a round has something to do beside the data lane and the layers. A call by the board
 * needs no rounds. */
static bool has_rest(const ferry *f)
{
    const fy_collective *c = f->collectives.first;
    return f->head.slow_lanes != 0 || f->tags.count != 0 || f->self.head != NULL ||
           f->ops_table.events != NULL || (c != NULL && (!c->by_board || c->next != NULL)) ||
           f->orphans.head != NULL || f->peers.news || f->refused != 0 || f->relieved != 0;
}

/* 0 if there is no work except that of the data lane. The words are combined before the test,
 * because none of them is likely to differ from 0. */
static inline uint64_t noise(const ferry *f)
{
    /* relaxed, all: what is missed now is seen by a later poll; who looks closer acquires */
    uint32_t called = atomic_load_explicit(f->watch, memory_order_relaxed);
    uint32_t changed =
        atomic_load_explicit(f->peers.changes, memory_order_relaxed) ^ f->peers.changes_seen;
    return f->head.due | called | changed |
           atomic_load_explicit(f->control_news, memory_order_relaxed);
}

/* Whether no work waits that the words do not announce; for assertions. */
static inline __attribute__((unused)) bool is_at_rest(ferry *f)
{
    for (int i = 0; i < FY_LAYERS; i++)
        if (!(f->head.due >> i & 1) && fy_layer_at(i)->busy != NULL && fy_layer_at(i)->busy(f) &&
            !is_called(f))
            return false;
    return !has_rest(f);
}

/* The rest of a round in which the data lane has given `taken` frames. If all of them are complete,
 * the call that waits for one of them continues immediately. The rest of the round can wait for a
 * few rounds. */
static inline int progress_finish(ferry *f, bool tasks, int taken)
{
    if (f->refused != 0 || f->relieved != 0)
        fy_refusals_settle(f);
    bool all = f->head.complete_frames == (uint32_t)taken;
    if (taken > 0 && all && f->short_rounds < SHORT_ROUNDS) {
        f->short_rounds++;
        return taken;
    }
    f->short_rounds = 0;
    if (!all)
        fy_layers_due(f);
    return taken + serve_the_rest(f, tasks);
}

static __attribute__((noinline)) int finish_round(ferry *f, bool tasks, int taken)
{
    return progress_finish(f, tasks, taken);
}

static __attribute__((noinline)) int progress_all(ferry *f, bool tasks, bool expire)
{
    int count = fy_peers_look(f);
    if (expire)
        count += fy_ops_expire(f);
    if (f->ops_table.events != NULL) {
        int told = fy_ops_deliver(f);
        count += told;
        if (told > 0)
            fy_layers_due(f);
        if (told > 0 && f->short_rounds < SHORT_ROUNDS) {
            f->short_rounds++;
            return count;
        }
    }
    if (f->tags.count != 0)
        count += fy_tags_run(f);
    if (f->self.head != NULL)
        count += run_self(f);
    if (count > 0 || is_called(f))
        fy_layers_due(f);
    count += finish_round(f, tasks, poll_data(f));
    if (!has_rest(f))
        f->head.due &= ~FY_DUE_REST;
    /* A second look halves the time for which a request that comes now goes unseen. */
    return count > 0 ? count : poll_data(f);
}

/* Counts the round. Whether it is time to look for timeouts. */
static inline bool is_time_to_look(ferry *f)
{
    return --f->ops_table.polls_left < 0;
}

int fy_progress(ferry *f, bool tasks)
{
    bool expire = is_time_to_look(f);
    if (expire || noise(f) != 0)
        return progress_all(f, tasks, expire);
    assert(is_at_rest(f));
    int taken = poll_data(f);
    return taken > 0 ? finish_round(f, tasks, taken) : 0;
}

bool fy_rank_idle(ferry *f)
{
    if (f->ops_table.events != NULL || f->tags.count != 0 || f->self.head != NULL ||
        f->head.slow_lanes != 0 || f->orphans.head != NULL)
        return false;
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->busy != NULL && fy_layer_at(i)->busy(f))
            return false;
    return true;
}

void fy_progress_yield(ferry *f, fy_lookout *lookout)
{
    if (f->head.ops->heap.await != NULL && !is_time_to_look(f) && noise(f) == 0)
        fy_account_wait(f, FY_ONE_YIELD, lookout);
}

int fy_check_outside(ferry *f, const char *call)
{
    if (f->head.depth == 0)
        return 0;
    return fy_fail(f, FERRY_ESTATE, "%s: not allowed inside a handler or callback", call);
}

int fy_poll_result(const ferry *f, uint64_t before)
{
    uint64_t done = f->head.done - before;
    return done > INT32_MAX ? INT32_MAX : (int)done;
}

/* A poll that has more work than one look. It has been counted. */
static __attribute__((noinline)) int poll_slowly(ferry *f)
{
    f->ops_table.polls_left++;
    int error = fy_check_outside(f, "poll");
    if (error != 0)
        return error;
    uint64_t before = f->head.done;
    fy_doing doing = account_enter(f, FY_DOING_MAIN);
    fy_progress(f, true);
    account_leave(f, doing);
    return fy_poll_result(f, before);
}

/* The end of a poll that was quiet, of the main program. */
static __attribute__((noinline)) int poll_finish(ferry *f, int taken)
{
    if (f->head.account.doing != FY_DOING_MAIN)
        fy_doing_change(f, FY_DOING_MAIN, 0);
    (void)progress_finish(f, true, taken);
    /* Tasks may have run, whose time is taken. */
    if (f->head.account.timed)
        account_leave(f, FY_DOING_MAIN);
    return fy_poll_result(f, f->done_before);
}

/* In the main program, outside Ferry, and untimed (FY_DUE_ALWAYS), there is nothing to account. */
int ferry_poll(ferry *f)
{
    if (is_time_to_look(f) || (noise(f) | f->head.depth) != 0)
        return poll_slowly(f);
    assert(is_at_rest(f));
    f->done_before = f->head.done;
    f->head.complete_frames = 0;
    int taken =
        f->head.ops->transport.poll(f->head.port, FY_DATA, FY_POLL_BUDGET, fy_data_deliver, f);
    return taken <= 0 ? taken : poll_finish(f, taken);
}
