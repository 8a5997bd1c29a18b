/* The port's table. Each operation begins by charging what it costs to the actor that calls it. */
#include "port/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Nanoseconds of a call that finds nothing, of reading the clock, and of going to sleep. */
enum { POLL_NS = 10, CLOCK_NS = 5, WAIT_NS = 20, REFUSED_NS = 10 };

/* After so many polls in vain they are taken for a waiting loop. It then looks every so often, or
 * when something comes. Else polls of a program that waits by polling would be most of all events.
 */
enum { QUIET_POLLS = 4, PAUSE_MIN_NS = 50, PAUSE_MAX_NS = 100000, PAUSE_GROWTH = 4 };

static void sim_close(fy_port *port)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor_sync(actor);
    rank->state = FY_PEER_LEFT;
    fy_world_progress(rank->world);
    if (rank->undelivered == 0)
        fy_world_tell(rank);
    fy_actor_leave(rank);
}

static void sim_end_quietly(fy_port *port)
{
    fy_sim_rank_of(port)->quiet = true;
}

static bool sim_shut(fy_port *port, uint32_t changes)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor_sync(fy_actor_enter(rank));
    /* relaxed: there is one thread */
    rank->shut = atomic_load_explicit(&rank->world->changes, memory_order_relaxed) == changes;
    fy_actor_leave(rank);
    return rank->shut;
}

static void sim_query(const fy_port *port, fy_port_info *info)
{
    const fy_sim_rank *rank = fy_sim_rank_of(port);
    const fy_world *world = rank->world;
    *info = (fy_port_info){
        .rank = rank->rank,
        .ranks = world->rank_count,
        .starting = world->starting < world->rank_count ? world->starting : 0,
        .shares_memory = world->net.shared,
        .wakes_helper = world->options.quantum_ns == 0,
        .leaves = true,
        .virtual_time = true,
        .crowded = true, /* looking before a wait gains nothing here, and each look is an event */
        .inline_bytes = fy_sim_inline_bytes(world),
    };
}

