/* Termination by four counters: waves over a tree of ranks collect how much work was ever created
 * and finished. If two waves in a row have equal and balanced sums, no work was left and nothing
 * happened between them: a message that crossed the first wave would have changed the second.
 *
 * A rank passes a wave on and answers it only inside ferry_quiesce, when it has no work. So a wave
 * rests at a busy rank and costs nothing meanwhile. Each wave is two small frames per rank on the
 * control lane. Counts are cumulative from open on. A rank that has left the call may send a
 * message to a rank that is still in it. That message belongs to the next epoch and is counted
 * there.
 *
 * The tree is over the ranks that are not gone. Each wave names the set that its root knows to be
 * gone (fy_peers.gone_mark), and a rank answers only if it knows the same set. Work is also counted
 * when it goes from rank to rank (fy_work_leaves). A rank adds two amounts: the work that it sent
 * to gone ranks to what it has finished, and the work that came from them to what it has created.
 * So the sums are those of the living ranks alone.
 *
 * If all ranks share memory, most quiescences end by the board (rest.c), and waves begin only after
 * a while. Either may end the epoch.
 *
 * The announcement also names the members among which the epoch ended, if that set has changed.
 * From then on collectives belong to these members (group.h).
 *
 * The thread that polls the control lane takes frames in under its lock, and only notes them. The
 * application thread acts on the notes. */
#include "core/quiesce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/rank.h"
#include "core/rest.h"
#include "core/wave.h"
#include "core/why.h"
#include "core/work.h"

/* After a wave that finds work, the root pauses for a part of the time for which waves have found
 * the same. So messages that are long in flight cost few waves, and the announcement is late by at
 * most that pause. A pause that is short compared with the time in which a processor wakes is left
 * out. A wave that is balanced, or finds progress, is followed immediately. */
enum { PAUSE_PART = 32, PAUSE_MIN_NS = 10 * 1000, PAUSE_MAX_NS = 1000 * 1000 };

/* How long the root waits for the end by the board before it begins waves, and again after each
 * wave that found work. */
enum { BOARD_NS = 1000 * 1000 };

/* A rank writes on the board after a round that has found nothing, or after so many. It takes
 * longer to write its line and to read the others than to look for the next message. */
enum { BUSY_ROUNDS = 8 };

/* A rank that was not asked for this time tells its parent that it is here. This serves only the
 * text of an error, so it comes late enough to disturb no correct program. */
enum { HERE_NS = 1000 * 1000 * 1000 };

void fy_quiesce_doubt(ferry *f)
{
    fy_quiescence *q = &f->quiescence;
    fy_control_lock(f);
    bool next = q->seen_epoch == q->epoch + 1;
    if (!next)
        atomic_store_explicit(&q->seen, false, memory_order_relaxed);
    next = next && q->seen_mark == f->peers.gone_mark;
    int rank = q->seen_rank;
    fy_elsewhere there = q->seen_there;
    fy_control_unlock(f);
    if (next)
        fy_collectives_doubt(f, rank, &there);
}

void fy_quiesce_members_changed(ferry *f)
{
    fy_quiescence *q = &f->quiescence;
    fy_control_lock(f);
    q->shifted = true;
    q->was_balanced = false;
    q->begin_ns = 0;
    fy_work_stirs(f);
    q->on_board = fy_rest_fits(f);
    if (q->announced_epoch != 0)
        (void)fy_wave_announce(f); /* without memory the others wait until this rank ends */
    fy_control_unlock(f);
}

void fy_quiesce_tell(ferry *f, int rank)
{
    fy_control_lock(f);
    if (f->quiescence.announced_epoch != 0)
        (void)fy_wave_send(f, rank, WAVE_ANNOUNCE, 0, 0); /* without memory: others tell it too */
    fy_control_unlock(f);
}

/* All members have known this wave's mark, and so the same set of members as the root. The numbers
 * of their collectives go on in a new era. Ranks on which a call failed that succeeded on others
 * may have made fewer calls, and the root may be a newcomer that has made none. */
static void choose_group(ferry *f)
{
    fy_quiescence *q = &f->quiescence;
    for (size_t i = 0; i < fy_set_words(f->head.ranks); i++)
        q->members[i] = ~f->peers.gone[i];
    if (f->head.ranks % 64 != 0)
        q->members[f->head.ranks / 64] &= (UINT64_C(1) << f->head.ranks % 64) - 1;
    q->late = fy_wave_closes(f);
    q->regroups = !q->late && !fy_group_is(f->collectives.group, q->members, f->head.ranks);
    q->number = fy_wave_era(f) * FY_ERA_NUMBERS;
}

