/* Operations that are not done by the call that starts them:
 *
 * - tracked operations of this rank that wait for a parcel or for room,
 * - operations of this rank on cells of other nodes,
 * - operations of other nodes on cells here.
 *
 * All are in one list, in the order in which they came. The operations on one cell are done in that
 * order. */
#include <stdlib.h>

#include "base/alloc.h"
#include "cell/state.h"
#include "core/membership.h"
#include "core/operation.h"
#include "core/work.h"

static fy_pending *pending_of(fy_link *link)
{
    return (fy_pending *)(void *)link;
}

/* Whether an operation of this kind on `cell` must wait for `p`: both wait for parcels of that
 * cell, or both for room in it. */
static bool is_after(const fy_pending *p, fy_cell_kind kind, ferry_cell cell)
{
    return !p->owes && p->cell.rank == cell.rank && p->cell.number == cell.number &&
           (p->kind == FY_CELL_ENQ) == (kind == FY_CELL_ENQ);
}

bool fy_pending_has(const fy_cells *c, fy_cell_kind kind, ferry_cell cell)
{
    for (fy_link *link = c->pending.next; link != &c->pending; link = link->next)
        if (is_after(pending_of(link), kind, cell))
            return true;
    return false;
}

fy_pending *fy_pending_add(fy_cells *c, fy_cell_kind kind, ferry_cell cell, int source)
{
    fy_pending *p = fy_calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->kind = kind;
    p->cell = cell;
    p->source = source;
    p->waits = true;
    fy_list_insert(&c->pending, &p->link);
    fy_layer_due(c->f, FY_LAYER_CELL);
    return p;
}

static bool is_asked_elsewhere(const fy_pending *p)
{
    return p->queue == NULL && p->source < 0;
}

bool fy_pending_keeps(const fy_cells *c, uint64_t name)
{
    for (const fy_link *link = c->pending.next; link != &c->pending; link = link->next)
        if (((const fy_pending *)(const void *)link)->parcel.word == name)
            return true;
    return false;
}

static void drop_parcel(fy_cells *c, fy_pending *p)
{
    fy_parcel *parcel = p->parcel.word == 0 ? NULL : fy_parcel_find(c, p->parcel.word);
    if (parcel != NULL && is_asked_elsewhere(p))
        fy_parcel_pin(c, parcel, false);
    else if (parcel != NULL)
        fy_parcel_drop(c, parcel, c->place, 1);
    p->parcel.word = 0;
}

void fy_pending_end(fy_cells *c, fy_pending *p, int error)
{
    fy_layer_due(c->f, FY_LAYER_CELL);
    fy_list_remove(&p->link);
    if (p->noted)
        fy_queue_leave(c, p->queue, p->kind);
    drop_parcel(c, p);
    p->done = true;
    p->error = error;
    if (p->op != 0)
        fy_op_end(c->f, p->op, error);
    if (p->counted)
        fy_work_finished(c->f, 1);
    if (p->awaited)
        c->news = true;
    else
        free(p);
}

/* The operation was cancelled, timed out or lost its peer. Nothing is written to its results any
 * more. A request that was sent stays in the list until its answer comes. The answer may bring a
 * parcel, which is given back. */
static void on_gone(ferry *f, void *arg, uint32_t op, int error)
{
    fy_cells *c = fy_cells_of(f);
    fy_pending *p = arg;
    (void)op;
    p->op = 0;
    p->out = NULL;
    if (p->queue != NULL) {
        fy_pending_end(c, p, error);
        return;
    }
    if (p->kind == FY_CELL_DEQ)
        fy_pending_count(c, p);
    fy_remote_cancel(c, p);
}

void fy_pending_count(fy_cells *c, fy_pending *p)
{
    p->counted = true;
    fy_work_created(c->f, 1);
}

void fy_pending_name(fy_cells *c, fy_pending *p, uint32_t op)
{
    p->op = op;
    if (op == 0)
        return;
    fy_op_own(c->f, op, on_gone, p);
    fy_op_lazy(c->f, op);
    if (p->kind == FY_CELL_ENQ)
        fy_pending_count(c, p);
}