static int sim_send_frame(fy_sim_rank *source, fy_thread thread, fy_lane lane, int target,
                          const fy_frame *frame, bool block)
{
    fy_world *world = source->world;
    if (target < 0 || target >= world->rank_count || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    if (block && fy_blocks_owner(&world->blocks, frame->data, frame->size_bytes) < 0)
        return FERRY_EINVAL;
    fy_actor *actor = fy_actor_enter(source);
    if (world->ranks[target].seen != FY_PEER_ALIVE || world->ranks[target].shut) {
        fy_actor_leave(source);
        return FERRY_EPEER;
    }
    fy_channel *channel = fy_channel_get(source, target, lane, thread);
    int error = channel == NULL ? FERRY_ENOMEM : 0;
    if (error == 0 && !fy_channel_has_room(channel, frame->size_bytes, block)) {
        fy_actor_charge(actor, REFUSED_NS);
        error = FERRY_EAGAIN;
    }
    if (error == 0) {
        source->quiet_polls = 0;
        fy_actor_charge(actor, channel->link.send_ns);
        error = fy_channel_send(channel, actor, frame, block);
    }
    fy_actor_leave(source);
    return error;
}

static int sim_send(fy_port *port, fy_thread thread, fy_lane lane, int target,
                    const fy_frame *frame)
{
    return sim_send_frame(fy_sim_rank_of(port), thread, lane, target, frame, false);
}

static int sim_send_block(fy_port *port, fy_thread thread, fy_lane lane, int target,
                          const fy_frame *frame)
{
    return sim_send_frame(fy_sim_rank_of(port), thread, lane, target, frame, true);
}

/* Hands the first frame of a channel to the client. */
static fy_verdict deliver_first(fy_sim_rank *rank, fy_channel *channel, fy_deliver *deliver,
                                void *context)
{
    const fy_cargo *cargo = channel->arrived.first;
    fy_world *world = rank->world;
    fy_actor_charge(world->running, channel->link.receive_ns * rank->slow);
    if (cargo->number != channel->oracle_taken)
        fy_report_broken(world, channel, "a frame was lost, doubled or overtaken");
    fy_actor_leave(rank);
    fy_verdict verdict = deliver(context, channel->source->rank, &cargo->frame);
    fy_actor_enter(rank);
    if (verdict != FY_LEAVE) {
        channel->oracle_taken++;
        fy_channel_taken(channel, verdict == FY_KEEP);
    }
    return verdict;
}

/* Channels take turns, a frame each. Those whose frame is left come first again next time. */
static int deliver_lane(fy_sim_rank *rank, fy_inbox *inbox, int budget, fy_deliver *deliver,
                        void *context)
{
    fy_channel *left = NULL, **left_end = &left;
    int taken = 0;
    while (taken < budget && inbox->first != NULL) {
        fy_channel *channel = inbox->first;
        inbox->first = channel->inbox_next;
        if (deliver_first(rank, channel, deliver, context) == FY_LEAVE) {
            channel->inbox_next = NULL;
            *left_end = channel;
            left_end = &channel->inbox_next;
            continue;
        }
        taken++;
        channel->listed = false;
        if (channel->arrived.first != NULL)
            fy_channel_list(channel);
    }
    if (inbox->first != NULL)
        inbox->fresh = true;
    if (left != NULL) {
        *left_end = inbox->first;
        if (inbox->first == NULL)
            inbox->last = (fy_channel *)((char *)left_end - offsetof(fy_channel, inbox_next));
        inbox->first = left;
    }
    return taken;
}

/* Whether another actor may run now: the client may hold a lock while it looks at the control lane,
 * and only then; without a helper nobody else wants it. */
static bool may_yield(const fy_sim_rank *rank, const fy_actor *actor, fy_lane lane)
{
    return actor->thread == FY_APP &&
           (lane == FY_DATA || rank->actors[FY_HELPER].state == FY_ACTOR_NONE);
}

/* Waits a moment, longer the longer nothing has come. */
static void pause_poll(fy_sim_rank *rank, fy_actor *actor)
{
    uint64_t pause = PAUSE_MIN_NS;
    pause <<= (rank->quiet_polls - QUIET_POLLS) / PAUSE_GROWTH;
    if (pause < PAUSE_MAX_NS)
        rank->quiet_polls++;
    fy_actor_suspend(actor, FY_ACTOR_PAUSED, actor->clock_ns + pause);
}

static int sim_poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_inbox *inbox = &rank->inbox[lane];
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor_charge(actor, POLL_NS);
    bool yields = may_yield(rank, actor, lane);
    if (yields)
        fy_actor_sync(actor);
    inbox->fresh = false;
    int taken = deliver_lane(rank, inbox, budget, deliver, context);
    if (taken > 0 || rank->inbox[FY_CONTROL].fresh || rank->inbox[FY_DATA].fresh)
        rank->quiet_polls = 0;
    else if (yields && rank->quiet_polls < QUIET_POLLS)
        rank->quiet_polls++;
    else if (yields)
        pause_poll(rank, actor);
    fy_actor_leave(rank);
    return taken;
}

static bool sim_pending(fy_port *port, fy_lane lane)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor_charge(actor, CLOCK_NS);
    if (may_yield(rank, actor, lane))
        fy_actor_sync(actor);
    fy_actor_leave(rank);
    return rank->inbox[lane].first != NULL || (rank->shut && rank->incoming != 0);
}

static void *sim_alloc(fy_port *port, size_t size_bytes, int keeper)
{
    (void)keeper; /* memory of a rank that is dead went with it */
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_world *world = rank->world;
    size_t limit = world->options.heap_bytes;
    if (limit > 0 && (size_bytes > limit || rank->heap_used > limit - size_bytes))
        return NULL;
    if (fy_faults_next(&world->faults, FY_FAULT_NOMEM) != 0)
        return NULL;
    void *address = fy_blocks_alloc(&world->blocks, rank->rank, size_bytes);
    rank->heap_used += address == NULL ? 0 : size_bytes;
    return address;
}

static int sim_release(fy_port *port, void *address)
{
    fy_world *world = fy_sim_rank_of(port)->world;
    int owner;
    size_t size_bytes;
    int error = fy_blocks_release(&world->blocks, address, &owner, &size_bytes);
    if (error == 0)
        world->ranks[owner].heap_used -= size_bytes;
    return error;
}

static int sim_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    (void)thread;
    return fy_blocks_owner(&fy_sim_rank_of(port)->world->blocks, address, size_bytes);
}

