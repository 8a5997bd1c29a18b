/* Notices: ranks tell the ranks of other nodes that they come or go, and whether they go on when
 * others die. */
#include "base/clock.h"
#include "base/log.h"
#include "port/nodes/port_state.h"

void fy_nodes_tell(nodes_port *p, endpoint *from, fy_lane lane, int process, notices what)
{
    for (bool told = false; !told;) {
        lock(p);
        told = fy_nodes_notice(p, from, lane, process, what);
        unlock(p);
        if (!told)
            fy_clock_sleep_until(fy_clock_now_ns() + PAUSE_MAX_NS);
    }
}

void fy_nodes_rouse_self(nodes_port *p)
{
    shm_rank *own =
        rank_at(p->node->segment->base, (uint32_t)fy_node_place(p->node, p->node->self));
    /* seq_cst: as in fy_controls_mark */
    atomic_fetch_add_explicit(&own->events, 1, memory_order_seq_cst);
}

void fy_nodes_take_arrival(nodes_port *p, int source)
{
    /* relaxed: changed with the lock held only */
    if (source < p->world ||
        (atomic_load_explicit(&p->far[source], memory_order_relaxed) & (FAR_HERE | FAR_BYES)) != 0)
        return;
    atomic_fetch_or_explicit(&p->far[source], FAR_HERE, memory_order_release);
    fy_nodes_rouse_self(p);
}

static void take_farewell(nodes_port *p, int source, bool died)
{
    /* relaxed: changed with the lock held only */
    uint8_t before = atomic_load_explicit(&p->far[source], memory_order_relaxed);
    bool lost = (before & FAR_LOST) != 0;
    if (before / FAR_HEARD == FY_LANES)
        return;
    if (died)
        atomic_fetch_or_explicit(&p->far[source], FAR_DEAD, memory_order_relaxed);
    /* release: pairs with the acquire in fy_nodes_far_state: what it sent before is here */
    atomic_fetch_add_explicit(&p->far[source], (uint8_t)(FAR_HEARD + !lost), memory_order_release);
    if (before / FAR_HEARD != FY_LANES - 1)
        return;
    p->farewells += source < p->world;
    if (!lost)
        fy_nodes_rouse_self(p);
}

static void lose_rank(nodes_port *p, int rank)
{
    /* relaxed: changed with the lock held only */
    uint8_t before = atomic_load_explicit(&p->far[rank], memory_order_relaxed);
    uint8_t heard = (uint8_t)(before / FAR_HEARD * FAR_HEARD);
    /* release: as in take_farewell */
    atomic_store_explicit(&p->far[rank],
                          (uint8_t)(heard | FAR_HERE | FAR_DEAD | FAR_LOST | FY_LANES),
                          memory_order_release);
    p->has_lost = true;
}

/* Counts as lost all ranks for which a process takes messages, and the process itself. */
static void lose_process(nodes_port *p, int process)
{
    if (p->place[process] >= 0)
        return;
    lose_rank(p, process);
    for (int rank = p->world; rank < p->ranks; rank++)
        if (p->place[rank] < 0 && fy_nodes_home(p, rank) == process)
            lose_rank(p, rank);
    fy_nodes_rouse_self(p);
}

__attribute__((cold, noinline)) void fy_nodes_cut_off(nodes_port *p, int process, const char *what)
{
    if (p->cut_off)
        return;
    p->cut_off = true;
    fy_log_line(p->rank,
                "a message from or to rank %d is lost: %s; this rank and those of other nodes "
                "count as dead to each other",
                process, what);
    for (int i = 0; i < p->world; i++) {
        lose_process(p, i);
        if (p->place[i] < 0)
            (void)fy_nodes_notice(p, &p->self, FY_CONTROL, i, NOTICES_LOST);
    }
}

void fy_nodes_take_notices(nodes_port *p, int source, uint32_t what)
{
    if (what == NOTICES_LOST) {
        fy_log_line(p->rank, "rank %d has lost messages: it counts as dead", source);
        lose_process(p, fy_nodes_home(p, source));
        return;
    }
    if (what != NOTICES_DEAD)
        fy_nodes_take_arrival(p, source);
    if (what == NOTICES_BYE || what == NOTICES_DEAD)
        take_farewell(p, source, what == NOTICES_DEAD);
    if (what == NOTICES_DONE)
        p->done++;
    if ((what == NOTICES_ENDURES || what == NOTICES_MORTAL) && p->node->numbers != 0)
        /* seq_cst: as in shm_endure; read when a rank of this node dies */
        atomic_store(&rank_at(p->node->segment->base, (uint32_t)source)->endures,
                     what == NOTICES_ENDURES);
}
