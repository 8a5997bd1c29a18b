#include "port/mpi/joiner.h"

#include <stdlib.h>

#include "base/error.h"
#include "port/shm/layout.h"

/* The port's table, and what the functions that differ need. */
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

static bool is_far(const joiner *g, int rank)
{
    /* relaxed: set before anybody joined */
    return (atomic_load_explicit(&rank_at(g->segment->base, (uint32_t)rank)->state,
                                 memory_order_relaxed) &
            SHM_FAR) != 0;
}

/* The relay looks at what it has to pass on when it is told to. */
static void ring(const joiner *g)
{
    fy_shm_signal(g->relay, FY_HELPER);
}

static void joiner_close(fy_port *port)
{
    joiner *g = joiner_of(port);
    g->shm->close(port);
    free(g);
}

static void joiner_query(const fy_port *port, fy_port_info *info)
{
    const joiner *g = joiner_of(port);
    g->shm->query(port, info);
    info->ranks = g->numbers;
    info->shares_memory = false;
}

static int joiner_send(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                       const fy_frame *frame)
{
    const joiner *g = joiner_of(port);
    if (rank < 0 || rank >= g->numbers)
        return FERRY_EINVAL;
    int error = g->shm->send(port, thread, lane, rank, frame);
    if (error == 0 && is_far(g, rank))
        ring(g);
    return error;
}

static int joiner_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                             const fy_frame *frame)
{
    const joiner *g = joiner_of(port);
    if (rank < 0 || rank >= g->numbers)
        return FERRY_EINVAL;
    int error = g->shm->send_block(port, thread, lane, rank, frame);
    if (error == 0 && is_far(g, rank))
        ring(g);
    return error;
}

static int joiner_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    const joiner *g = joiner_of(port);
    int rank = g->shm->owner(port, thread, address, size_bytes);
    return rank < 0 || is_far(g, rank) ? -1 : rank;
}

static void *joiner_board(fy_port *port, int rank)
{
    const joiner *g = joiner_of(port);
    return is_far(g, rank) ? NULL : g->shm->board(port, rank);
}

static void joiner_rouse(fy_port *port, int rank)
{
    const joiner *g = joiner_of(port);
    if (!is_far(g, rank))
        g->shm->rouse(port, rank);
}

static void joiner_endure(fy_port *port, bool on)
{
    const joiner *g = joiner_of(port);
    g->shm->endure(port, on);
    ring(g);
}

int fy_mpi_spawn_ranks_error(int error, int count, int numbers)
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
    const joiner *g = joiner_of(port);
    return fy_mpi_spawn_ranks_error(g->shm->spawn_ranks(port, count, argv, first), count,
                                    g->numbers);
}

int fy_mpi_joiner(fy_segment *segment, fy_port *port)
{
    joiner *g = malloc(sizeof(*g));
    if (g == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for a port");
    uint32_t relay = common_at(segment->base)->relay;
    g->ops = *port->ops;
    g->shm = port->ops;
    g->segment = segment;
    g->relay = rank_at(segment->base, relay);
    g->numbers = (int)relay;
    g->ops.close = joiner_close;
    g->ops.query = joiner_query;
    g->ops.send = joiner_send;
    g->ops.send_block = joiner_send_block;
    g->ops.owner = joiner_owner;
    g->ops.board = joiner_board;
    g->ops.rouse = joiner_rouse;
    g->ops.endure = joiner_endure;
    g->ops.spawn_ranks = joiner_spawn_ranks;
    g->ops.ask = NULL; /* it reaches the ranks of this node only */
    port->ops = &g->ops;
    return 0;
}
