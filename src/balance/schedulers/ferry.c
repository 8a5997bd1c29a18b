/* Ferry, the default: an idle rank gets waiting work within a few messages, wherever that work is.
 *
 * A rank without work sends one work request to its coordinator (coordinator.h), which finds a rank
 * to ask. A rank with work reports how much it can give whenever that changes by a factor. The rank
 * that is asked sends an object, or sends the work request on. No rank polls, and no work request
 * is refused: if it cannot be met now, it waits at the root of the coordinators until a rank
 * reports work.
 *
 * How much to give: one object, if a task takes long compared with a message. Otherwise as many
 * objects as take SLICE_US together, up to half of them. A rank then sends its work request when
 * its last task begins. The heaviest object goes first, both to other ranks and to this processor,
 * so that what is left for the end is small. If loads differ, coordinators also trade: see
 * coordinator.c.
 *
 * When not to give: a rank that had nothing and gets tasks gives none for a moment (GRACE_US, and
 * less if tasks are short). Many ranks may get their tasks together. Without the pause, the ranks
 * that are first ready to run would take objects that their neighbours are about to begin. With few
 * tasks per rank one such move costs a whole task at the end. The rank also does not begin
 * immediately, but after a thousandth of a task. Ranks that were told to begin send each other
 * tasks within moments. A rank takes these in only between tasks. So if it began immediately, it
 * could neither choose among them nor give them away. A slow network needs a longer pause: the rank
 * measures the time from a work request to the object that it brought, and waits three times as
 * long, at most a hundredth of a task.
 *
 * Steps: tasks are short and come again and again to the same objects. Then the work that a rank
 * lacks now is in flight to it, and an object that moves takes the tasks of later steps along. So
 * an idle rank asks after FY_FERRY_PAUSE_NS. The rank with the most load meets a work request
 * immediately, or the request is dropped, and repeated after a pause that grows. Once that is
 * FY_FERRY_LONG_NS, the steps may have ended, and the request is kept as others are. One object
 * moves at a time. Tasks run in the order in which they come, so that neighbours get their messages
 * in turn. Busy ranks do not trade. An object with at most a sixteenth of the greatest recent load
 * counts as one without load: messages that come between steps are no reason to move it. If only
 * such objects wait while a task runs for FY_FERRY_LONG_NS, the steps have ended. A rank takes up
 * the rule of steps when a rank with it asks it for work. At the first request of this kind,
 * coordinators tell all ranks. So ranks with much work that comes first do not wait for GRACE_US.
 *
 * Each task changes the load then, and words take a coordinator's time. After a report a rank is
 * silent for a time that depends on what it takes to send one, and it waits as long before it asks.
 * The last change is told when the silence ends: between two tasks, or by the helper.
 *
 * Cost of a move: a large object may take longer to pack and unpack than to run. Its first task on
 * another rank may take several times as long as later ones, because memory is used there for the
 * first time. A rank measures both. While a move takes longer than a task, a rank asks only when it
 * has been idle, in all, for as long as a move takes. So moves cost no more than the idle time that
 * they can end, whatever the program does. The same holds in steps. Ranks do not trade then.
 *
 * Time of travel: between hosts a large object may travel for longer than its task runs. A rank
 * learns how long objects take, and gives only those that arrive before it would begin them itself.
 * The first one goes alone. Work requests that come meanwhile are held, because a coordinator would
 * give them all to the first rank that knows.
 *
 * Tiny tasks take less than a word to another rank and its answer. Those count as a part of the
 * move then, so the rank is patient. In a program of steps its next message comes sooner, as a
 * rule. In steps its reports are rarer, and wake no helper.
 *
 * A work request may be lost if memory is short. After TIMEOUT_US it is sent again. */
#include "balance/schedulers/ferry.h"

#include <stdlib.h>

#include "balance/schedulers/policy.h"
#include "balance/schedulers/schedulers.h"
#include "base/alloc.h"
#include "base/pause.h"

enum { GIVE_MAX = 256, RESTED = -1, BACKOFF_NS = 500000 };

/* Whether to ask when the last task begins, because an answer takes longer than the rest of the
 * task. */
static bool asks_ahead(const ferry_scheduling *s, const ferry_policy *p)
{
    return (fy_measure_is_short(&p->measure) && !fy_ferry_is_patient(s, p)) ||
           !ferry_scheduling_preempts(s);
}

