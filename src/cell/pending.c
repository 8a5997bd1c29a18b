/* Operations that are not done by the call that starts them:
 *
 * - tracked operations of this rank that wait for a parcel or for room,
 * - operations of this rank on cells of other nodes,
 * - operations of other nodes on cells here.
 *
 * All are in one list, in the order in which they came. Those on one cell of this node that wait
 * for the same are also in a line, and are done in that order. A poll looks only at the first of
 * each line, so operations behind it cost nothing. */
#include <stddef.h>
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

static fy_pending *front_of(fy_link *link)
{
    return (fy_pending *)(void *)((char *)link - offsetof(fy_pending, front));
}

/* Operations of one cell with the same key wait for each other: all that wait for parcels, and all
 * that wait for room. */
static uint64_t line_key(fy_cell_kind kind, ferry_cell cell)
{
    uint64_t number = (uint64_t)(uint32_t)cell.rank * FERRY_CELLS + (uint32_t)cell.number;
    return number * 2 + (kind == FY_CELL_ENQ) + 1;
}

bool fy_pending_has(const fy_cells *c, fy_cell_kind kind, ferry_cell cell)
{
    return fy_table_find(&c->lines, line_key(kind, cell)) != NULL;
}

/* Puts `p` at the end of its line. FERRY_ENOMEM. */
static int line_join(fy_cells *c, fy_pending *p)
{
    void *slot;
    if (fy_table_insert(&c->lines, line_key(p->kind, p->cell), &slot) != 0)
        return FERRY_ENOMEM;
    fy_cell_line *line = slot;
    p->lined = true;
    p->before = line->last;
    if (line->last != NULL)
        line->last->after = p;
    else
        line->first = p;
    line->last = p;
    return 0;
}

/* Takes `p` out of its line, if it is in one. The next one is looked at in its place. */
static void line_leave(fy_cells *c, fy_pending *p)
{
    if (!p->lined)
        return;
    fy_cell_line *line = fy_table_find(&c->lines, line_key(p->kind, p->cell));
    if (p->before != NULL)
        p->before->after = p->after;
    else
        line->first = p->after;
    if (p->after != NULL)
        p->after->before = p->before;
    else
        line->last = p->before;
    if (p->before == NULL && p->after != NULL)
        fy_list_insert(p->front.next, &p->after->front);
    if (line->first == NULL)
        fy_table_remove(&c->lines, line);
    p->lined = false;
    p->before = p->after = NULL;
}

fy_pending *fy_pending_add(fy_cells *c, fy_cell_kind kind, ferry_cell cell, fy_cell *queue,
                           int source)
{
    fy_pending *p = fy_calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->kind = kind;
    p->cell = cell;
    p->queue = queue;
    p->source = source;
    p->waits = true;
    fy_list_init(&p->front);
    if (queue != NULL && line_join(c, p) != 0) {
        free(p);
        return NULL;
    }
    fy_list_insert(&c->pending, &p->link);
    if (p->before == NULL)
        fy_list_insert(&c->fronts, &p->front);
    fy_layer_due(c->f, FY_LAYER_CELL);
    return p;
}

void fy_pending_owe(fy_cells *c, fy_pending *p)
{
    if (p->before != NULL)
        fy_list_insert(&c->fronts, &p->front);
    line_leave(c, p);
    p->owes = true;
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
    line_leave(c, p);
    fy_list_remove(&p->front);
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
    fy_pending *p = fy_pending_add(c, request->kind, request->cell, cell, -1);
    if (p == NULL) {
        if (keeps)
            fy_parcel_drop(c, request->parcel, c->place, 1);
        return FERRY_ENOMEM;
    }
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
    if (fy_head_of(c->f)->ends)
        for (fy_link *link = c->pending.next; link != &c->pending; link = link->next)
            give_up(c, pending_of(link));
    for (fy_link *link = c->fronts.next, *before; link != &c->fronts;) {
        before = link->prev;
        bool ended = advance(c, front_of(link));
        count += ended;
        link =
            ended ? before->next : link->next; /* the next of its line may have taken its place */
    }
    return count;
}

bool fy_pending_would_miss(fy_cells *c)
{
    for (fy_link *link = c->fronts.next; link != &c->fronts; link = link->next) {
        fy_pending *p = front_of(link);
        if (p->queue == NULL)
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
    if (c->lines.slots != NULL)
        fy_table_fini(&c->lines);
}