/* Sets when the root begins the wave after one that found work; `moved`: not the same as before. */
static void begin_pause(ferry *f, bool moved)
{
    fy_quiescence *q = &f->quiescence;
    uint64_t now = f->head.ops->host.now(f->head.port);
    if (moved)
        q->unmoved_ns = now;
    uint64_t pause_ns = q->on_board ? BOARD_NS : (now - q->unmoved_ns) / PAUSE_PART;
    if (pause_ns >= PAUSE_MIN_NS)
        q->begin_ns = now + (pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS);
}

static void end_pause(ferry *f)
{
    fy_quiescence *q = &f->quiescence;
    if (q->begin_ns != 0 && f->head.ops->host.now(f->head.port) >= q->begin_ns)
        q->begin_ns = 0;
}

/* The root evaluates the result of a wave. */
static void conclude(ferry *f, uint64_t created, uint64_t finished)
{
    fy_quiescence *q = &f->quiescence;
    bool balanced = created == finished;
    bool moved = created != q->last_created || finished != q->last_finished;
    if (balanced && q->was_balanced && created == q->last_created) {
        q->announced_epoch = q->epoch;
        choose_group(f);
    }
    if (!balanced)
        begin_pause(f, moved);
    q->was_balanced = balanced;
    q->last_created = created;
    q->last_finished = finished;
}

/* Whether there is a wave for this epoch and for the set of living ranks that this rank knows. */
static bool is_asked(const ferry *f)
{
    const fy_quiescence *q = &f->quiescence;
    return q->asked && q->asked_epoch == q->epoch && q->asked_mark == f->peers.gone_mark;
}

/* This newcomer cannot join: it leaves, and harms nobody. Its reason stands in `loss`. */
static void refuse(ferry *f, int error)
{
    f->left = true;
    f->loss.error = error; /* of all later calls too; nobody is told */
    fy_log(f, "%s", f->loss.reason);
}

/* The asker has registered other handlers. A rank that joined by itself and is no member yet runs
 * another program. */
static int refuse_handlers(ferry *f, int asker)
{
    bool newcomer = f->collectives.group->self < 0 && f->head.ops->members.withdraw != NULL;
    if (!newcomer || !f->head.ops->members.withdraw(f->head.port)) {
        fy_loss_compare(f, asker, 0);
        return 0;
    }
    (void)snprintf(f->loss.reason, sizeof(f->loss.reason),
                   "this program cannot join the job: rank %d has registered other handlers; "
                   "expected the job's program",
                   asker);
    refuse(f, FERRY_EINVAL);
    return fy_loss_check(f, "ferry_quiesce");
}

/* Does this idle rank's part in the waves, with the lock held. `*acted`: there was work, so there
 * may be more. */
static int take_part(ferry *f, bool *acted)
{
    fy_quiescence *q = &f->quiescence;
    bool root = fy_wave_place(f) == 0;
    /* The end of an operation does not count as work: its rank waits for it here. */
    if (f->ops_table.pending != f->ops_table.aside)
        return 0;
    q->looked = q->on_board;
    if (q->on_board && fy_rest_look(f, acted)) {
        q->announced_epoch = q->epoch;
        q->regroups = false;
        q->by_board = true;
        return 0;
    }
    /* The root begins a wave unless one runs for its epoch and for the living ranks that it knows.
     * A wave for other ones is over. Any other rank keeps a request for other ones: its root may
     * have heard of a death, or of an epoch's end, before this rank. */
    if (root && !is_asked(f) && q->begin_ns == 0)
        fy_wave_begin(q, q->epoch, f->peers.gone_mark, f->peers.shifts, ++q->begun);
    if (!is_asked(f))
        return 0;
    if (!q->passed_on) {
        int error = 0;
        q->passed_on = true;
        *acted = true;
        if (q->asker >= 0 && q->asker_handlers != fy_handlers_signature(f))
            error = refuse_handlers(f, q->asker);
        if (error == 0)
            error = fy_wave_tell_children(f, WAVE_ASK);
        if (error != 0)
            return error;
    }
    if (q->answers < fy_wave_child_count(f))
        return 0;
    *acted = true;
    q->asked = false;
    uint64_t created, finished;
    fy_wave_count(f, &created, &finished);
    created += q->created;
    finished += q->finished;
    if (!root)
        return fy_wave_send(f, fy_wave_parent(f), WAVE_ANSWER, created, finished);
    conclude(f, created, finished);
    return 0;
}

/* An epoch has ended without this newcomer. The ranks below it in the tree may wait for the notice.
 * Without memory they wait until this rank ends. */
static void pass_by(ferry *f)
{
    (void)fy_wave_announce(f);
    if (!f->quiescence.late || f->closing != FY_CLOSING_NOT)
        return;
    (void)snprintf(f->loss.reason, sizeof(f->loss.reason),
                   "this rank has joined too late: the members of the job close");
    refuse(f, FERRY_EPEER);
}