/* Steering may choose another one while the program runs. */
static uint64_t read_short(ferry_scheduling *s)
{
    return fy_policy_ns(s, "SHORT_US", 200, 0);
}

/* Sends a work request if there is no work left, or soon will be none. */
static void request(ferry_scheduling *s, ferry_policy *p)
{
    if (p->asked || p->waiting.count != 0 || (p->running != NULL && !asks_ahead(s, p)) ||
        !ferry_scheduling_is_on(s) || ferry_scheduling_acceptor_count(s) == 0)
        return;
    p->asked = true;
    p->requested_ns = ferry_scheduling_now(s);
    p->sent = p->paused || !fy_ferry_is_patient(s, p);
    if (!p->sent) {
        uint64_t cost_ns = fy_ferry_move_cost(s, p), pause_ns = fy_ferry_silence(s, p);
        cost_ns = cost_ns > p->idle_ns ? cost_ns - p->idle_ns : 0;
        pause_ns = pause_ns > FY_FERRY_PAUSE_NS ? pause_ns : FY_FERRY_PAUSE_NS;
        p->paused = true;
        p->asked_ns = p->requested_ns + (cost_ns > pause_ns ? cost_ns : pause_ns);
        fy_ferry_set_timer(s, p);
        return;
    }
    p->idle_ns = 0;
    p->measure.short_ns = read_short(s);
    p->asked_ns = p->requested_ns + fy_policy_timeout(s, p->timeout_ns);
    p->once = p->measure.steps && p->backoff_ns < FY_FERRY_LONG_NS;
    if (p->measure.steps) {
        p->asked_ns = p->requested_ns + p->backoff_ns;
        p->backoff_ns = fy_pause_longer(p->backoff_ns, p->timeout_ns);
    }
    fy_ferry_set_timer(s, p);
    fy_ferry_report(s, p, ferry_scheduling_rank(s), p->once);
}

static void fulfilled(ferry_scheduling *s, ferry_policy *p)
{
    p->asked = false;
    fy_ferry_set_timer(s, p);
}

/* The rank has work of its own again. */
static void cancel(ferry_scheduling *s, ferry_policy *p)
{
    fy_coordinator_note note = {
        .word = FY_COORDINATOR_CANCEL, .level = 1, .request = ferry_scheduling_rank(s)};
    fulfilled(s, p);
    if (!p->sent)
        p->idle_ns += ferry_scheduling_now(s) - p->requested_ns;
    if (p->once || !p->sent)
        return; /* none is kept */
    fy_coordinators_post(s, &p->coordinators, &note);
}

static void become_fresh(ferry_scheduling *s, ferry_policy *p)
{
    uint64_t grace_ns = fy_measure_grace(&p->measure);
    if (grace_ns < 1000 || p->measure.steps)
        return;
    uint64_t wait_ns = fy_measure_settle(&p->measure), now = ferry_scheduling_now(s);
    p->fresh = true;
    p->fresh_ns = now + grace_ns;
    p->settled_ns = wait_ns == 0 ? 0 : now + wait_ns;
    fy_ferry_set_timer(s, p);
}

/* Steps are short tasks that come again and again to the same objects. */
static void follow_rule(ferry_policy *p)
{
    if (p->waiting.in_order != p->measure.steps)
        fy_buckets_set_order(&p->waiting, p->measure.steps);
}

static void policy_add(ferry_scheduling *s, ferry_policy *p, ferry_schedulable *item)
{
    bool idle = p->waiting.count == 0 && p->running == NULL;
    bool again = item->mark < 0;
    if (!fy_buckets_add(&p->waiting, item))
        return;
    p->backoff_ns = BACKOFF_NS;
    p->paused = false;
    if (item->arrived) {
        p->measure.newcomer = item;
        p->measure.first_ns = 0;
    }
    if (item->arrived && p->asked) {
        fy_measure_reach(s, &p->measure, p->requested_ns);
        fulfilled(s, p);
    } else if (p->asked) {
        cancel(s, p);
    }
    if (idle && !item->arrived && ferry_scheduling_acceptor_count(s) > 0)
        become_fresh(s, p);
    fy_measure_came(s, &p->measure, item, again);
    follow_rule(p);
    fy_ferry_update(s, p);
}

