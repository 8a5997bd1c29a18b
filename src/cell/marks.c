/* Handlers of cells. A rank that changes a cell so that it passes a mark sets its alarm. The cell's
 * rank runs the handler in a poll.
 *
 * An alarm is set under the cell's lock. Until the handler has run, it is work for ferry_quiesce.
 * It is set again only when the cell has changed since the handler began. So a handler that cannot
 * do anything about a passed mark is not called again and again. */
#include <stdlib.h>

#include "base/alloc.h"
#include "cell/change.h"
#include "core/fail.h"
#include "core/run.h"
#include "core/work.h"

/* The handler index that reports show: cell handlers have none. */
enum { NO_HANDLER = UINT16_MAX };

/* In `alarm`: the rank that set it had no memory to count the work as sent to the cell's rank, so
 * the work stays counted on that rank. */
#define ALARM_STAYS UINT32_MAX

static bool is_passed(const fy_cell *cell, uint64_t ends)
{
    int64_t count = fy_ends_count(ends);
    return (cell->high >= 0 && count > cell->high) || count < cell->low;
}

/* Counts an alarm as work. For a cell of another rank it is work sent to that rank. So it can be
 * told from other work when one of the two ranks has gone. Returns the value for `alarm`. */
static uint32_t count_alarm(fy_cells *c, int owner)
{
    int self = ferry_rank(c->f);
    fy_work_created(c->f, 1);
    if (owner != self && fy_work_leaves(c->f, owner, 1) != 0)
        return ALARM_STAYS;
    return (uint32_t)self + 1;
}

static void uncount_alarm(fy_cells *c, uint32_t alarm)
{
    int setter = (int)(alarm - 1);
    if (alarm == 0)
        return;
    if (alarm <= (uint32_t)ferry_ranks(c->f) && setter != ferry_rank(c->f))
        (void)fy_work_arrives(c->f, setter,
                              1); /* without memory the work is finished all the same */
    fy_work_finished(c->f, 1);
}