/* A rank that has joined counts epochs from the notices of the others. Epochs that end without it
 * are not its own. */
static bool is_announced(ferry *f)
{
    fy_quiescence *q = &f->quiescence;
    fy_control_lock(f);
    bool newcomer = f->collectives.group->self < 0;
    bool counted = !newcomer || (q->regroups && fy_set_has(q->members, f->head.rank));
    if (!counted && q->announced_epoch >= q->epoch)
        pass_by(f);
    if (!counted)
        q->epoch = q->announced_epoch + 1;
    bool announced = q->announced_epoch >= q->epoch;
    fy_control_unlock(f);
    return announced;
}

/* The state of the job as the root has seen it, and until when that may stay the same before it
 * asks why. */
typedef struct stall {
    uint64_t done, created, finished, limit_ns, at_ns;
} stall;

/* If nothing has changed for FERRY_STALL_S, asks every rank what it does. If still nothing changes,
 * asks again after twice that time. */
static void stall_watch(ferry *f, stall *s)
{
    const fy_quiescence *q = &f->quiescence;
    uint64_t now = f->head.ops->host.now(f->head.port);
    bool same = s->at_ns != 0 && s->done == f->head.done && s->created == q->last_created &&
                s->finished == q->last_finished;
    if (same && now < s->at_ns)
        return;
    s->limit_ns = same ? 2 * s->limit_ns : f->options.stall_ns;
    *s = (stall){f->head.done, q->last_created, q->last_finished, s->limit_ns, now + s->limit_ns};
    if (same)
        fy_why_ask(f);
}

/* Whether to look at the clock. A wait that ends by the board, without sleep, takes a microsecond.
 */
static bool is_time_to_look(const ferry *f, const fy_patience *patience)
{
    return !f->quiescence.on_board || fy_patience_ends(f, patience);
}

/* The time of the next look although no frame comes: at the end of a pause, and by `deadline_ns` at
 * the latest. If this rank is so idle that it will tell its parent where it is, also at `here_ns`.
 */
static uint64_t next_look_ns(ferry *f, uint64_t deadline_ns, const fy_patience *patience)
{
    if (!is_time_to_look(f, patience))
        return deadline_ns;
    uint64_t begin_ns = f->quiescence.begin_ns, here_ns = f->quiescence.here_ns;
    if (here_ns != 0 && here_ns < deadline_ns && !f->peers.news && fy_rank_idle(f))
        deadline_ns = here_ns;
    return begin_ns != 0 && begin_ns < deadline_ns ? begin_ns : deadline_ns;
}

/* The parent may wait in a collective, and then it asks no rank. Called with the lock held. */
static void tell_where(ferry *f)
{
    fy_quiescence *q = &f->quiescence;
    /* Not by a wave of an epoch that has ended by the board, or that was given up. */
    bool asked = is_asked(f) && !q->doubted;
    if (q->here_ns == 0 || (!asked && f->head.ops->host.now(f->head.port) < q->here_ns))
        return;
    q->here_ns = 0;
    if (!asked && fy_wave_place(f) > 0)
        (void)fy_wave_send(f, fy_wave_parent(f), WAVE_HERE, 0, 0);
}

/* As fy_progress_wait. The rank that completes the board wakes one that waits here at rest. The
 * rank handles messages, and departures of peers, before it looks at the board again. */
static void await_change(ferry *f, uint64_t deadline_ns, fy_patience *patience)
{
    bool rests = f->quiescence.looked && f->head.at_rest != 0;
    fy_rest_lookout board = {.lookout = {fy_rest_is_over}, .f = f};
    if (rests && f->info.crowded)
        patience->rounds = UINT16_MAX; /* the board was looked at: sleep */
    deadline_ns = next_look_ns(f, deadline_ns, patience);
    if (!rests || !fy_patience_ends(f, patience)) {
        int rounds = BUSY_ROUNDS;
        while (fy_progress_wait(f, deadline_ns, patience) > 0 && f->quiescence.on_board &&
               !f->quiescence.broken && --rounds > 0)
            continue;
        return;
    }
    if (f->info.crowded)
        fy_progress_yield(f, &board.lookout);
    patience->lookout = &board.lookout;
    if (!fy_rest_is_over(&board.lookout, false))
        (void)fy_progress_wait(f, deadline_ns, patience);
    patience->lookout = NULL;
    (void)fy_progress(f, true);
}

/* The epoch has ended by the board. All that was sent before stands in the rings by now, and this
 * rank takes it: it has no work, but there may be puts. Others may send forever, hence the limit:
 * in so many rounds each ring has its turn, as often as it has to be emptied. */
