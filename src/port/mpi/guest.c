#include "port/mpi/guest.h"

#include <stdlib.h>

#include "base/error.h"
#include "port/shm/layout.h"

/* The port's table, and what the functions that differ need. */
typedef struct guest {
    fy_port_ops ops;
    const fy_port_ops *shm;
    fy_segment *segment;
    shm_rank *relay;
    int numbers;
} guest;

static guest *guest_of(const fy_port *port)
{
    return (guest *)(uintptr_t)port->ops;
}

static bool is_far(const guest *g, int rank)
{
    /* relaxed: set before anybody joined */
    return (atomic_load_explicit(&rank_at(g->segment->base, (uint32_t)rank)->state,
                                 memory_order_relaxed) &
            SHM_FAR) != 0;
}

/* The relay looks at what it has to pass on when it is told to. */
static void ring(const guest *g)
{
    fy_shm_signal(g->relay, FY_HELPER);
}

static void guest_close(fy_port *port)
{
    guest *g = guest_of(port);
    g->shm->close(port);
    free(g);
}

static void guest_query(const fy_port *port, fy_port_info *info)
{
    const guest *g = guest_of(port);
    g->shm->query(port, info);
    info->ranks = g->numbers;
    info->shares_memory = false;
}

static int guest_send(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                      const fy_frame *frame)
{
    const guest *g = guest_of(port);
    if (rank < 0 || rank >= g->numbers)
        return FERRY_EINVAL;
    int error = g->shm->send(port, thread, lane, rank, frame);
    if (error == 0 && is_far(g, rank))
        ring(g);
    return error;
}

static int guest_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                            const fy_frame *frame)
{
    const guest *g = guest_of(port);
    if (rank < 0 || rank >= g->numbers)
        return FERRY_EINVAL;
    int error = g->shm->send_block(port, thread, lane, rank, frame);
    if (error == 0 && is_far(g, rank))
        ring(g);
    return error;
}

static int guest_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    const guest *g = guest_of(port);
    int rank = g->shm->owner(port, thread, address, size_bytes);
    return rank < 0 || is_far(g, rank) ? -1 : rank;
}

static void *guest_board(fy_port *port, int rank)
{
    const guest *g = guest_of(port);
    return is_far(g, rank) ? NULL : g->shm->board(port, rank);
}

static void guest_rouse(fy_port *port, int rank)
{
    const guest *g = guest_of(port);
    if (!is_far(g, rank))
        g->shm->rouse(port, rank);
}

static void guest_endure(fy_port *port, bool on)
{
    const guest *g = guest_of(port);
    g->shm->endure(port, on);
    ring(g);
}

int fy_mpi_recruit_error(int error, int count, int numbers)
{
    if (error != FERRY_ENOMEM)
        return error;
    return fy_error_set(error,
                        "no room for %d more ranks on this node, which has its share of the "
                        "job's %d numbers and does not use one twice (FERRY_RANKS_MAX)",
                        count, numbers);
}

static int guest_recruit(fy_port *port, int count, char *const argv[], int *first)
{
    const guest *g = guest_of(port);
    return fy_mpi_recruit_error(g->shm->recruit(port, count, argv, first), count, g->numbers);
}

int fy_mpi_guest(fy_segment *segment, fy_port *port)
{
    guest *g = malloc(sizeof(*g));
    if (g == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for a port");
    uint32_t relay = common_at(segment->base)->relay;
    g->ops = *port->ops;
    g->shm = port->ops;
    g->segment = segment;
    g->relay = rank_at(segment->base, relay);
    g->numbers = (int)relay;
    g->ops.close = guest_close;
    g->ops.query = guest_query;
    g->ops.send = guest_send;
    g->ops.send_block = guest_send_block;
    g->ops.owner = guest_owner;
    g->ops.board = guest_board;
    g->ops.rouse = guest_rouse;
    g->ops.endure = guest_endure;
    g->ops.recruit = guest_recruit;
    g->ops.ask = NULL; /* it reaches the ranks of this node only */
    port->ops = &g->ops;
    return 0;
}
