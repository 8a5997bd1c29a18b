/* Calls that cannot end any more, because work was lost or a rank has gone.
 *
 * A rank that has been told that a member of the group has died finishes no call of the group any
 * more, even one that could still be finished. Other ranks may have given that call up, and wait in
 * ferry_quiesce for all living ranks. After that there is another group. */
#include "core/collective.h"
#include "core/fail.h"
#include "core/loss.h"
#include "core/membership.h"
#include "core/rank.h"

void fy_collective_lack(ferry *f, fy_collective *c, int rank)
{
    if (c->error != 0)
        return;
    c->told = rank == c->group->dead; /* every rank learns of a death from its port */
    c->error = fy_collective_fail(f, c->group, c->number, FERRY_EPEER, "rank %d %s", rank,
                                  fy_peer_outcome(f, rank));
}

void fy_collective_look_lost(ferry *f, fy_collective *c)
{
    const fy_group *group = c->group, *parent = group->parent;
    /* A rank that has left makes no call after `last`. */
    bool left = group->left != 0 && (int32_t)(c->number - group->last) > 0;
    bool whole =
        group->dead < 0 && group->quitter == 0 && !left && (parent == NULL || parent->dead < 0);
    if (c->error != 0 || (whole && !fy_loss_is_due(f)))
        return;
    c->error = fy_loss_check(f, fy_call_name(&c->call));
    c->told = c->error != 0; /* all ranks learn of a loss as this one has */
    if (c->error == 0 && group->dead >= 0)
        fy_collective_lack(f, c, group->dead);
    else if (parent != NULL && parent->dead >= 0)
        fy_collective_lack(f, c, parent->dead);
    else if (c->error == 0 && group->quitter != 0)
        c->error = fy_collective_fail(f, group, c->number, FERRY_EPEER,
                                      "rank %d has given up the group while it was made",
                                      group->quitter - 1);
    else if (left)
        fy_collective_lack(f, c, group->left - 1);
}

/* Ends a call that can never finish, because a rank for which it waits, or to which it sends, has
 * gone. All frames that a peer sent before it went have been delivered. */
static void look_missing(ferry *f, fy_collective *c)
{
    const fy_step *step = &c->steps[c->at];
    int rank = f->head.rank;
    if (c->at < c->step_count && step->kind == FY_STEP_AWAIT)
        rank = c->posts[step->rank].source;
    else if (c->at < c->step_count && step->kind == FY_STEP_SEND)
        rank = step->rank;
    if (fy_peer_is_gone(f, rank))
        fy_collective_lack(f, c, rank);
}

void fy_collectives_fail_lost(ferry *f)
{
    for (fy_collective *c = f->collectives.first, *next; c != NULL; c = next) {
        next = c->next;
        /* First what this rank knows of a loss, because that says more than the frames of other
         * ranks that have failed. */
        fy_collective_look_lost(f, c);
        fy_collective_look_early(f, c);
        if (c->by_board)
            continue;
        look_missing(f, c);
        if (c->error != 0)
            fy_collective_advance(f, c);
    }
}