/* Whether to trade, as things stand now. */
static bool trades(const ferry_scheduling *s, const ferry_policy *p,
                   const fy_coordinator_note *note)
{
    if (p->measure.mean_ns != 0 && p->measure.mean_ns < fy_ferry_move_cost(s, p))
        return false;
    return fy_buckets_first(&p->waiting) != fy_buckets_last(&p->waiting) &&
           fy_coordinator_trade_is_fair(fy_ferry_heaviest(p), fy_ferry_load_here(p), note);
}

static void give(ferry_scheduling *s, ferry_policy *p, const fy_coordinator_note *note)
{
    int thief = note->request;
    bool trade = note->word == FY_COORDINATOR_TRADE;
    uint32_t count = fy_ferry_supply(s, p), away = 0;
    bool known = note->once || p->measure.steps ||
                 fy_scheduling_travel_ns(s, p->measure.mean_ns, &away) != UINT64_MAX;
    if (!known && away != 0 && p->held_count < FY_FERRY_HELD_MAX) {
        p->held[p->held_count++] = *note;
        return;
    }
    uint64_t wanted = p->measure.mean_ns == 0 || p->measure.steps || !known
                          ? 1
                          : 1 + p->slice_ns / (p->measure.mean_ns + fy_ferry_move_cost(s, p));
    p->reported -= p->reported > 0; /* the coordinator has counted the work request */
    if (!ferry_scheduling_accepts(s, thief)) {
        fy_ferry_update(s, p);
        return; /* it has gone, or will repeat its work request */
    }
    if (count == 0 || (trade && !trades(s, p, note))) {
        bool kept = !trade && !note->once;
        fy_ferry_report(s, p, kept ? thief : -1, p->measure.steps && !kept);
        return;
    }
    count = (count + 1) / 2;
    if (count > wanted)
        count = (uint32_t)wanted;
    if (count > GIVE_MAX)
        count = GIVE_MAX;
    for (; count > 0 && fy_ferry_supply(s, p) > 0; count--) {
        ferry_schedulable *item = fy_buckets_last(&p->waiting);
        fy_buckets_remove(&p->waiting, item);
        ferry_scheduling_migrate(s, item, thief);
    }
    fy_ferry_hurry(s, p);
    fy_ferry_update(s, p);
}

static void give_held(ferry_scheduling *s, ferry_policy *p)
{
    int count = p->held_count;
    p->held_count = 0;
    for (int i = 0; i < count; i++) {
        const fy_coordinator_note note = p->held[i]; /* it may be held again */
        give(s, p, &note);
    }
}

static void asked(ferry_scheduling *s, void *context, const fy_coordinator_note *note)
{
    ferry_policy *p = context;
    if (note->once) {
        fy_measure_follow(s, &p->measure);
        p->fresh = false;
    }
    follow_rule(p);
    give(s, context, note);
}

static void again(ferry_scheduling *s, void *context)
{
    ferry_policy *p = context;
    fy_ferry_report(s, p, p->asked ? ferry_scheduling_rank(s) : -1,
                    p->asked ? p->once : p->measure.steps);
}

static void send_note(ferry_scheduling *s, void *context, int rank, const fy_coordinator_note *note)
{
    const ferry_policy *p = context;
    bool reports = note->word == FY_COORDINATOR_UP && note->request < 0;
    uint64_t words[FERRY_SCHEDULER_WORDS];
    fy_coordinator_note_write(note, words);
    fy_scheduling_tell(s, rank, words, reports && note->once && fy_measure_is_tiny(&p->measure));
    fy_ferry_hurry(s, p);
}

static int policy_create(ferry_scheduling *s, void **out)
{
    ferry_policy *p = fy_calloc(1, sizeof *p);
    if (p == NULL)
        return FERRY_ENOMEM;
    p->measure.short_ns = read_short(s);
    p->slice_ns = fy_policy_ns(s, "SLICE_US", 500, 0);
    p->measure.grace_ns = fy_policy_ns(s, "GRACE_US", 2000, 0);
    p->timeout_ns = fy_policy_ns(s, "TIMEOUT_US", 250e3, 1);
    p->backoff_ns = BACKOFF_NS;
    p->coordinators.send = send_note;
    p->coordinators.asked = asked;
    p->coordinators.again = again;
    p->coordinators.context = p;
    int children = ferry_scheduling_count(s, "CHILDREN", 32, 2, FY_COORDINATOR_CHILDREN_MAX);
    int error = fy_coordinators_init(s, &p->coordinators, children);
    if (error != 0) {
        fy_coordinators_fini(&p->coordinators);
        free(p);
        return error;
    }
    *out = p;
    return 0;
}