static void take_sent(ferry *f)
{
    uint32_t rounds = (uint32_t)f->head.ranks * (f->options.ring_slots / FY_POLL_BUDGET + 1);
    while ((fy_progress(f, true) > 0 || f->head.ops->transport.pending(f->head.port, FY_DATA)) &&
           --rounds > 0)
        continue;
}

static int quiesce_run(ferry *f)
{
    const char *call = f->closing ? "ferry_close" : "ferry_quiesce";
    fy_patience patience = {0};
    stall s = {.at_ns = 0};
    int error = fy_loss_check(f, call);
    while (error == 0 && !is_announced(f)) {
        bool watches = f->options.stall_ns != 0 && fy_wave_place(f) == 0;
        if (watches)
            stall_watch(f, &s);
        /* After frames too: one may have been the wave's, and the next call may sleep at once. */
        await_change(f, watches ? s.at_ns : FERRY_FOREVER, &patience);
        bool looks = is_time_to_look(f, &patience);
        if (looks)
            end_pause(f);
        error = fy_loss_check(f, call);
        if (error == 0)
            error = f->quiescence.error;
        if (error == 0 && f->quiescence.broken)
            error = FERRY_ECANCELED;
        if (error != 0 && is_announced(f))
            error = 0; /* all ranks have done their part, so the epoch has ended */
        if (error != 0 || f->peers.news || !fy_rank_idle(f))
            continue;
        bool acted = false;
        fy_control_lock(f);
        if (looks)
            tell_where(f);
        error = take_part(f, &acted);
        fy_control_unlock(f);
        if (acted)
            patience = (fy_patience){0};
    }
    if (error != 0)
        return error;
    if (f->quiescence.by_board)
        take_sent(f);
    f->quiescence.doubted = false;
    fy_control_lock(f);
    if (!f->quiescence.by_board || f->quiescence.shifted)
        error = fy_wave_announce(f);
    if (f->quiescence.regroups && error == 0)
        error = fy_collectives_regroup(f, f->quiescence.members, f->quiescence.number);
    bool regrouped = f->quiescence.regroups && error == 0;
    fy_control_unlock(f);
    if (regrouped)
        fy_layers_members(f);
    return error;
}

int fy_quiesce_init(ferry *f)
{
    f->quiescence.members = fy_calloc(fy_set_words(f->head.ranks), sizeof(uint64_t));
    return f->quiescence.members == NULL ? FERRY_ENOMEM : 0;
}

void fy_quiesce_fini(ferry *f)
{
    free(f->quiescence.members);
}

/* The others have not ended this epoch either if this rank was broken off, or learned that it has
 * missed a collective. So the next call is for the same epoch. */
static void give_up(ferry *f, int error)
{
    fy_work_stirs(f);
    fy_control_lock(f);
    f->quiescence.epoch -= error == FERRY_ECANCELED || error == f->quiescence.error;
    fy_control_unlock(f);
}

int fy_quiesce(ferry *f, fy_doing doing)
{
    fy_doing before = fy_account_enter(f, doing);
    fy_control_lock(f);
    f->quiescence.epoch++;
    f->quiescence.was_balanced = false;
    uint64_t now = f->head.ops->host.now(f->head.port);
    f->quiescence.here_ns = now + HERE_NS;
    f->quiescence.on_board = fy_rest_fits(f);
    f->quiescence.begin_ns = f->quiescence.on_board ? now + BOARD_NS : 0;
    f->quiescence.by_board = f->quiescence.looked = false;
    f->quiescence.come = 0;
    fy_control_unlock(f);
    f->quiescence.runs = f->collectives.making = true;
    f->quiescence.error = 0;
    fy_collectives_look_refused(f);
    int error = quiesce_run(f);
    if (error != 0)
        give_up(f, error);
    f->quiescence.runs = false;
    fy_collectives_made(f);
    fy_account_leave(f, before);
    return error;
}

uint64_t fy_quiesced(const ferry *f)
{
    return f->quiescence.epoch - f->quiescence.runs;
}

int ferry_quiesce(ferry *f)
{
    int error = fy_check_outside(f, "quiesce");
    if (error != 0)
        return error;
    fy_join_ready(f);
    f->quiescence.inside = true;
    error = fy_quiesce(f, FY_DOING_QUIESCE);
    f->quiescence.inside = f->quiescence.broken = false;
    if (error == 0 && f->quiescence.misfit[0] != '\0') {
        error = fy_fail(f, FERRY_EINVAL, "ferry_quiesce: %s", f->quiescence.misfit);
        f->quiescence.misfit[0] = '\0';
    }
    return error == FERRY_ECANCELED ? fy_fail(f, error, "quiesce: ended by ferry_quiesce_break")
                                    : error;
}

void ferry_quiesce_break(ferry *f)
{
    f->quiescence.broken = f->quiescence.inside;
}
