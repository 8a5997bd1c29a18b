/* Rest: how a quiescence ends without waves if all ranks share memory.
 *
 * Each rank has a line on its board. All ranks can read it, and only its rank writes it. The line
 * has the rank's state in the epoch, and its counts of created and finished work. An idle rank
 * writes its counts, then that it is at rest. Before a rank at rest creates work, or sends a
 * message, it writes that it is not at rest any more (fy_work_stirs). So the following holds:
 *  - The count of finished work is never higher than the true one.
 *  - While the line says that the rank is at rest, the count of created work is not lower than the
 *    true one. The work that a helper ships counts in a word of its own, which is always true.
 *
 * A reader first adds what all ranks have finished. Then it adds what all have created, and looks
 * whether all are at rest in its epoch. If both sums are equal, all work that was created up to the
 * moment between the two steps had been finished before it, so no work was left at that moment. A
 * rank at rest creates work only when it handles work. So there is none later, until a rank leaves
 * the epoch.
 *
 * The rank whose line completes the board sees all other lines, because a fence stands between its
 * own write and its look. It wakes the ranks that sleep. Each of them finds the same, or that a
 * line belongs to the next epoch already, because its rank has left this one.
 * tests/models/rest.pml.
 *
 * Waves (wave.c) need no board. They begin after a while all the same: they find ranks that wait in
 * another call. Either may end the epoch. A rank that knows of a change among the ranks does not
 * use the board. Its root needs its answer with the same knowledge, so the two ways never disagree
 * on the members. */
#include "core/rest.h"

#include <assert.h>

#include "core/board.h"
#include "core/membership.h"
#include "core/rank.h"
#include "core/wave.h"
#include "core/work.h"

enum { RANKS_MAX = 32 };

/* The state is 4 * epoch + one of these. A rank that has left an epoch has a state of the next. */
enum { REST_COMES, REST_AT_REST, REST_STIRS, REST_EPOCH = 4 };

typedef struct rest_line {
    _Alignas(64) _Atomic uint64_t state;
    _Atomic uint64_t created, finished;
    _Atomic uint64_t shipped; /* created as well, by either thread */
    _Atomic uint64_t mark;    /* the set of gone ranks that the rank knows */
    _Atomic uint32_t handlers, awaits;
} rest_line;

_Static_assert(sizeof(rest_line) == 64 && FY_BOARD_REST_BYTES == 64, "a cache line");

static rest_line *line_of(const ferry *f, int rank)
{
    unsigned char *core = f->collectives.boards[rank];
    return (rest_line *)(void *)(core + (FY_BOARD_REST_OFFSET - FY_BOARD_CORE_OFFSET));
}

static rest_line *own_line(const ferry *f)
{
    return line_of(f, f->head.rank);
}

bool fy_rest_fits(const ferry *f)
{
    const fy_group *group = f->collectives.group;
    /* If no member is gone, and as many ranks are present, these are the members. */
    return f->collectives.boards != NULL && group->self >= 0 && group->dead < 0 &&
           group->left == 0 && group->size <= RANKS_MAX &&
           group->size == f->head.ranks - f->peers.gone_count;
}

__attribute__((cold, noinline)) void fy_rest_end(ferry *f)
{
    /* release: who reads that this rank has left the epoch knows of all that was sent before. The
     * message that is created next is published later, and a reader that knows of its end sees this
     * too. */
    const fy_quiescence *q = &f->quiescence;
    bool stays = q->runs && !q->by_board; /* else it has found the end: others have to see that */
    uint64_t state = q->epoch * REST_EPOCH + (stays ? REST_STIRS : REST_EPOCH);
    atomic_store_explicit(&own_line(f)->state, state, memory_order_release);
    f->head.at_rest = 0;
    /* release: the stores that follow are seen after it, whatever their order */
    atomic_thread_fence(memory_order_release);
}

bool fy_rest_shipped(ferry *f, uint64_t count)
{
    if (f->collectives.boards == NULL)
        return false;
    /* relaxed: the frame is sent after it */
    atomic_fetch_add_explicit(&own_line(f)->shipped, count, memory_order_relaxed);
    return true;
}

uint64_t fy_rest_shipments(const ferry *f)
{
    /* relaxed: as in fy_work_shipped */
    return f->collectives.boards == NULL
               ? 0
               : atomic_load_explicit(&own_line(f)->shipped, memory_order_relaxed);
}

