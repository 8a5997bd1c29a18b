#include "balance/balance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balance/schedulers/schedulers.h"
#include "base/alloc.h"
#include "base/env.h"
#include "core/collective.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/run.h"
#include "core/why.h"
#include "core/work.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/foreign.h"
#include "object/moves.h"

/* Copies the object's affinity; NULL if it has none. */
static int make_affinity(ferry *f, const ferry_balance_options *o, fy_affinity **out)
{
    uint32_t ranks = o->priorities != NULL ? (uint32_t)ferry_ranks(f) : 0;
    *out = NULL;
    if (ranks == 0 && o->dependency_count == 0 && o->granularity == 0)
        return 0;
    if (!isfinite(o->granularity))
        return fy_fail(f, FERRY_EINVAL,
                       "balance_add: the granularity is %g, expected a finite number",
                       o->granularity);
    if (o->dependency_count > UINT32_MAX / 16 ||
        (o->dependencies == NULL && o->dependency_count != 0))
        return fy_fail(f, FERRY_EINVAL, "balance_add: %zu dependencies at %p", o->dependency_count,
                       (const void *)o->dependencies);
    for (size_t i = 0; i < o->dependency_count; i++)
        if (o->dependencies[i].word != 0 &&
            !fy_object_is_name(fy_objects_of(f), o->dependencies[i]))
            return fy_fail(f, FERRY_EINVAL, "balance_add: dependency %zu is %016llx, no object", i,
                           (unsigned long long)o->dependencies[i].word);
    for (uint32_t i = 0; i < ranks; i++)
        if (!isfinite(o->priorities[i]))
            return fy_fail(f, FERRY_EINVAL,
                           "balance_add: the priority on rank %u is %g, expected a finite number",
                           i, o->priorities[i]);
    fy_affinity *affinity = fy_affinity_create(ranks, (uint32_t)o->dependency_count);
    if (affinity == NULL)
        return fy_fail(f, FERRY_ENOMEM, "balance_add: no memory");
    affinity->granularity = o->granularity;
    for (uint32_t i = 0; i < ranks; i++)
        affinity->priorities[i] = o->priorities[i];
    for (size_t i = 0; i < o->dependency_count; i++)
        affinity->dependencies[i] = o->dependencies[i].word;
    *out = affinity;
    return 0;
}

int ferry_balance_add(ferry *f, ferry_object object, const ferry_balance_options *options)
{
    ferry_balance_options known = FERRY_BALANCE_OPTIONS_DEFAULTS;
    int error = options == NULL ? 0
                                : fy_read_sized(f, "balance_add: ferry_balance_options", options,
                                                &known, sizeof known);
    if (error != 0)
        return error;
    const double load = known.load;
    fy_record *record = fy_record_here(f, object);
    if (record == NULL)
        return fy_fail_absent(f, "balance_add", object, record);
    if (record->scheduled)
        return fy_fail(f, FERRY_ESTATE, "balance_add: object %016llx is scheduled already",
                       (unsigned long long)object.word);
    if (!(load >= 0 && isfinite(load)))
        return fy_fail(f, FERRY_EINVAL,
                       "balance_add: the load of object %016llx is %g, expected 0 or more",
                       (unsigned long long)object.word, load);
    error = fy_scheduler_prepare(f);
    if (error == 0)
        error = make_affinity(f, &known, &record->affinity);
    if (error != 0)
        return error;
    record->load = load == 0 ? 1 : load;
    fy_list_remove(&record->link);
    fy_record_schedule(f, record);
    record->scheduled = true;
    if (record->state == FY_RESTING)
        fy_record_rest(f, record);
    return 0;
}

/* Words of FY_KIND_PHASE. */
enum { PHASE_OFF, PHASE_ON, PHASE_RENEWS };

/* Whether this rank speaks for the members. */
static bool is_first_member(const ferry *f)
{
    int place = 0;
    while (place < ferry_member_count(f) && fy_peer_is_gone(f, ferry_member_rank(f, place)))
        place++;
    return ferry_member_rank(f, place) == ferry_rank(f);
}

/* Tells the ranks that have joined, and are not members yet, whether the job balances. */
static void tell_newcomers(ferry *f)
{
    const ferry_scheduling *s = fy_scheduling_of(f);
    const fy_frame frame = {.kind = FY_KIND_PHASE, .word_count = 1, .words = {s->on}};
    int starting = s->objects->info.starting;
    for (int rank = starting; starting != 0 && rank < s->ranks && is_first_member(f); rank++)
        if (fy_peer_takes(f, rank) && ferry_member_place(f, rank) < 0)
            (void)fy_send_as_work(f, rank, &frame); /* without memory it does not balance yet */
}

