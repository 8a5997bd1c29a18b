/* Operations on cells as the program calls them: checks, the first attempt, and waiting.
 *
 * Fairness: ranks may share processors. Then the rank that runs could take every parcel, or fill
 * all the room, before another rank runs, and the others would find nothing again and again. So a
 * rank that finds nothing notes that in the cell (`wanted`). A rank that has done TURN operations
 * without waiting looks at the note and lets other ranks run. */
#include "base/relax.h"
#include "cell/state.h"
#include "core/fail.h"
#include "core/operation.h"

/* Before a call waits, it polls WAIT_ROUNDS times, and looks at the cell WAIT_LOOKS times before
 * each poll. */
enum { WAIT_ROUNDS = 20, WAIT_LOOKS = 64 };

enum { TURN = 64 };

static const char *const calls[FY_CELL_KINDS] = {
    [FY_CELL_ENQ] = "cell_enqueue", [FY_CELL_DEQ] = "cell_dequeue", [FY_CELL_READ] = "cell_read",
    [FY_CELL_WRITE] = "cell_write", [FY_CELL_CLEAR] = "cell_clear", [FY_CELL_COUNT] = "cell_count",
};

static __attribute__((cold, noinline)) int no_such_cell(fy_cells *c, const char *call,
                                                        ferry_cell cell)
{
    return fy_fail(c->f, FERRY_EINVAL, "%s: cell %d of rank %d; there are 0..%d of ranks 0..%d",
                   call, cell.number, cell.rank, FERRY_CELLS - 1, ferry_ranks(c->f) - 1);
}

static __attribute__((cold, noinline)) int cell_peer_gone(fy_cells *c, const char *call, int rank)
{
    return fy_fail(c->f, FERRY_EPEER, "%s: rank %d is dead or has left", call, rank);
}

/* The cell in memory. NULL with `*error` 0: the cell is on another node. */
static fy_cell *cell_at(fy_cells *c, const char *call, ferry_cell cell, int *error)
{
    if ((uint32_t)cell.rank >= (uint32_t)ferry_ranks(c->f) ||
        (uint32_t)cell.number >= FERRY_CELLS) {
        *error = no_such_cell(c, call, cell);
        return NULL;
    }
    *error = 0;
    fy_board *board = c->boards[cell.rank];
    return board == NULL ? NULL : &board->cells[cell.number];
}

static bool adds(fy_cell_kind kind)
{
    return kind == FY_CELL_ENQ || kind == FY_CELL_WRITE;
}

/* One attempt on a cell in memory. */
static int attempt(fy_cells *c, fy_cell *cell, const fy_cell_request *request)
{
    switch (request->kind) {
    case FY_CELL_ENQ:
        return fy_queue_enq(c, cell, request->parcel, request->hold);
    case FY_CELL_DEQ:
    case FY_CELL_READ:
        return fy_queue_first(c, cell, request->kind == FY_CELL_DEQ, request->out);
    case FY_CELL_WRITE:
        fy_queue_write(c, cell, request->parcel, request->hold);
        return 0;
    case FY_CELL_CLEAR:
        fy_queue_clear(c, cell);
        return 0;
    default:
        *request->count = fy_queue_count(c, cell);
        return 0;
    }
}

/* Another attempt, after handlers may have run: they may have ended the hold of the parcel. */
static int attempt_again(fy_cells *c, fy_cell *cell, const fy_cell_request *request)
{
    if (adds(request->kind) && fy_parcel_held(c, request->name) == NULL)
        return fy_parcel_refused(c->f, calls[request->kind], request->name);
    return attempt(c, cell, request);
}

/* Yields the processor, if other ranks have found nothing in this cell. */
static __attribute__((cold, noinline)) void give_way(fy_cells *c, fy_cell *cell, fy_cell_kind kind)
{
    _Atomic uint32_t *wanted = &cell->wanted[kind == FY_CELL_ENQ];
    /* relaxed, both: state.h */
    uint32_t left = atomic_load_explicit(wanted, memory_order_relaxed);
    if (left == 0 || !c->crowded)
        return;
    atomic_store_explicit(wanted, left - 1, memory_order_relaxed);
    fy_yield();
}

/* Looks and polls for a while before the call sleeps: a parcel or room often comes soon. */
static int cell_look(fy_cells *c, fy_cell *cell, const fy_cell_request *request)
{
    for (int round = 0; round < WAIT_ROUNDS; round++) {
        for (int i = 0; i < WAIT_LOOKS; i++) {
            if (!fy_queue_ready(cell, request->kind))
                continue;
            int error = attempt_again(c, cell, request);
            if (error != FERRY_EAGAIN)
                return error;
        }
        fy_cell_want(cell, request->kind);
        (void)ferry_poll(c->f);
    }
    return FERRY_EAGAIN;
}

/* Whether the cell's rank has gone, so that waiting may never end. */
static bool is_forlorn(fy_cells *c, const fy_cell_request *request)
{
    fy_cells_check_peers(c);
    return c->gone[request->cell.rank] != 0;
}