int fy_pending_start(fy_cells *c, const fy_cell_request *request, fy_cell *cell, uint32_t op)
{
    bool keeps = request->parcel != NULL && request->hold == FERRY_KEEP;
    if (keeps && !fy_parcel_keep(c, request->parcel))
        return FERRY_ENOMEM;
    fy_pending *p = fy_pending_add(c, request->kind, request->cell, -1);
    if (p == NULL) {
        if (keeps)
            fy_parcel_drop(c, request->parcel, c->place, 1);
        return FERRY_ENOMEM;
    }
    p->queue = cell;
    fy_pending_name(c, p, op);
    p->out = request->out;
    if (request->parcel != NULL)
        p->parcel.word = atomic_load_explicit(&request->parcel->name, memory_order_relaxed);
    return 0;
}

/* One attempt at an operation of this rank on a cell of its node. */
static int attempt(fy_cells *c, fy_pending *p)
{
    if (p->kind != FY_CELL_ENQ)
        return fy_queue_first(c, p->queue, p->kind == FY_CELL_DEQ, p->out);
    /* The program may have given this hold away meanwhile. */
    fy_parcel *parcel = fy_parcel_held(c, p->parcel.word);
    if (parcel == NULL)
        return fy_parcel_refused(c->f, "cell_enqueue", p->parcel.word);
    int error = fy_queue_enq(c, p->queue, parcel, FERRY_GIVE);
    if (error == 0)
        p->parcel.word = 0;
    return error;
}

/* Does what can be done for `p`. Returns whether `p` has ended. */
static bool advance(fy_cells *c, fy_pending *p)
{
    /* The port may know that a rank has gone before its last frames are taken in. */
    bool gone = fy_peer_is_gone(c->f, p->source >= 0 ? p->source : p->cell.rank);
    if (p->source >= 0 && !gone)
        return fy_remote_serve(c, p);
    int error = FERRY_EAGAIN;
    if (p->source < 0 && p->queue != NULL && fy_queue_ready(p->queue, p->kind))
        error = attempt(c, p);
    if (error == FERRY_EAGAIN && gone)
        error = FERRY_EPEER;
    if (error == FERRY_EAGAIN)
        return false;
    fy_pending_end(c, p, error);
    return true;
}

/* Whether an earlier operation has to be done before `p`. */
static bool is_behind(const fy_cells *c, const fy_pending *p)
{
    for (fy_link *link = c->pending.next; link != &p->link; link = link->next)
        if (is_after(pending_of(link), p->kind, p->cell))
            return true;
    return false;
}

/* A rank that closes or leaves waits for no room: the others may never make any. */
static void give_up(fy_cells *c, fy_pending *p)
{
    if (!p->counted || p->op == 0)
        return;
    p->counted = false;
    fy_work_finished(c->f, 1);
}

int fy_pending_advance(fy_cells *c)
{
    int count = 0;
    for (fy_link *link = c->pending.next, *next; link != &c->pending; link = next) {
        fy_pending *p = pending_of(link);
        next = link->next;
        if (fy_head_of(c->f)->ends)
            give_up(c, p);
        if (p->queue == NULL || p->owes || !is_behind(c, p))
            count += advance(c, p);
    }
    return count;
}

bool fy_pending_would_miss(fy_cells *c)
{
    for (fy_link *link = c->pending.next; link != &c->pending; link = link->next) {
        fy_pending *p = pending_of(link);
        if (p->queue == NULL || (!p->owes && is_behind(c, p)))
            continue;
        if (p->owes || !fy_queue_await(c, p->queue, p->kind))
            return true;
        p->noted = true;
    }
    return false;
}

void fy_pending_fini(fy_cells *c)
{
    for (fy_link *link; (link = fy_list_pop(&c->pending)) != NULL;) {
        drop_parcel(c, pending_of(link));
        free(pending_of(link));
    }
}