/* Schedulers run under the lock and on either thread, so they have a copy of their own. */
static void look_who_is_present(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    size_t words = ((size_t)s->ranks + 63) / 64;
    uint64_t *present = fy_calloc(words + ((size_t)s->ranks + 1) / 2, sizeof *present);
    if (present == NULL)
        return; /* schedulers ask absent ranks in vain, and the objects sent there come back */
    fy_control_lock(f);
    free(s->present);
    s->present = present;
    s->present_count = 0;
    s->travel.away = 0; /* of those that went to a rank that is gone no answer comes */
    s->ring = (int *)(void *)(present + words);
    for (int distance = 1; distance < s->ranks; distance++) {
        int rank = (int)(((int64_t)s->rank + distance) % s->ranks);
        if (!fy_peer_takes(f, rank))
            continue;
        s->present[rank / 64] |= UINT64_C(1) << rank % 64;
        s->ring[s->present_count++] = rank;
    }
    if (s->scheduler != NULL && s->scheduler->members != NULL) {
        uint64_t entered = fy_scheduler_enter(s, FY_ON_WORD);
        s->scheduler->members(s, s->state);
        fy_scheduler_leave(s, entered);
    }
    fy_control_unlock(f);
    tell_newcomers(f);
}

static int prepare_phase(ferry *f, bool on)
{
    int error = fy_scheduler_prepare(f);
    return error == 0 && on ? fy_helper_start(fy_scheduling_of(f)) : error;
}

static void set_phase(ferry *f, bool on)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    fy_control_lock(f);
    s->on = on;
    fy_scheduler_rouse(s);
    fy_control_unlock(f);
}

/* This rank has joined and balances from now on. Before, it had no scheduler to take the reports of
 * other ranks. So it asks each of them to report once more. */
static void begin_to_balance(ferry *f)
{
    const ferry_scheduling *s = fy_scheduling_of(f);
    const fy_frame frame = {.kind = FY_KIND_PHASE, .word_count = 1, .words = {PHASE_RENEWS}};
    look_who_is_present(f);
    for (int i = 1; i <= ferry_scheduling_acceptor_count(s); i++)
        (void)fy_send_as_work(f, ferry_scheduling_acceptor(s, i),
                              &frame); /* they may have no work */
}

static fy_verdict take_phase(ferry *f, int source, const fy_frame *frame)
{
    bool on = frame->words[0] == PHASE_ON, was_on = fy_scheduling_of(f)->on;
    if (fy_work_arrives(f, source, 1) != 0)
        return FY_LEAVE;
    if (frame->words[0] == PHASE_RENEWS) {
        look_who_is_present(f);
    } else if (prepare_phase(f, on) != 0) {
        fy_log(f, "no objects move from here: %s", ferry_error_message(f));
    } else {
        set_phase(f, on);
        if (on && !was_on)
            begin_to_balance(f);
    }
    fy_work_finished(f, 1);
    return FY_TAKEN;
}

int ferry_balance_enable(ferry *f, bool on)
{
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "balance_enable: not allowed inside a handler");
    int error = prepare_phase(f, on);
    /* If balancing goes off, this comes before the barrier, so that no object starts to move after
     * it. */
    if (error == 0 && on)
        error = fy_barrier_phase(f, fy_scheduling_of(f)->known.name, true);
    if (error != 0)
        return error;
    set_phase(f, on);
    fy_helper_count(fy_scheduling_of(f));
    tell_newcomers(f);
    return on ? 0 : fy_barrier_phase(f, fy_scheduling_of(f)->known.name, false);
}

static void watch_activate(ferry *f, fy_record *record)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    s->load += record->item.load;
    s->tasks += record->item.pending;
    uint64_t entered = fy_scheduler_enter(s, FY_ON_TASK);
    fy_nowait_begin(f);
    s->scheduler->activate(s, s->state, &record->item);
    record->returned = false; /* under the lock: the helper may move the object from now on */
    fy_nowait_end(f);
    fy_scheduler_leave(s, entered);
}

static void watch_notify(ferry *f, fy_record *record)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    s->load += record->pending.tail->load;
    s->tasks++;
    uint64_t entered = fy_scheduler_enter(s, FY_ON_TASK);
    fy_nowait_begin(f);
    s->scheduler->notify(s, s->state, &record->item);
    fy_nowait_end(f);
    fy_scheduler_leave(s, entered);
}

static void watch_remove(ferry *f, fy_record *record)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    s->load -= record->item.load;
    s->tasks -= record->item.pending;
    fy_scheduler_rouse(s);
    s->scheduler->remove(s, s->state, &record->item);
}

static void watch_forget(ferry *f, fy_record *record)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    fy_scheduler_rouse(s);
    s->scheduler->remove(s, s->state, &record->item);
}

