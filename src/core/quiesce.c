/* Termination by four counters: waves over a tree of ranks collect how much work was ever created
 * and finished. Two waves in a row with equal and balanced sums prove that nothing was left and
 * nothing happened between them: a message that crossed the first wave would have changed the
 * second.
 *
 * A rank passes a wave on and answers it only inside ferry_quiesce and when it has nothing to do,
 * so a wave rests at a busy rank and costs nothing meanwhile; each wave is two small frames per
 * rank on the control lane. Counts are cumulative from open on, so what a rank that has left
 * already sends to one still inside belongs to the next epoch and is counted there.
 *
 * Frames are taken in by whichever thread polls the control lane, under its lock, and only noted;
 * the application thread acts on the notes. */
#include "core/quiesce.h"

#include "core/rank.h"

enum { FAN_OUT = 4, WAVE_WORDS = 3 };

/* What a wave's frame says, in its handler field. words: epoch, created, finished; aux: wave. */
typedef enum wave_sort { WAVE_ASK, WAVE_ANSWER, WAVE_ANNOUNCE } wave_sort;

static int parent_of(const ferry *f)
{
    return (f->rank - 1) / FAN_OUT;
}

/* Children are ranks [first, first + count). */
static int first_child(const ferry *f)
{
    int64_t first = (int64_t)f->rank * FAN_OUT + 1;
    return first < f->ranks ? (int)first : f->ranks;
}

static int child_count(const ferry *f)
{
    int left = f->ranks - first_child(f);
    return left < FAN_OUT ? left : FAN_OUT;
}

fy_verdict fy_wave_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_quiescence *q = &f->quiescence;
    if (frame->word_count != WAVE_WORDS || frame->handler > WAVE_ANNOUNCE) {
        fy_bad_frame(f, source, frame, "part of a termination wave");
        return FY_TAKEN;
    }
    switch ((wave_sort)frame->handler) {
    case WAVE_ASK:
        q->asked = true;
        q->passed_on = false;
        q->asked_epoch = frame->words[0];
        q->wave = frame->aux;
        q->answers = 0;
        q->created = q->finished = 0;
        break;
    case WAVE_ANSWER:
        if (!q->asked || frame->words[0] != q->asked_epoch || frame->aux != q->wave)
            break;
        q->answers++;
        q->created += frame->words[1];
        q->finished += frame->words[2];
        break;
    case WAVE_ANNOUNCE:
        q->announced_epoch = frame->words[0];
        break;
    }
    if (f->control_shared)
        f->ops->wake(f->port, FY_APP);
    return FY_TAKEN;
}

static int send_wave(ferry *f, int rank, wave_sort sort, uint64_t created, uint64_t finished)
{
    const fy_quiescence *q = &f->quiescence;
    const fy_frame frame = {.kind = FY_KIND_WAVE,
                            .word_count = WAVE_WORDS,
                            .handler = (uint16_t)sort,
                            .aux = q->wave,
                            .words = {q->epoch, created, finished}};
    return fy_send(f, FY_CONTROL, rank, &frame);
}

static int tell_children(ferry *f, wave_sort sort)
{
    int error = 0;
    for (int i = 0; i < child_count(f) && error == 0; i++)
        error = send_wave(f, first_child(f) + i, sort, 0, 0);
    return error;
}

/* The root weighs what a wave came to. */
static void conclude(fy_quiescence *q, uint64_t created, uint64_t finished)
{
    bool balanced = created == finished;
    if (balanced && q->was_balanced && created == q->last_created)
        q->announced_epoch = q->epoch;
    q->was_balanced = balanced;
    q->last_created = created;
}

/* Does this idle rank's part in the waves, with the lock held. `*acted` when there was something to
 * do, so that there may be more. */
static int take_part(ferry *f, bool *acted)
{
    fy_quiescence *q = &f->quiescence;
    if (f->rank == 0 && !q->asked) {
        q->asked = true;
        q->passed_on = false;
        q->asked_epoch = q->epoch;
        q->wave++;
        q->answers = 0;
        q->created = q->finished = 0;
    }
    if (!q->asked || q->asked_epoch != q->epoch)
        return 0;
    if (!q->passed_on) {
        q->passed_on = true;
        *acted = true;
        int error = tell_children(f, WAVE_ASK);
        if (error != 0)
            return error;
    }
    if (q->answers < child_count(f))
        return 0;
    *acted = true;
    q->asked = false;
    uint64_t created = q->created + f->work_created;
    uint64_t finished = q->finished + f->work_finished;
    if (f->rank > 0)
        return send_wave(f, parent_of(f), WAVE_ANSWER, created, finished);
    conclude(q, created, finished);
    return 0;
}

/* FERRY_EPEER when a rank this one exchanges waves with is dead. */
static int check_neighbours(ferry *f)
{
    int dead = -1;
    if (f->rank > 0 && f->ops->peer(f->port, parent_of(f)) == FY_PEER_DEAD)
        dead = parent_of(f);
    for (int i = 0; i < child_count(f); i++)
        if (f->ops->peer(f->port, first_child(f) + i) == FY_PEER_DEAD)
            dead = first_child(f) + i;
    return dead < 0 ? 0 : fy_fail(f, FERRY_EPEER, "quiesce: rank %d is dead", dead);
}

static bool is_announced(ferry *f)
{
    fy_control_lock(f);
    bool announced = f->quiescence.announced_epoch >= f->quiescence.epoch;
    fy_control_unlock(f);
    return announced;
}

static int run(ferry *f)
{
    fy_patience patience = {0};
    int error = 0;
    while (error == 0 && !is_announced(f)) {
        if (fy_progress_wait(f, true, FERRY_FOREVER, &patience) > 0)
            continue;
        if (!fy_rank_idle(f))
            continue;
        bool acted = false;
        fy_control_lock(f);
        error = take_part(f, &acted);
        fy_control_unlock(f);
        if (acted)
            patience = (fy_patience){0};
        if (error == 0)
            error = check_neighbours(f);
    }
    if (error != 0)
        return error;
    fy_control_lock(f);
    error = tell_children(f, WAVE_ANNOUNCE);
    fy_control_unlock(f);
    return error;
}

int ferry_quiesce(ferry *f)
{
    int error = fy_check_outside(f, "quiesce");
    if (error != 0)
        return error;
    fy_doing before = fy_account_enter(f, FY_DOING_QUIESCE);
    fy_control_lock(f);
    f->quiescence.epoch++;
    f->quiescence.was_balanced = false;
    fy_control_unlock(f);
    error = run(f);
    fy_account_leave(f, before);
    return error;
}
