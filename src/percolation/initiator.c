/* Initiator: on a data server, the objects with tasks. */
#include "core/fail.h"
#include "percolation/state.h"

/* Puts a token in its place. Most have the greatest number. One that the store has taken out for a
 * moment, to pack its object, gets its place back. Its offer stands. */
static void insert_token(fy_percolation *p, ferry_schedulable *item)
{
    fy_known_engine *known = fy_assembler_offered_to(p, item);
    if (known != NULL) {
        known->item = item;
        fy_line_insert(&p->tokens, item, p->free);
        return;
    }
    ferry_schedulable *before = NULL, *last = p->free == NULL ? NULL : p->tokens.last;
    while (last != NULL && last->mark > item->mark) {
        before = last;
        last = last == p->free ? NULL : last->prev;
    }
    fy_line_insert(&p->tokens, item, before);
    if (before == p->free)
        p->free = item;
}

static void make_token(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    if (item->mark <= FY_MARK_NONE) {
        item->mark = (double)++p->sequence;
        p->stats.initiated++;
    }
    insert_token(p, item);
    fy_assembler_offer(s, p);
}

static void queue(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    if (item->mark == FY_MARK_KEPT)
        fy_line_insert(&p->own, item, NULL);
    else
        make_token(s, p, item);
}

/* The object was sent to an engine and has come back: its image cannot be read, or the engine has
 * gone. The task that cannot be sent runs here, where it fails with the reason if it must. */
static void come_back(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    int engine = fy_mark_rank(item->mark);
    bool lives = ferry_scheduling_accepts(s, engine);
    p->stats.assembled--;
    p->stats.assembled_bytes -= fy_item_bytes(item);
    item->mark = lives ? FY_MARK_KEPT : FY_MARK_NONE;
    if (lives)
        fy_percolation_tell(s, engine, FY_PERCOLATION_GONE, item->object.word, 0);
}

void fy_initiator_rest(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    if (item == p->running) {
        p->running = NULL;
        item->mark = FY_MARK_NONE;
    } else if (fy_mark_rank(item->mark) >= 0) {
        come_back(s, p, item);
    }
    if (item->pending != 0)
        queue(s, p, item);
}

void fy_initiator_notify(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    if (!item->queued)
        queue(s, p, item);
}

void fy_initiator_remove(fy_percolation *p, ferry_schedulable *item)
{
    if (item == p->running)
        p->running = NULL;
    if (!item->queued)
        return;
    if (item->mark == FY_MARK_KEPT) {
        fy_line_remove(&p->own, item);
        return;
    }
    fy_known_engine *known = fy_assembler_offered_to(p, item);
    if (known != NULL)
        known->item = NULL;
    if (item == p->free)
        p->free = item->next;
    fy_line_remove(&p->tokens, item);
}

ferry_schedulable *fy_initiator_next(ferry_scheduling *s, fy_percolation *p)
{
    bool alone = p->engines == 0 || !ferry_scheduling_is_on(s);
    ferry_schedulable *item = p->own.first;
    if (item == NULL && alone)
        item = p->tokens.first;
    if (item == NULL)
        return NULL;
    if (p->engines == 0 && !p->told)
        fy_log(s->f, "percolation: no computing engine is left, so data server %d runs the tasks",
               p->rank);
    p->told = p->engines == 0;
    fy_initiator_remove(p, item);
    p->stats.kept++;
    p->running = item;
    return item;
}