const fy_object_watch fy_balance_watch = {
    .prepare = fy_scheduler_prepare,
    .activate = watch_activate,
    .notify = watch_notify,
    .remove = watch_remove,
    .forget = watch_forget,
    .answer = fy_travel_answer,
};

static int open_layer(ferry *f, const ferry_options *options)
{
    uint64_t seed = 1;
    int error = fy_env_number("FERRY_SEED", &seed);
    if (error != 0)
        return error;
    const char *forced = fy_env_get("FERRY_SCHEDULER"), *name = forced;
    if (name == NULL && options != NULL)
        name = options->scheduler;
    if (name == NULL)
        name = "ferry";
    error = fy_scheduler_check_name(f, name);
    if (error != 0)
        return error;
    ferry_scheduling *s = fy_calloc(1, sizeof *s);
    if (s == NULL)
        return fy_fail(f, FERRY_ENOMEM, "open: no memory for the balance layer");
    s->f = f;
    s->objects = fy_objects_of(f);
    s->port = fy_port_of(f);
    s->rank = ferry_rank(f);
    s->ranks = ferry_ranks(f);
    s->present_count = s->ranks - 1;
    s->asker = -1;
    s->told = "";
    s->counted = fy_head_of(f)->profile != NULL;
    s->forced = forced != NULL;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    fy_random_init(&s->random, seed, (uint64_t)s->rank);
    fy_list_init(&s->outbound);
    fy_list_init(&s->refused);
    s->travel.known = s->objects->info.shares_memory; /* objects are handed over */
    s->table[s->table_count++] = &fy_scheduler_ferry;
    fy_layer_state_set(f, FY_LAYER_BALANCE, s);
    s->objects->watch = &fy_balance_watch;
    if (s->objects->info.starting != 0 && s->objects->info.starting < s->ranks)
        look_who_is_present(f);
    return 0;
}

static void drain(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    fy_helper_stop(s);
    s->on = false;
    fy_balance_flush(s, FY_APP);
    (void)fy_done_drain(
        f); /* objects that were still being sent when the ranks learned of the end */
}

static void close_layer(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    fy_helper_stop(s);
    /* Takes in the frames that were sent before the last barrier. Their layer destroys the objects
     * in them. */
    while (fy_control_poll(f) > 0)
        continue;
    s->objects->watch = NULL;
    if (s->scheduler != NULL)
        s->scheduler->destroy(s, s->state);
    fy_foreign_close(s->plugin);
    free(s->notes);
    free(s->present);
    free(s->reasons);
    free(s);
    fy_layer_state_set(f, FY_LAYER_BALANCE, NULL);
}

static bool busy(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    if (s->scheduler == NULL)
        return false;
    fy_control_lock(f);
    bool found = !s->scheduler->empty(s, s->state) || (s->note_count != 0 && !s->sending) ||
                 !fy_list_empty(&s->outbound) || !fy_list_empty(&s->refused);
    fy_control_unlock(f);
    return found;
}

static uint64_t deadline(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    fy_control_lock(f);
    uint64_t wake_ns = s->wake_ns;
    fy_control_unlock(f);
    return wake_ns != 0 ? wake_ns : UINT64_MAX;
}

/* [lock held] */
static void tell_tasks(ferry *f, fy_why *why)
{
    const ferry_scheduling *s = fy_scheduling_of(f);
    if (s->scheduler != NULL && s->tasks != 0)
        fy_why_line(why, "%u task%s, of load %.4g, wait%s here in scheduler %s", s->tasks,
                    s->tasks == 1 ? "" : "s", s->load, s->tasks == 1 ? "s" : "", s->name);
}

static void why(ferry *f, fy_why *told)
{
    fy_control_lock(f);
    tell_tasks(f, told);
    fy_control_unlock(f);
}

static const fy_kind_info kinds[] = {
    [FY_KIND_SCHEDULER - FY_KINDS_OF_BALANCE] = {fy_scheduler_frame, NULL, "scheduler", 0},
    [FY_KIND_PHASE - FY_KINDS_OF_BALANCE] = {take_phase, NULL, "phase", 0},
    [FY_KIND_TOOK - FY_KINDS_OF_BALANCE] = {fy_travel_frame, NULL, "took", 0},
};

const fy_layer_ops fy_balance_layer = {
    .layer = FY_LAYER_BALANCE,
    .name = "balance",
    .kinds = kinds,
    .kind_count = sizeof(kinds) / sizeof(kinds[0]),
    .open = open_layer,
    .close = close_layer,
    .drain = drain,
    .progress = fy_task_progress,
    .busy = busy,
    .deadline = deadline,
    .members = look_who_is_present,
    .trace = fy_reasons_write,
    .why = why,
    .why_helper = tell_tasks,
};
