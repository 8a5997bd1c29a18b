/* Joining: the part of objects. A rank that has joined knows the types of objects when it calls its
 * first ferry_quiesce. It then tells all ranks, and later also ranks that join after it. From then
 * on they may send it objects, during the quiescence. These notices count as work. So the
 * quiescence does not end before all ranks have got them, and their immediate answers have arrived
 * too. */
#include "core/kinds.h"
#include "core/membership.h"
#include "core/rank.h"
#include "core/work.h"

static void say_ready(ferry *f, int rank)
{
    const fy_frame frame = {.kind = FY_KIND_READY};
    (void)fy_send_as_work(f, rank, &frame); /* a rank that is not told sends no objects: no harm */
}

void fy_join_ready(ferry *f)
{
    if (f->ready || f->collectives.group->self >= 0)
        return;
    f->ready = true;
    for (int rank = 0; rank < f->head.ranks; rank++)
        if (rank != f->head.rank && !fy_peer_is_gone(f, rank))
            say_ready(f, rank);
}

void fy_join_tell(ferry *f, int rank)
{
    if (f->ready)
        say_ready(f, rank);
}

fy_verdict fy_ready_deliver(ferry *f, int source, const fy_frame *frame)
{
    (void)frame;
    if (fy_work_arrives(f, source, 1) != 0)
        return FY_LEAVE;
    if (!fy_set_has(f->peers.ready, source)) {
        fy_set_add(f->peers.ready, source);
        fy_layers_members(f);
    }
    f->head.work_finished++;
    return FY_TAKEN;
}