static int sleep_for(fy_cells *c, fy_cell *cell, const fy_cell_request *request, uint64_t deadline)
{
    bool noted = false;
    int error;
    while ((error = attempt_again(c, cell, request)) == FERRY_EAGAIN) {
        if (is_forlorn(c, request)) {
            error = cell_peer_gone(c, calls[request->kind], request->cell.rank);
            break;
        }
        uint64_t now = deadline == FERRY_FOREVER ? 0 : ferry_now(c->f);
        if (now >= deadline)
            break;
        if (!fy_queue_await(c, cell, request->kind))
            continue;
        noted = true;
        fy_cell_want(cell, request->kind);
        c->awaited = cell;
        fy_layer_due(c->f, FY_LAYER_CELL);
        c->awaited_kind = request->kind;
        c->awaited_cell = request->cell;
        (void)ferry_wait(c->f, deadline == FERRY_FOREVER ? FERRY_FOREVER : deadline - now);
        c->awaited = NULL;
    }
    if (noted)
        fy_queue_leave(c, cell, request->kind);
    return error;
}

static __attribute__((noinline)) int wait_for(fy_cells *c, fy_cell *cell,
                                              const fy_cell_request *request, uint64_t timeout_ns)
{
    if (fy_in_handler(c->f))
        return fy_fail(c->f, FERRY_ESTATE, "%s: waiting is not allowed inside a handler",
                       calls[request->kind]);
    uint64_t deadline = FERRY_FOREVER;
    if (timeout_ns != FERRY_FOREVER) {
        uint64_t now = ferry_now(c->f);
        deadline = timeout_ns > FERRY_FOREVER - now ? FERRY_FOREVER : now + timeout_ns;
    }
    int error = cell_look(c, cell, request);
    if (error == FERRY_EAGAIN)
        error = sleep_for(c, cell, request, deadline);
    return error;
}

static __attribute__((cold, noinline)) int cell_explain(fy_cells *c, const fy_cell_request *request,
                                                        int error, uint64_t timeout_ns)
{
    const char *call = calls[request->kind];
    if (error == FERRY_ENOMEM)
        return fy_fail(c->f, error, "%s: no memory to note another parcel in cell %d of rank %d",
                       call, request->cell.number, request->cell.rank);
    if (error == FERRY_EAGAIN && timeout_ns > 0)
        return fy_fail(c->f, FERRY_ETIMEDOUT, "%s: cell %d of rank %d had no %s within %g ms", call,
                       request->cell.number, request->cell.rank,
                       adds(request->kind) ? "room" : "parcel", (double)timeout_ns / 1e6);
    return error;
}

/* Does any operation on any cell, and waits if the call may wait. */
static inline int operate(fy_cells *c, const fy_cell_request *request, uint64_t timeout_ns)
{
    int error;
    fy_cell *cell = cell_at(c, calls[request->kind], request->cell, &error);
    if (error != 0)
        return error;
    fy_cells_check_peers(c);
    if (__builtin_expect(cell == NULL, 0)) {
        error = fy_remote_call(c, request, timeout_ns);
        return error == 0 ? 0 : cell_explain(c, request, error, timeout_ns);
    }
    if (adds(request->kind) && c->gone[request->cell.rank])
        return cell_peer_gone(c, calls[request->kind], request->cell.rank);
    error = attempt(c, cell, request);
    if (__builtin_expect(error == 0, 1)) {
        if (__builtin_expect(++c->turns % TURN == 0, 0))
            give_way(c, cell, request->kind);
        return 0;
    }
    if (error == FERRY_EAGAIN && timeout_ns > 0)
        error = wait_for(c, cell, request, timeout_ns);
    return error == 0 ? 0 : cell_explain(c, request, error, timeout_ns);
}

/* Finds the held parcel of an operation that adds one. */
static inline int find_parcel(fy_cells *c, const char *call, ferry_parcel parcel,
                              fy_cell_request *request)
{
    if (request->hold != FERRY_GIVE && request->hold != FERRY_KEEP)
        return fy_fail(c->f, FERRY_EINVAL, "%s: the hold is %d, expected FERRY_GIVE or FERRY_KEEP",
                       call, (int)request->hold);
    request->name = parcel.word;
    request->parcel = fy_parcel_held(c, parcel.word);
    return request->parcel == NULL ? fy_parcel_refused(c->f, call, parcel.word) : 0;
}

int ferry_cell_enqueue(ferry *f, ferry_cell cell, ferry_parcel parcel, ferry_hold hold,
                       uint64_t timeout_ns)
{
    fy_cells *c = fy_cells_of(f);
    fy_cell_request request = {.kind = FY_CELL_ENQ, .cell = cell, .hold = hold};
    int error = find_parcel(c, calls[FY_CELL_ENQ], parcel, &request);
    return error != 0 ? error : operate(c, &request, timeout_ns);
}