static uint32_t marks_checked(const fy_cell *cell)
{
    uint64_t marks = (uint64_t)cell->high * 31 + (uint64_t)cell->low;
    return (uint32_t)((marks * 31 + cell->owner + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

int fy_marks_check(fy_cells *c, fy_cell *cell)
{
    if (cell->marks_check != marks_checked(cell)) {
        fy_log(c->f, "the marks of a cell at %p were overwritten: its handler is not called",
               (void *)cell);
        cell->flags &= ~(uint32_t)FY_CELL_MARKS;
        return -1;
    }
    /* relaxed, all three: the cell is locked */
    uint64_t ends = atomic_load_explicit(&cell->ends, memory_order_relaxed);
    if (!is_passed(cell, ends) || ends == cell->alarm_ends ||
        atomic_load_explicit(&cell->alarm, memory_order_relaxed) != 0)
        return -1;
    int owner = (int)cell->owner;
    if ((uint32_t)owner >= (uint32_t)ferry_ranks(c->f) || c->boards[owner] == NULL)
        return -1;
    atomic_store_explicit(&cell->alarm, count_alarm(c, owner), memory_order_relaxed);
    /* release: pairs with the acquire in progress */
    atomic_store_explicit(&c->boards[owner]->attention, 1, memory_order_release);
    return owner == ferry_rank(c->f) ? -1 : owner;
}

static fy_cell *cell_of(const fy_cells *c, const fy_marked *m)
{
    return &c->board->cells[m->number];
}

static bool is_due(const fy_cells *c, const fy_marked *m)
{
    /* relaxed: `run` takes the lock before it does anything */
    return !m->running && atomic_load_explicit(&cell_of(c, m)->alarm, memory_order_relaxed) != 0;
}

/* Whether a handler is due. */
static bool marks_due(const fy_cells *c)
{
    for (size_t i = 0; i < c->marked_count; i++)
        if (is_due(c, &c->marked[i]))
            return true;
    return false;
}

/* The handler to run next: the one of highest priority, of equal ones the one that ran least
 * recently. */
static fy_marked *choose_marked(const fy_cells *c, int64_t floor)
{
    fy_marked *best = NULL;
    for (size_t i = 0; i < c->marked_count; i++) {
        fy_marked *m = &c->marked[i];
        int64_t priority = m->handler.priority;
        if (priority <= floor || !is_due(c, m))
            continue;
        if (best == NULL || priority > best->handler.priority ||
            (priority == best->handler.priority && m->turn < best->turn))
            best = m;
    }
    return best;
}

typedef struct call {
    ferry_cell_handler handler;
    ferry_cell cell;
    size_t count;
} call;

static void run_handler(ferry *f, void *arg)
{
    const call *what = arg;
    what->handler.fn(f, what->cell, what->count, what->handler.arg);
}

static fy_marked *marks_find(const fy_cells *c, int number)
{
    for (size_t i = 0; i < c->marked_count; i++)
        if (c->marked[i].number == number)
            return &c->marked[i];
    return NULL;
}

/* Clears the alarm, and runs the handler if a mark is still passed. */
static int marks_run(fy_cells *c, fy_marked *m)
{
    fy_cell *cell = cell_of(c, m);
    fy_cell_lock(c, cell);
    uint64_t ends = atomic_load_explicit(&cell->ends, memory_order_relaxed);
    bool passed = is_passed(cell, ends);
    uint32_t alarm = atomic_load_explicit(&cell->alarm, memory_order_relaxed);
    cell->alarm_ends = ends;
    atomic_store_explicit(&cell->alarm, 0, memory_order_relaxed);
    fy_cell_unlock(cell);
    int number = m->number;
    if (passed) {
        call what = {.handler = m->handler,
                     .cell = {.rank = ferry_rank(c->f), .number = number},
                     .count = fy_ends_count(ends)};
        int64_t floor = c->floor;
        m->turn = ++c->turn;
        m->running = true;
        c->floor = m->handler.priority;
        fy_run(c->f, FY_DOING_HANDLER, NO_HANDLER, run_handler, &what);
        c->floor = floor;
        /* The handler may have set or removed handlers, so the record may have moved or gone. */
        m = marks_find(c, number);
        if (m != NULL)
            m->running = false;
    }
    uncount_alarm(c, alarm);
    return passed;
}

int fy_marks_run(fy_cells *c, int64_t floor, int budget)
{
    int count = 0;
    /* acquire: sees alarms that were set before `attention` was. An alarm that is set from here on
     * sets `attention` again */
    atomic_exchange_explicit(&c->board->attention, 0, memory_order_acquire);
    while (budget-- > 0) {
        fy_marked *m = choose_marked(c, floor);
        if (m == NULL)
            break;
        count += marks_run(c, m);
    }
    if (marks_due(c))
        atomic_store_explicit(&c->board->attention, 1, memory_order_relaxed);
    return count;
}

int ferry_cell_yield(ferry *f)
{
    fy_cells *c = fy_cells_of(f);
    if (c->floor == INT64_MIN)
        return 0;
    return fy_marks_run(c, c->floor, INT32_MAX);
}

void fy_marks_look(fy_cells *c)
{
    for (size_t i = 0; i < c->marked_count; i++) {
        fy_cell *cell = cell_of(c, &c->marked[i]);
        fy_cell_lock(c, cell);
        (void)fy_marks_check(c, cell);
        fy_cell_unlock(cell);
    }
    atomic_store_explicit(&c->board->attention, 1, memory_order_relaxed);
}

static fy_marked *find_or_add(fy_cells *c, int number)
{
    fy_marked *m = marks_find(c, number);
    if (m != NULL)
        return m;
    if (c->marked_count == c->marked_capacity) {
        fy_marked *marked = fy_double(c->marked, &c->marked_capacity, 8, sizeof(*marked));
        if (marked == NULL)
            return NULL;
        c->marked = marked;
    }
    m = &c->marked[c->marked_count++];
    *m = (fy_marked){.number = number};
    return m;
}

/* Writes the marks into the cell, where other ranks see them. */
static void set_marks(fy_cells *c, fy_cell *cell, const ferry_cell_handler *handler)
{
    fy_cell_lock(c, cell);
    cell->owner = (uint32_t)ferry_rank(c->f);
    cell->high = handler == NULL ? -1 : handler->high;
    cell->low = handler == NULL ? 0 : handler->low;
    cell->marks_check = marks_checked(cell);
    cell->alarm_ends = ~atomic_load_explicit(&cell->ends, memory_order_relaxed);
    uint32_t alarm = atomic_load_explicit(&cell->alarm, memory_order_relaxed);
    if (handler != NULL) {
        cell->flags |= FY_CELL_MARKS;
        (void)fy_marks_check(c, cell);
    } else {
        cell->flags &= ~(uint32_t)FY_CELL_MARKS;
        atomic_store_explicit(&cell->alarm, 0, memory_order_relaxed);
    }
    fy_cell_unlock(cell);
    if (handler == NULL)
        uncount_alarm(c, alarm);
}

int ferry_cell_handler_set(ferry *f, int number, const ferry_cell_handler *given)
{
    fy_cells *c = fy_cells_of(f);
    if (number < 0 || number >= FERRY_CELLS)
        return fy_fail(f, FERRY_EINVAL, "cell_handler_set: cell %d is outside 0..%d", number,
                       FERRY_CELLS - 1);
    ferry_cell_handler known = FERRY_CELL_HANDLER_DEFAULTS;
    int error = given == NULL ? 0
                              : fy_read_sized(f, "cell_handler_set: ferry_cell_handler", given,
                                              &known, sizeof known);
    if (error != 0)
        return error;
    if (given != NULL && known.fn == NULL)
        return fy_fail(f, FERRY_EINVAL, "cell_handler_set: the function is NULL");
    const ferry_cell_handler *handler = given == NULL ? NULL : &known;
    if (handler == NULL) {
        fy_marked *m = marks_find(c, number);
        set_marks(c, &c->board->cells[number], NULL);
        if (m != NULL)
            *m = c->marked[--c->marked_count];
        return 0;
    }
    fy_marked *m = find_or_add(c, number);
    if (m == NULL)
        return fy_fail(f, FERRY_ENOMEM, "cell_handler_set: no memory for another handler");
    m->handler = *handler;
    set_marks(c, &c->board->cells[number], handler);
    return 0;
}