static void policy_destroy(ferry_scheduling *s, void *arg)
{
    ferry_policy *p = arg;
    (void)s;
    fy_coordinators_fini(&p->coordinators);
    free(p);
}

static void stop_clock(ferry_scheduling *s, ferry_policy *p)
{
    bool measured = p->measure.started_ns != 0;
    fy_measure_end(s, &p->measure, p->running);
    if (measured && p->fresh && fy_measure_is_short(&p->measure)) {
        p->fresh = false;
        fy_ferry_set_timer(s, p);
    }
}

/* Work has just come to a rank that had none, and more may be in flight. */
static bool settles(ferry_scheduling *s, ferry_policy *p)
{
    if (p->settled_ns != 0 && ferry_scheduling_now(s) < p->settled_ns)
        return true;
    p->settled_ns = 0;
    return false;
}

static ferry_schedulable *policy_next(ferry_scheduling *s, void *arg)
{
    ferry_policy *p = arg;
    if (settles(s, p))
        return NULL;
    ferry_schedulable *item = fy_buckets_pop(&p->waiting);
    p->running = item;
    if (item != NULL) {
        p->running_load = item->load;
        fy_measure_begin(s, &p->measure, item->load / item->pending);
        p->waiting.floor = fy_measure_floor(&p->measure);
        fy_ferry_update(s, p);
    } else if (p->fresh || p->overdue) {
        p->fresh = false;
        fy_ferry_set_timer(s, p);
    }
    request(s, p);
    return item;
}

static void end_running(ferry_policy *p)
{
    p->running = NULL;
    p->running_load = 0;
}

static void policy_activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    ferry_policy *p = arg;
    if (item != p->running) {
        policy_add(s, p, item);
        return;
    }
    /* The rank is not idle yet and has nothing to report: without a running task it can give as
     * much as before. */
    stop_clock(s, p);
    end_running(p);
    if (!fy_buckets_add(&p->waiting, item))
        item->mark = RESTED;
    else if (p->asked)
        cancel(s, p);
}

static void policy_notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    policy_add(s, arg, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    ferry_policy *p = arg;
    if (item == p->running) {
        stop_clock(s, p);
        end_running(p);
        return;
    }
    fy_buckets_remove(&p->waiting, item);
    fy_ferry_update(s, p);
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const ferry_policy *p = arg;
    (void)s;
    return p->waiting.count == 0;
}

static void policy_message(ferry_scheduling *s, void *arg, int source,
                           const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    ferry_policy *p = arg;
    fy_coordinator_note note;
    if (fy_coordinator_note_read(words, &note))
        fy_coordinators_hear(s, &p->coordinators, source, &note);
}

static void policy_wake(ferry_scheduling *s, void *arg)
{
    ferry_policy *p = arg;
    uint64_t now = ferry_scheduling_now(s);
    if (p->fresh && now >= p->fresh_ns)
        p->fresh = false;
    if (now >= p->look_ns) {
        p->look_ns = 0;
        if (p->running != NULL && fy_measure_lasts(s, &p->measure, FY_FERRY_LONG_NS))
            follow_rule(p);
    }
    if (p->asked && now >= p->asked_ns)
        p->asked = false;
    give_held(s, p);
    fy_ferry_update(s, p);
    fy_ferry_set_timer(s, p);
    request(s, p);
}

static void policy_members(ferry_scheduling *s, void *arg)
{
    ferry_policy *p = arg;
    (void)fy_coordinators_renew(
        s, &p->coordinators); /* without memory work requests are repeated until there is some */
    give_held(s, p);
    again(s, p);
    request(s, p);
}

static ferry_schedulable *ahead(ferry_scheduling *s, void *state, const ferry_schedulable *after)
{
    (void)s;
    return fy_buckets_ahead(&((const ferry_policy *)state)->waiting, after);
}

const ferry_scheduler fy_scheduler_ferry = {
    .size = sizeof(ferry_scheduler),
    .name = "ferry",
    .create = policy_create,
    .destroy = policy_destroy,
    .next = policy_next,
    .activate = policy_activate,
    .notify = policy_notify,
    .remove = take_out,
    .empty = empty,
    .message = policy_message,
    .wake = policy_wake,
    .members = policy_members,
    .ahead = ahead,
};