static void *sim_board(fy_port *port, int rank)
{
    return fy_sim_rank_of(port)->world->boards + (size_t)rank * FY_BOARD_BYTES;
}

static void sim_rouse(fy_port *port, int rank)
{
    fy_sim_rank *own = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(own);
    fy_actor_wake(&own->world->ranks[rank].actors[FY_APP], actor->clock_ns);
    fy_actor_leave(own);
}

static bool something_came(const fy_sim_rank *rank, fy_thread thread)
{
    bool control = rank->inbox[FY_CONTROL].fresh && rank->served_by == thread;
    return control || (thread == FY_APP && rank->inbox[FY_DATA].fresh);
}

static void sim_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor_charge(actor, WAIT_NS);
    rank->quiet_polls = 0;
    if (actor->woken || something_came(rank, thread) || deadline_ns <= actor->clock_ns)
        fy_actor_sync(actor);
    else
        fy_actor_suspend(actor, FY_ACTOR_WAITING, deadline_ns);
    actor->woken = false;
    fy_actor_leave(rank);
}

static void sim_wake(fy_port *port, fy_thread thread)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor_wake(&rank->actors[thread], actor->clock_ns);
    fy_actor_leave(rank);
}

static void sim_serve(fy_port *port, fy_thread thread)
{
    fy_sim_rank_of(port)->served_by = thread;
}

static uint64_t sim_now(fy_port *port)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor_charge(actor, CLOCK_NS);
    fy_actor_leave(rank);
    return actor->clock_ns;
}

static uint64_t sim_quantum(fy_port *port, uint64_t ns)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    uint64_t before = rank->quantum_ns;
    if (ns != 0 && before != 0)
        rank->quantum_ns = ns;
    return before;
}

static uint64_t sim_cpu(fy_port *port)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor_leave(rank);
    return actor->cpu_ns;
}

static void sim_advance(fy_port *port, uint64_t ns)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    rank->quiet_polls = 0;
    fy_actor_compute(actor, ns);
    fy_actor_leave(rank);
}

static void sim_disk(fy_port *port, int owner, bool writes, uint64_t size_bytes,
                     fy_disk_outcome *out)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    const fy_actor *actor = fy_actor_enter(rank);
    fy_sim_disk_call(&rank->world->ranks[owner], actor->clock_ns, writes, size_bytes, out);
    fy_actor_leave(rank);
}

static int sim_spawn(fy_port *port, void (*entry)(void *arg), void *arg)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    fy_actor *helper = &rank->actors[FY_HELPER];
    if (helper->clock_ns < actor->clock_ns)
        helper->clock_ns = actor->clock_ns;
    int error = fy_actor_start(helper, entry, arg);
    fy_actor_leave(rank);
    return error;
}

static void sim_join(fy_port *port)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor *actor = fy_actor_enter(rank);
    if (rank->actors[FY_HELPER].state != FY_ACTOR_NONE)
        fy_actor_suspend(actor, FY_ACTOR_JOINING, UINT64_MAX);
    fy_actor_leave(rank);
}

static int sim_spawn_ranks(fy_port *port, int count, char *const argv[], int *first)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_world *world = rank->world;
    int number = world->starting + world->spawned, error = 0;
    if (world->starting == world->rank_count)
        return fy_error_set(FERRY_ENOTSUP, "FERRY_RANKS_MAX leaves no room for more ranks");
    if (argv != NULL)
        return fy_error_set(FERRY_ENOTSUP, "simulated ranks run no program but their own");
    if (count > world->rank_count - number)
        return fy_error_set(FERRY_ENOMEM, "no room for %d more ranks: the job has numbers for %d",
                            count, world->rank_count);
    const fy_actor *actor = fy_actor_enter(rank);
    world->spawned += count;
    for (int i = 0; i < count && error == 0; i++)
        error = fy_world_spawn_ranks(&world->ranks[number + i], actor->clock_ns);
    fy_actor_leave(rank);
    if (error == 0)
        *first = number;
    return error;
}

static fy_peer_state sim_peer(fy_port *port, int rank)
{
    return fy_sim_rank_of(port)->world->ranks[rank].seen;
}