int ferry_cell_dequeue(ferry *f, ferry_cell cell, ferry_parcel *out, uint64_t timeout_ns)
{
    const fy_cell_request request = {.kind = FY_CELL_DEQ, .cell = cell, .out = out};
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "cell_dequeue: the result is missing");
    return operate(fy_cells_of(f), &request, timeout_ns);
}

int ferry_cell_read(ferry *f, ferry_cell cell, ferry_parcel *out, uint64_t timeout_ns)
{
    const fy_cell_request request = {.kind = FY_CELL_READ, .cell = cell, .out = out};
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "cell_read: the result is missing");
    return operate(fy_cells_of(f), &request, timeout_ns);
}

int ferry_cell_write(ferry *f, ferry_cell cell, ferry_parcel parcel, ferry_hold hold)
{
    fy_cells *c = fy_cells_of(f);
    fy_cell_request request = {.kind = FY_CELL_WRITE, .cell = cell, .hold = hold};
    int error = find_parcel(c, calls[FY_CELL_WRITE], parcel, &request);
    return error != 0 ? error : operate(c, &request, FERRY_FOREVER);
}

int ferry_cell_clear(ferry *f, ferry_cell cell)
{
    const fy_cell_request request = {.kind = FY_CELL_CLEAR, .cell = cell};
    return operate(fy_cells_of(f), &request, FERRY_FOREVER);
}

int ferry_cell_count(ferry *f, ferry_cell cell, size_t *count)
{
    const fy_cell_request request = {.kind = FY_CELL_COUNT, .cell = cell, .count = count};
    if (count == NULL)
        return fy_fail(f, FERRY_EINVAL, "cell_count: the result is missing");
    return operate(fy_cells_of(f), &request, FERRY_FOREVER);
}

int ferry_cell_limit_set(ferry *f, int number, size_t limit)
{
    fy_cells *c = fy_cells_of(f);
    if (number < 0 || number >= FERRY_CELLS)
        return fy_fail(f, FERRY_EINVAL,
                       "cell_limit_set: cell %d does not exist (a rank has cells 0..%d)", number,
                       FERRY_CELLS - 1);
    if (limit < 1 || limit > FERRY_CELL_LIMIT)
        return fy_fail(f, FERRY_EINVAL, "cell_limit_set: limit is %zu, expected 1..%d", limit,
                       FERRY_CELL_LIMIT);
    fy_cell *cell = &c->board->cells[number];
    atomic_store_explicit(&cell->limit, (uint32_t)limit, memory_order_relaxed);
    /* Operations that waited for room under the old limit must look again. */
    fy_queue_leave(c, cell, FY_CELL_ENQ);
    return 0;
}

/* The tracked forms. */

static int cell_start(fy_cells *c, const fy_cell_request *request, const ferry_track *track)
{
    const char *call = calls[request->kind];
    int error;
    fy_cell *cell = cell_at(c, call, request->cell, &error);
    if (error != 0)
        return error;
    if (track == NULL)
        return fy_fail(c->f, FERRY_EINVAL, "%s_start: no track given", call);
    fy_cells_check_peers(c);
    if (cell == NULL)
        return fy_remote_start(c, request, track);
    if (c->gone[request->cell.rank])
        return cell_peer_gone(c, call, request->cell.rank);
    uint32_t op;
    error = fy_op_start(c->f, track, request->cell.rank, 0, 0, &op);
    if (error != 0)
        return error;
    error =
        fy_pending_has(c, request->kind, request->cell) ? FERRY_EAGAIN : attempt(c, cell, request);
    if (error == FERRY_EAGAIN)
        error = fy_pending_start(c, request, cell, op);
    else if (error == 0)
        fy_op_end(c->f, op, 0);
    if (error != 0)
        fy_op_drop(c->f, op);
    return error == 0 ? 0 : cell_explain(c, request, error, 0);
}

int ferry_cell_enqueue_start(ferry *f, ferry_cell cell, ferry_parcel parcel, ferry_hold hold,
                             const ferry_track *track)
{
    fy_cells *c = fy_cells_of(f);
    fy_cell_request request = {.kind = FY_CELL_ENQ, .cell = cell, .hold = hold};
    int error = find_parcel(c, "cell_enqueue_start", parcel, &request);
    return error != 0 ? error : cell_start(c, &request, track);
}

int ferry_cell_dequeue_start(ferry *f, ferry_cell cell, ferry_parcel *out, const ferry_track *track)
{
    const fy_cell_request request = {.kind = FY_CELL_DEQ, .cell = cell, .out = out};
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "cell_dequeue_start: the result is missing");
    out->word = 0;
    return cell_start(fy_cells_of(f), &request, track);
}

int ferry_cell_read_start(ferry *f, ferry_cell cell, ferry_parcel *out, const ferry_track *track)
{
    const fy_cell_request request = {.kind = FY_CELL_READ, .cell = cell, .out = out};
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "cell_read_start: the result is missing");
    out->word = 0;
    return cell_start(fy_cells_of(f), &request, track);
}