/* Returns whether the line had to be written. */
static bool write_line(ferry *f)
{
    rest_line *own = own_line(f);
    uint64_t created, finished, state = f->quiescence.epoch * REST_EPOCH;
    fy_wave_count(f, &created, &finished);
    created -= fy_rest_shipments(f);
    /* relaxed, all: only this thread writes them. Another rank may have overwritten them. */
    bool same = atomic_load_explicit(&own->state, memory_order_relaxed) == state + REST_AT_REST &&
                atomic_load_explicit(&own->mark, memory_order_relaxed) == f->peers.gone_mark;
    bool equal = atomic_load_explicit(&own->created, memory_order_relaxed) == created;
    assert(!same || !f->head.at_rest || equal); /* work was created without fy_work_stirs */
    if (same && equal && atomic_load_explicit(&own->finished, memory_order_relaxed) == finished)
        return false;
    if (f->head.at_rest && !(same && equal))
        fy_rest_end(f);
    atomic_store_explicit(&own->created, created, memory_order_relaxed);
    atomic_store_explicit(&own->handlers, fy_handlers_signature(f), memory_order_relaxed);
    /* release: pairs with the acquire in adds; the count is of this set of ranks or later */
    atomic_store_explicit(&own->mark, f->peers.gone_mark, memory_order_release);
    /* release: pairs with the acquire in sum_finished; who knows of the end knows of the start */
    atomic_store_explicit(&own->finished, finished, memory_order_release);
    /* release: pairs with the acquires in read_lines */
    atomic_store_explicit(&own->state, state + REST_AT_REST, memory_order_release);
    /* relaxed: before the fence */
    atomic_store_explicit(&own->awaits, 0, memory_order_relaxed);
    f->head.at_rest = 1;
    /* seq_cst: before the look at the others, and at those that sleep */
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

static uint64_t sum_finished(const ferry *f)
{
    const fy_group *group = f->collectives.group;
    uint64_t sum = 0;
    for (int i = 0; i < group->size; i++)
        /* acquire: before the look at what was created */
        sum += atomic_load_explicit(&line_of(f, fy_group_rank(group, i))->finished,
                                    memory_order_acquire);
    return sum;
}

typedef enum rest_verdict { REST_GOES_ON, REST_BALANCED, REST_ENDED } rest_verdict;

/* Whether `line` says that its rank is at rest, as this rank sees the job; adds what the rank has
 * created. */
static bool adds(const ferry *f, const rest_line *line, uint64_t state, uint64_t *created)
{
    /* acquire: before the count */
    bool same = atomic_load_explicit(&line->mark, memory_order_acquire) == f->peers.gone_mark;
    /* relaxed: after the state, which was acquired */
    *created += atomic_load_explicit(&line->created, memory_order_relaxed) +
                atomic_load_explicit(&line->shipped, memory_order_relaxed);
    return same && state == f->quiescence.epoch * REST_EPOCH + REST_AT_REST &&
           atomic_load_explicit(&line->handlers, memory_order_relaxed) == fy_handlers_signature(f);
}

/* Looks at all lines, because any may tell of the end. But if a rank has not come yet, none does.
 */
static rest_verdict read_lines(ferry *f)
{
    fy_quiescence *q = &f->quiescence;
    const fy_group *group = f->collectives.group;
    const uint64_t coming = q->epoch * REST_EPOCH;
    for (; q->come < group->size; q->come++)
        /* acquire: pairs with the release in write_line */
        if (atomic_load_explicit(&line_of(f, fy_group_rank(group, q->come))->state,
                                 memory_order_acquire) <= coming)
            return REST_GOES_ON;
    uint64_t created = 0, finished = sum_finished(f);
    bool all = true;
    for (int i = 0; i < group->size; i++) {
        const rest_line *line = line_of(f, fy_group_rank(group, i));
        /* acquire: pairs with the release in write_line */
        uint64_t state = atomic_load_explicit(&line->state, memory_order_acquire);
        if (state >= coming + REST_EPOCH)
            return REST_ENDED;
        all = adds(f, line, state, &created) && all;
    }
    return all && created == finished ? REST_BALANCED : REST_GOES_ON;
}

static void wake_others(ferry *f)
{
    const fy_group *group = f->collectives.group;
    /* seq_cst: after the store of the end; pairs with the fence in fy_rest_is_over */
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < group->size; i++) {
        int rank = fy_group_rank(group, i);
        if (rank != f->head.rank &&
            atomic_load_explicit(&line_of(f, rank)->awaits, memory_order_relaxed) != 0)
            f->head.ops->heap.rouse(f->head.port, rank);
    }
}

bool fy_rest_look(ferry *f, bool *wrote)
{
    *wrote = write_line(f);
    rest_verdict verdict = read_lines(f);
    if (verdict == REST_BALANCED)
        wake_others(f);
    return verdict != REST_GOES_ON;
}

void fy_rest_init(ferry *f)
{
    /* relaxed, both: a rank that had this place before has left its own */
    atomic_store_explicit(&own_line(f)->state, 0, memory_order_relaxed);
    atomic_store_explicit(&own_line(f)->shipped, 0, memory_order_relaxed);
}

bool fy_rest_is_over(fy_lookout *lookout, bool sleeps)
{
    ferry *f = ((fy_rest_lookout *)(void *)lookout)->f;
    if (sleeps) {
        /* relaxed: before the fence */
        atomic_store_explicit(&own_line(f)->awaits, 1, memory_order_relaxed);
        /* seq_cst: before the last look; pairs with the fence in wake_others */
        atomic_thread_fence(memory_order_seq_cst);
    }
    return read_lines(f) != REST_GOES_ON;
}