/* A rank is seen to have left when all that it sent has arrived: what waits is in the inboxes. */
static bool sim_silent(fy_port *port, int rank)
{
    const fy_sim_rank *own = fy_sim_rank_of(port);
    for (int lane = 0; lane < FY_LANES; lane++)
        for (const fy_channel *c = own->inbox[lane].first; c != NULL; c = c->inbox_next)
            if (c->source->rank == rank)
                return false;
    return true;
}

static const _Atomic uint32_t *sim_changes(fy_port *port)
{
    return &fy_sim_rank_of(port)->world->changes;
}

static void sim_doing(fy_port *port, fy_doing what, uint16_t handler, uint64_t since_ns)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    /* A call in which each rank waits for all others has ended. */
    bool met =
        what == FY_DOING_MAIN && rank->doing >= FY_DOING_BARRIER && rank->doing <= FY_DOING_CLOSE;
    if (since_ns == 0 && what != rank->doing) /* the helper calls too, and it does not wait */
        since_ns = rank->actors[FY_APP].clock_ns;
    if (since_ns != 0)
        rank->doing_ns = since_ns;
    rank->doing = what;
    rank->handler = handler;
    bool runs = what == FY_DOING_HANDLER || what == FY_DOING_TASK;
    if (runs)
        rank->quiet_polls = 0;
    if (runs || met)
        fy_world_progress(rank->world);
}

static void sim_name_handler(fy_port *port, uint16_t handler, const char *name)
{
    const fy_world *world = fy_sim_rank_of(port)->world;
    if (handler < FY_SIM_NAMES && world->names[handler][0] == '\0')
        snprintf(world->names[handler], FY_SIM_NAME_BYTES, "%s", name);
}

/* The run asks when it is stuck (sim.c). */
static bool sim_asked(fy_port *port)
{
    return fy_sim_rank_of(port)->asked;
}

static void sim_answer(fy_port *port, const char *text, size_t size_bytes)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_actor_enter(rank);
    free(rank->answer);
    rank->answer = strndup(text, size_bytes);
    rank->world->unanswered -= rank->asked;
    rank->asked = false;
    fy_actor_leave(rank);
}

static void sim_abort(fy_port *port, int status)
{
    fy_sim_rank *rank = fy_sim_rank_of(port);
    fy_world_end(rank->world, status);
    for (fy_actor *actor = fy_actor_enter(rank);;)
        fy_actor_suspend(actor, FY_ACTOR_READY, UINT64_MAX);
}

static void sim_endure(fy_port *port, bool on)
{
    fy_sim_rank_of(port)->endures = on;
}

static int sim_outcome(fy_port *port, int rank)
{
    return fy_sim_rank_of(port)->world->ranks[rank].outcome;
}

const fy_port_ops fy_sim_ops = {
    .version = FY_PORT_VERSION,
    .name = "sim",
    .transport =
        {
            .version = FY_TRANSPORT_VERSION,
            .close = sim_close,
            .query = sim_query,
            .send = sim_send,
            .poll = sim_poll,
            .pending = sim_pending,
            .wait = sim_wait,
            .wake = sim_wake,
            .serve = sim_serve,
        },
    .host =
        {
            .version = FY_HOST_VERSION,
            .now = sim_now,
            .cpu = sim_cpu,
            .advance = sim_advance,
            .spawn = sim_spawn,
            .join = sim_join,
            .quantum = sim_quantum,
            .disk = sim_disk,
        },
    .heap =
        {
            .version = FY_HEAP_VERSION,
            .send_block = sim_send_block,
            .alloc = sim_alloc,
            .release = sim_release,
            .owner = sim_owner,
            .board = sim_board,
            .rouse = sim_rouse,
        },
    .members =
        {
            .version = FY_MEMBERS_VERSION,
            .peer = sim_peer,
            .silent = sim_silent,
            .changes = sim_changes,
            .endure = sim_endure,
            .spawn_ranks = sim_spawn_ranks,
            .abort = sim_abort,
            .outcome = sim_outcome,
            .end_quietly = sim_end_quietly,
            .shut = sim_shut,
        },
    .diagnosis =
        {
            .version = FY_DIAGNOSIS_VERSION,
            .doing = sim_doing,
            .name_handler = sim_name_handler,
            .asked = sim_asked,
            .answer = sim_answer,
        },
};
