/* Fibers: the schedule of simulated ranks, which `ferry swarm --net memory` runs with many seeds.
 * Goal: what ranks tell each other by their boards holds wherever a rank is stopped, and however
 * late its stores are seen (stores.h). */
#include "port/sim/world.h"
#include "stores.h"

enum { SHORT_BITS = 12, LONG_NS = 3000000, LONG_ODDS = 4 };

static fy_world *world;
static bool crowded;
static fy_port_ops real;
static fy_port_main *real_main;
static void *real_arg;

int interleave_actor(void)
{
    const fy_actor *actor = world == NULL ? NULL : world->running;
    if (actor == NULL || actor->inside || world->ended)
        return -1;
    return actor->rank->rank * FY_THREADS + (int)actor->thread;
}

bool interleave_shares(const volatile void *at)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)world->boards;
    return offset < (size_t)world->rank_count * FY_BOARD_BYTES;
}

void interleave_step(int actor)
{
    if (!stores_draw_stop(actor))
        return;
    uint64_t ns = UINT64_C(1) << stores_draw(SHORT_BITS);
    if (stores_draw(LONG_ODDS) == 0) { /* another thread has its processor */
        stores_let_out(actor);
        ns = 1 + stores_draw(LONG_NS);
    }
    fy_actor *stopped = world->running;
    stopped->inside = true;
    fy_actor_preempt(stopped, ns);
    stopped->inside = false;
}

/* Calls of the port are seen after what was stored before them. */
static void let_own_out(void)
{
    int actor = interleave_actor();
    if (actor >= 0)
        stores_let_out(actor);
}

static int send_seen(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame)
{
    let_own_out();
    return real.transport.send(port, thread, lane, rank, frame);
}

static int send_block_seen(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                           const fy_frame *frame)
{
    let_own_out();
    return real.heap.send_block(port, thread, lane, rank, frame);
}

/* Ranks that do not share processors look for a while before they sleep. */
static void query_either(const fy_port *port, fy_port_info *info)
{
    real.transport.query(port, info);
    info->crowded = crowded;
}

static void wait_seen(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    let_own_out();
    real.transport.wait(port, thread, deadline_ns);
}

static void rouse_seen(fy_port *port, int rank)
{
    let_own_out();
    real.heap.rouse(port, rank);
}

static void advance_seen(fy_port *port, uint64_t ns)
{
    let_own_out();
    real.host.advance(port, ns);
}

static void close_seen(fy_port *port)
{
    let_own_out();
    real.transport.close(port);
}

static void begin(fy_world *new_world)
{
    world = new_world;
    stores_open(world->rank_count * FY_THREADS, world->options.seed);
    crowded = stores_draw(2) == 0;
    real = world->ops;
    world->ops.transport.query = query_either;
    world->ops.transport.send = send_seen;
    world->ops.transport.wait = wait_seen;
    world->ops.transport.close = close_seen;
    world->ops.host.advance = advance_seen;
    if (world->boards != NULL) {
        world->ops.heap.send_block = send_block_seen;
        world->ops.heap.rouse = rouse_seen;
    }
}

static int rank_main(void *arg, fy_port *port)
{
    (void)arg;
    if (world == NULL)
        begin(fy_sim_rank_of(port)->world);
    return real_main(real_arg, port);
}

/* The linker calls these instead of fy_sim_run, and that by the other name. */
int __real_fy_sim_run(const fy_sim_options *options, fy_port_main *program, void *arg);
int __wrap_fy_sim_run(const fy_sim_options *options, fy_port_main *program, void *arg);
int __wrap_fy_sim_run(const fy_sim_options *options, fy_port_main *program, void *arg)
{
    real_main = program;
    real_arg = arg;
    int status = __real_fy_sim_run(options, rank_main, arg);
    stores_close();
    world = NULL;
    return status;
}
