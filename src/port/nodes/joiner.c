#include "port/nodes/joiner.h"

#include <stdlib.h>

#include "base/error.h"
#include "port/shm/layout.h"

/* The changed table of the port, and the state of the functions that replace its own. */
typedef struct joiner {
    fy_port_ops ops;
    const fy_port_ops *shm;
    fy_segment *segment;
    shm_rank *relay;
    int numbers;
} joiner;

static joiner *joiner_of(const fy_port *port)
{
    return (joiner *)(uintptr_t)port->ops;
}

static bool is_far(const joiner *j, int rank)
{
    /* relaxed: set before any rank joined */
    return (atomic_load_explicit(&rank_at(j->segment->base, (uint32_t)rank)->state,
                                 memory_order_relaxed) &
            SHM_FAR) != 0;
}

/* Tells the relay to look for frames to pass on. */
static void ring(const joiner *j)
{
    fy_shm_signal(j->relay, FY_HELPER);
}

static void joiner_close(fy_port *port)
{
    joiner *j = joiner_of(port);
    j->shm->transport.close(port);
    free(j);
}

static void joiner_query(const fy_port *port, fy_port_info *info)
{
    const joiner *j = joiner_of(port);
    j->shm->transport.query(port, info);
    info->ranks = j->numbers;
    info->shares_memory = false;
}

static int joiner_send(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                       const fy_frame *frame)
{
    const joiner *j = joiner_of(port);
    if (rank < 0 || rank >= j->numbers)
        return FERRY_EINVAL;
    int error = j->shm->transport.send(port, thread, lane, rank, frame);
    if (error == 0 && is_far(j, rank))
        ring(j);
    return error;
}

static int joiner_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                             const fy_frame *frame)
{
    const joiner *j = joiner_of(port);
    if (rank < 0 || rank >= j->numbers)
        return FERRY_EINVAL;
    int error = j->shm->heap.send_block(port, thread, lane, rank, frame);
    if (error == 0 && is_far(j, rank))
        ring(j);
    return error;
}

static int joiner_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    const joiner *j = joiner_of(port);
    int rank = j->shm->heap.owner(port, thread, address, size_bytes);
    return rank < 0 || is_far(j, rank) ? -1 : rank;
}

static void *joiner_board(fy_port *port, int rank)
{
    const joiner *j = joiner_of(port);
    return is_far(j, rank) ? NULL : j->shm->heap.board(port, rank);
}

static void joiner_rouse(fy_port *port, int rank)
{
    const joiner *j = joiner_of(port);
    if (!is_far(j, rank))
        j->shm->heap.rouse(port, rank);
}

static void joiner_endure(fy_port *port, bool on)
{
    const joiner *j = joiner_of(port);
    j->shm->members.endure(port, on);
    ring(j);
}

int fy_nodes_spawn_ranks_error(int error, int count, int numbers)
{
    if (error != FERRY_ENOMEM)
        return error;
    return fy_error_set(error,
                        "no room for %d more ranks on this node, which has its share of the "
                        "job's %d numbers and does not use one twice (FERRY_RANKS_MAX)",
                        count, numbers);
}

static int joiner_spawn_ranks(fy_port *port, int count, char *const argv[], int *first)
{
    const joiner *j = joiner_of(port);
    return fy_nodes_spawn_ranks_error(j->shm->members.spawn_ranks(port, count, argv, first), count,
                                      j->numbers);
}

int fy_nodes_joiner(fy_segment *segment, fy_port *port)
{
    joiner *j = malloc(sizeof(*j));
    if (j == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for a port");
    uint32_t relay = common_at(segment->base)->relay;
    j->ops = *port->ops;
    j->shm = port->ops;
    j->segment = segment;
    j->relay = rank_at(segment->base, relay);
    j->numbers = (int)relay;
    j->ops.transport.close = joiner_close;
    j->ops.transport.query = joiner_query;
    j->ops.transport.send = joiner_send;
    j->ops.transport.outlet = NULL; /* each send looks at the relay's state */
    j->ops.heap.send_block = joiner_send_block;
    j->ops.heap.owner = joiner_owner;
    j->ops.heap.board = joiner_board;
    j->ops.heap.rouse = joiner_rouse;
    j->ops.members.endure = joiner_endure;
    j->ops.members.spawn_ranks = joiner_spawn_ranks;
    j->ops.diagnosis.ask = NULL; /* it would reach the ranks of this node alone */
    port->ops = &j->ops;
    return 0;
}
