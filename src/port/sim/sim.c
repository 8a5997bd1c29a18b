/* Making a world, running it to its end, and freeing it. */
#include "port/sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "port/sim/world.h"

enum { STACK_ALIGNMENT = 4096 };

/* A death is known this long after it; a leaving sooner. */
enum { NOTICE_DEAD_NS = 400 * 1000, NOTICE_LEFT_NS = 1000 };

/* Stuck: nothing done for so long, while each rank looked so often. */
enum { STUCK_LOOKS = 1000 };

/* Frames in a row of which each causes the next, from the last useful thing to the next one. */
enum { SWAPS = 16 };

/* Memory in use is looked at after so many events. */
enum { MEMORY_EVENTS = 32 };

/* A rank that is spawned begins to run at any time within this. */
enum { SPAWNED_NS = 500 * 1000, STREAM_SPAWN_REQUESTS = 3 };
#define STUCK_NS UINT64_C(10000000000)

void fy_world_end(fy_world *world, int status)
{
    if (!world->ended)
        world->status = status;
    world->ended = true;
}

void fy_world_tell(fy_sim_rank *rank)
{
    fy_world *world = rank->world;
    world->deaths |= rank->state == FY_PEER_DEAD;
    if (rank->quiet && !world->deaths) {
        rank->seen = rank->state;
        return;
    }
    rank->notice_next = world->notice_first;
    world->notice_first = rank;
    if (world->notice.number == 0)
        fy_events_set(&world->events, &world->notice,
                      world->now_ns +
                          (rank->state == FY_PEER_DEAD ? NOTICE_DEAD_NS : NOTICE_LEFT_NS));
}

static void tell_changes(fy_world *world)
{
    /* relaxed: read by the same thread, in fy_peers_look */
    atomic_fetch_add_explicit(&world->changes, 1, memory_order_relaxed);
    for (int i = 0; i < world->rank_count; i++)
        for (int thread = 0; thread < FY_THREADS; thread++)
            fy_actor_wake(&world->ranks[i].actors[thread], world->now_ns);
}

/* States become known together, so that many ranks that leave cost their number once, not
 * squared. */
static void notice(fy_world *world)
{
    for (fy_sim_rank *rank = world->notice_first; rank != NULL; rank = rank->notice_next)
        rank->seen = rank->state;
    world->notice_first = NULL;
    tell_changes(world);
}

/* From now on the rank is there. Others see it before the first frame from it: all at once. */
static void rank_join(fy_sim_rank *rank)
{
    fy_world *world = rank->world;
    rank->state = rank->seen = FY_PEER_ALIVE;
    fy_world_progress(world);
    tell_changes(world);
}

static void stop(fy_world *world, const fy_fault *fault)
{
    fy_sim_rank *rank = &world->ranks[fault->first];
    uint64_t until = world->now_ns + fault->for_ns;
    if (until <= rank->stopped_until_ns)
        return;
    uint64_t from = rank->stopped_until_ns > world->now_ns ? rank->stopped_until_ns : world->now_ns;
    rank->stopped_until_ns = until;
    rank->left_ns = 0;
    fy_actor *app = &rank->actors[FY_APP];
    if (app->state == FY_ACTOR_COMPUTING)
        fy_events_set(&world->events, &app->resume, app->resume.time_ns + (until - from));
}

static void die(fy_world *world, const fy_fault *fault)
{
    fy_sim_rank *rank = &world->ranks[fault->first];
    bool comes = rank->state == FY_PEER_ABSENT; /* it was spawned, and will never have run */
    if (rank->finished || (rank->state != FY_PEER_ALIVE && !comes))
        return;
    for (int thread = 0; thread < FY_THREADS; thread++)
        fy_actor_kill(&rank->actors[thread]);
    rank->state = FY_PEER_DEAD;
    rank->outcome = SIGKILL;
    rank->finished = true;
    rank->end_ns = world->now_ns;
    world->unfinished--;
    fy_log_line(rank->rank, "sim: died at %.6f s, as planned", (double)world->now_ns / 1e9);
    fy_world_tell(rank);
    bool all = world->unfinished == 0;
    for (int i = 0; i < world->rank_count && all; i++)
        all = world->ranks[i].state == FY_PEER_DEAD || world->ranks[i].state == FY_PEER_ABSENT;
    if (all)
        fy_world_end(world, 128 + SIGKILL); /* nobody is left to fail */
}

static void strike(fy_world *world, fy_fault *fault)
{
    fy_world_progress(world);
    if (fault->kind == FY_FAULT_STOP) {
        stop(world, fault);
    } else if (fault->kind == FY_FAULT_DIE) {
        die(world, fault);
    } else {
        fault->active = !fault->active;
        if (fault->active)
            fy_events_set(&world->events, &fault->event, world->now_ns + fault->for_ns);
    }
}

static void happen(fy_world *world, fy_event *event)
{
    world->counts.events++;
    fy_world_note(world, event->kind);
    switch (event->kind) {
    case FY_EVENT_RESUME:
        fy_actor_run((fy_actor *)(void *)event);
        break;
    case FY_EVENT_PACKET:
        fy_wire_packet(world, (fy_packet_event *)(void *)event);
        break;
    case FY_EVENT_TIMER:
        fy_wire_timer(world, (fy_channel *)(void *)event);
        break;
    case FY_EVENT_FAULT:
        strike(world, (fy_fault *)(void *)event);
        break;
    default:
        notice(world);
        break;
    }
}

/* Most of an event's time would go by waiting for memory: ranks take turns, and each has its own
 * stack and structures. So the next event's are fetched while this one happens. */
static void look_ahead(const fy_world *world)
{
    const fy_event *next = fy_events_ahead(&world->events);
    if (next != NULL && next->kind == FY_EVENT_RESUME)
        fy_actor_fetch((const fy_actor *)(const void *)next);
    else if (next != NULL && next->kind == FY_EVENT_PACKET)
        fy_wire_fetch((const fy_packet_event *)(const void *)next);
}

static bool is_late(const fy_world *world)
{
    return world->options.time_limit_ns > 0 && world->now_ns >= world->options.time_limit_ns;
}

/* Whether a rank computes, and has less to compute than when it was asked last. The work of a
 * helper that never rests may delay the end of a task forever. */
static bool computes(const fy_world *world, fy_sim_rank *rank)
{
    if (rank->actors[FY_APP].state != FY_ACTOR_COMPUTING)
        return false;
    uint64_t left_ns = rank->actors[FY_APP].resume.time_ns - world->now_ns;
    if (rank->left_ns != 0 && left_ns >= rank->left_ns)
        return false;
    rank->left_ns = left_ns;
    return true;
}

/* Whether a rank computes or is stopped, or some are cut off: then there will be more to do. */
static bool is_held_up(fy_world *world)
{
    bool held = false;
    for (int i = 0; i < world->rank_count; i++) {
        fy_sim_rank *rank = &world->ranks[i];
        held = computes(world, rank) || rank->stopped_until_ns > world->now_ns || held;
    }
    for (size_t i = 0; i < world->faults.timed_count && !held; i++)
        held = world->faults.timed[i].active;
    return held;
}

/* Whether a frame may be on its way that leads to something useful, or was lost and will be sent
 * again: that may take long. Ranks that only look send frames all the time. So all frames that were
 * in flight have to arrive, and those that they caused, and so on SWAPS times; and each time the
 * ranks look once. */
static bool is_sending(fy_world *world)
{
    if (world->in_flight[!world->side] == 0 && world->idle_resumes >= world->swap_resumes) {
        world->side = !world->side;
        world->swaps++;
        world->swap_resumes = world->idle_resumes + (uint64_t)world->unfinished;
    }
    return world->swaps <= SWAPS;
}

/* Why nothing was done for long; NULL: something was, or may be. */
static const char *idle(fy_world *world)
{
    bool long_ago = world->idle_resumes > (uint64_t)world->unfinished * STUCK_LOOKS &&
                    world->now_ns - world->progress_ns > STUCK_NS;
    if (!long_ago && world->restless == NULL)
        return NULL;
    if (world->swaps == 0) {
        world->swaps = 1;
        if (is_held_up(world))
            fy_world_progress(world);
        return NULL;
    }
    if (is_sending(world))
        return NULL;
    if (long_ago)
        return "nothing was done for 10 s, however often the ranks looked";
    snprintf(world->why, sizeof(world->why),
             "rank %d looked %d times within %d ms, and nothing was done", world->restless->rank,
             FY_LOOKS_MAX, FY_LOOKS_NS / 1000000);
    return world->why;
}

/* Why the run can go no further; NULL when it can, or its ranks are to say first what they do. A
 * rank may never answer. */
static const char *stuck(fy_world *world)
{
    if (world->stuck != NULL && (world->unanswered == 0 || world->events.count == 0 ||
                                 world->idle_resumes > (uint64_t)world->unfinished * STUCK_LOOKS))
        return world->stuck;
    if (world->events.count == 0)
        return "nothing will ever happen";
    if (is_late(world))
        return "the time limit has passed";
    return idle(world);
}

/* Asks all what they wait for, and wakes them to answer. False: nobody will. */
static bool sim_ask(fy_world *world, const char *why)
{
    world->stuck = why;
    world->changes++;
    for (int i = 0; i < world->rank_count; i++) {
        fy_sim_rank *rank = &world->ranks[i];
        rank->asked = rank->state == FY_PEER_ALIVE && !rank->finished;
        world->unanswered += rank->asked;
        if (rank->asked)
            fy_actor_wake(&rank->actors[FY_APP], world->now_ns);
    }
    fy_world_progress(world);
    return world->events.count != 0 && !is_late(world);
}

static void loop(fy_world *world)
{
    while (world->unfinished > 0 && !world->ended) {
        const char *why = stuck(world);
        if (why != NULL && (world->stuck != NULL || !sim_ask(world, why))) {
            fy_report_stuck(world, why);
            fy_world_end(world, FY_SIM_STUCK);
            return;
        }
        fy_event *event = fy_events_pop(&world->events);
        if (event->time_ns > world->now_ns)
            world->now_ns = event->time_ns;
        look_ahead(world);
        happen(world, event);
        if (world->options.memory_bytes > 0 && world->counts.events % MEMORY_EVENTS == 0)
            fy_storage_check(world);
    }
}

static void run_rank(void *arg)
{
    fy_sim_rank *rank = arg;
    fy_world *world = rank->world;
    if (rank->state == FY_PEER_ABSENT)
        rank_join(rank);
    int status = world->rank_main(world->arg, &rank->port);
    fy_actor *actor = &rank->actors[FY_APP];
    rank->finished = true;
    rank->end_ns = actor->clock_ns;
    world->unfinished--;
    if (rank->state == FY_PEER_ALIVE) {
        rank->state = FY_PEER_LEFT;
        if (rank->undelivered == 0)
            fy_world_tell(rank);
    }
    if (status != 0)
        fy_world_end(world, status);
}

/* The status of a run in which no rank has failed. A death fails the run unless all others go on
 * after deaths, as it ends a job of processes: also if the dead rank had nothing left to do but to
 * close. The end is the time to ask, since a rank may die before others have said so. */
static int judge_deaths(const fy_world *world)
{
    for (int i = 0; i < world->rank_count && world->deaths; i++) {
        const fy_sim_rank *rank = &world->ranks[i];
        if (rank->state == FY_PEER_DEAD || rank->state == FY_PEER_ABSENT || rank->endures)
            continue;
        fy_log_line(rank->rank, "sim: a rank has died, and this rank does not go on after deaths "
                                "(ferry_peer_watch): the run fails");
        return 128 + SIGKILL;
    }
    return 0;
}

int fy_world_spawn_ranks(fy_sim_rank *rank, uint64_t time_ns)
{
    fy_world *world = rank->world;
    fy_actor *actor = &rank->actors[FY_APP];
    fy_random random;
    fy_random_init(&random, world->options.seed + STREAM_SPAWN_REQUESTS, (uint64_t)rank->rank);
    actor->clock_ns = time_ns + 1 + fy_random_below(&random, SPAWNED_NS);
    int error = fy_actor_start(actor, run_rank, rank);
    if (error != 0)
        return error;
    rank->finished = false;
    world->unfinished++;
    return 0;
}

static int make_stacks(fy_world *world)
{
    size_t *bytes = &world->options.stack_bytes;
    *bytes = (*bytes + STACK_ALIGNMENT - 1) & ~(size_t)(STACK_ALIGNMENT - 1);
    world->stacks_bytes = *bytes * FY_THREADS * (size_t)world->rank_count;
    unsigned char *stacks = mmap(NULL, *bytes + world->stacks_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        world->stacks_bytes = 0;
        return fy_error_set(FERRY_ENOMEM, "sim: no room for the stacks of %d ranks, %zu bytes each",
                            world->rank_count, *bytes);
    }
    /* A huge page would commit the stacks of many fibers for one that runs. */
    madvise(stacks, *bytes + world->stacks_bytes, MADV_NOHUGEPAGE);
    /* Below the first stack lies something else, which an overrun would change. */
    mprotect(stacks, *bytes, PROT_NONE);
    world->stacks = stacks + *bytes;
    return 0;
}

static void make_rank(fy_world *world, int number)
{
    fy_sim_rank *rank = &world->ranks[number];
    rank->port.ops = &world->ops;
    rank->world = world;
    rank->rank = number;
    bool absent = number >= world->starting;
    rank->state = rank->seen = absent ? FY_PEER_ABSENT : FY_PEER_ALIVE;
    rank->finished = absent;
    rank->outcome = -1;
    rank->speed = 1000;
    rank->quantum_ns = world->options.quantum_ns;
    rank->slow = 1;
    for (int thread = 0; thread < FY_THREADS; thread++) {
        rank->actors[thread].resume.kind = FY_EVENT_RESUME;
        rank->actors[thread].rank = rank;
        rank->actors[thread].thread = (fy_thread)thread;
    }
}

static int plan_faults(fy_world *world)
{
    fy_faults *faults = &world->faults;
    int error = fy_faults_open(world->options.faults, world->options.seed, world->rank_count,
                               world->net.far.latency_ns, faults);
    if (error != 0)
        return error;
    world->lossy = !world->net.direct && fy_faults_lossy(faults);
    if (faults->ring_slots > 0)
        world->options.ring_slots = faults->ring_slots;
    for (size_t i = 0; i < faults->slow_count; i++)
        world->ranks[faults->slow[i].rank].slow = (uint32_t)faults->slow[i].factor;
    for (size_t i = 0; i < faults->timed_count; i++) {
        faults->timed[i].event = (fy_event){.kind = FY_EVENT_FAULT};
        fy_events_set(&world->events, &faults->timed[i].event, faults->timed[i].at_ns);
    }
    return 0;
}

static int make_ranks(fy_world *world)
{
    size_t count = (size_t)world->rank_count;
    world->ranks = aligned_alloc(FY_LINE_BYTES, count * sizeof(*world->ranks));
    if (world->ranks != NULL)
        memset(world->ranks, 0, count * sizeof(*world->ranks));
    world->names = calloc(FY_SIM_NAMES, sizeof(*world->names));
    if (world->net.direct)
        world->boards = calloc(count, FY_BOARD_BYTES);
    if (world->ranks == NULL || world->names == NULL ||
        (world->net.direct && world->boards == NULL) ||
        fy_table_init(&world->channels, 2 * sizeof(uint64_t)) != 0 ||
        fy_events_reserve(&world->events, 4 * count) != 0 ||
        fy_fiber_thread(&world->scheduler) != 0)
        return fy_error_set(FERRY_ENOMEM, "sim: no memory for %d ranks", world->rank_count);
    world->ops = fy_sim_ops;
    if (!world->net.shared)
        world->ops.heap = (fy_heap_ops){.version = FY_HEAP_VERSION};
    if (!world->net.direct) {
        world->ops.heap.board = NULL;
        world->ops.heap.rouse = NULL;
    }
    for (int i = 0; i < world->rank_count; i++)
        make_rank(world, i);
    return make_stacks(world);
}

static int world_make(fy_world *world)
{
    fy_sim_options *options = &world->options;
    fy_sim_options_fill(options);
    if (options->ranks < 1 || options->ranks > FY_SIM_RANKS_MAX)
        return fy_error_set(FERRY_EINVAL, "sim: %d ranks; expected 1 to %d", options->ranks,
                            FY_SIM_RANKS_MAX);
    if (options->ranks_max < options->ranks || options->ranks_max > FY_SIM_RANKS_MAX)
        return fy_error_set(FERRY_EINVAL,
                            "sim: %d ranks at most, %d at the start; expected %d to %d at most",
                            options->ranks_max, options->ranks, options->ranks, FY_SIM_RANKS_MAX);
    if (options->stack_bytes < FY_FIBER_STACK_MIN)
        return fy_error_set(FERRY_EINVAL, "sim: stacks of %zu bytes; expected at least %d",
                            options->stack_bytes, FY_FIBER_STACK_MIN);
    world->rank_count = options->ranks_max;
    world->starting = world->unfinished = options->ranks;
    world->hash = 0xcbf29ce484222325u;
    world->notice.kind = FY_EVENT_NOTICE;
    fy_events_init(&world->events);
    fy_pool_init(&world->channel_pool, sizeof(fy_channel), 64);
    fy_pool_init(&world->packet_pool, sizeof(fy_packet_event), 256);
    fy_pool_init(&world->cargo_pools[0], sizeof(fy_cargo) + 64, 128);
    fy_pool_init(&world->cargo_pools[1], sizeof(fy_cargo) + 512, 32);
    fy_pool_init(&world->cargo_pools[2], sizeof(fy_cargo) + 4096, 8);
    int error = fy_net_open(options->net, options->ranks_max, &world->net);
    if (error == 0)
        error = make_ranks(world);
    if (error == 0)
        error = plan_faults(world);
    if (error == 0)
        error = fy_speeds_read(world, options->speeds);
    if (error == 0)
        error = fy_sim_disk_read(world, options->disk);
    return error;
}

static int start_ranks(fy_world *world)
{
    int error = 0;
    for (int i = 0; i < world->starting && error == 0; i++)
        error = fy_actor_start(&world->ranks[i].actors[FY_APP], run_rank, &world->ranks[i]);
    return error;
}

/* Cargo too big for the pools lies in the channels' queues and on the wire. */
static void free_cargo(fy_world *world)
{
    for (fy_event *event = fy_events_pop(&world->events); event != NULL;
         event = fy_events_pop(&world->events)) {
        fy_packet_event *packet = (fy_packet_event *)(void *)event;
        if (event->kind == FY_EVENT_PACKET && packet->cargo != NULL)
            fy_cargo_release(world, packet->cargo);
    }
    size_t index = 0;
    for (const uint64_t *slot; (slot = fy_table_next(&world->channels, &index)) != NULL;) {
        fy_channel *channel = (fy_channel *)(uintptr_t)slot[1];
        for (fy_cargo *cargo = channel->arrived.first, *next; cargo != NULL; cargo = next) {
            next = cargo->next;
            fy_cargo_release(world, cargo);
        }
        for (fy_cargo *cargo = channel->early, *next; cargo != NULL; cargo = next) {
            next = cargo->next;
            fy_cargo_release(world, cargo);
        }
        for (fy_cargo *cargo = channel->unacknowledged.first, *next; cargo != NULL; cargo = next) {
            next = cargo->later;
            fy_cargo_release(world, cargo);
        }
    }
}

static void world_free(fy_world *world)
{
    if (world == NULL)
        return;
    if (world->channels.slots != NULL) {
        free_cargo(world);
        fy_table_fini(&world->channels);
    }
    for (int i = 0; world->ranks != NULL && i < world->rank_count; i++)
        for (int thread = 0; thread < FY_THREADS; thread++)
            if (world->ranks[i].world != NULL)
                fy_actor_kill(&world->ranks[i].actors[thread]);
    fy_fiber_fini(&world->scheduler);
    if (world->stacks != NULL)
        munmap(world->stacks - world->options.stack_bytes,
               world->options.stack_bytes + world->stacks_bytes);
    fy_events_fini(&world->events);
    fy_pool_fini(&world->channel_pool);
    fy_pool_fini(&world->packet_pool);
    for (int i = 0; i < FY_CARGO_POOLS; i++)
        fy_pool_fini(&world->cargo_pools[i]);
    fy_blocks_fini(&world->blocks);
    fy_faults_fini(&world->faults);
    fy_net_fini(&world->net);
    for (int i = 0; world->ranks != NULL && i < world->rank_count; i++) {
        free(world->ranks[i].answer);
        free(world->ranks[i].disk_free_ns);
    }
    free(world->ranks);
    free(world->boards);
    free(world->names);
    free(world);
}

/* At the start the plan, in case the program does not let the run come to its end; then the faults
 * that struck. */
static int write_tape(const fy_world *world, bool struck)
{
    const char *name = world->options.tape;
    if (name == NULL)
        return 0;
    FILE *file = fy_file_create(name, false);
    if (file != NULL) {
        fy_faults_print(&world->faults, struck, file);
        if (fclose(file) == 0)
            return 0;
    }
    return fy_error_set(FERRY_ESYSTEM, "sim: cannot write the tape \"%s\": %s", name,
                        strerror(errno));
}

/* Also if the result is not 0, world_free frees `*out`. */
static int world_create(const fy_sim_options *options, fy_world **out)
{
    fy_world *world = *out = calloc(1, sizeof(*world));
    if (world == NULL)
        return fy_error_set(FERRY_ENOMEM, "sim: no memory");
    world->options = *options;
    return world_make(world);
}

int fy_sim_check(const fy_sim_options *options)
{
    fy_world *world;
    int error = world_create(options, &world);
    world_free(world);
    return error;
}

int fy_sim_run(const fy_sim_options *options, fy_port_main *rank_main, void *arg)
{
    fy_world *world;
    int status = world_create(options, &world);
    if (status == 0) {
        world->rank_main = rank_main;
        world->arg = arg;
        status = start_ranks(world);
    }
    if (status == 0)
        status = write_tape(world, false);
    if (status == 0)
        status = fy_storage_watch(world);
    if (status == 0) {
        int socket = fy_env_say_opened();
        uint64_t start_ns = fy_clock_now_ns();
        fy_crash *crash = fy_crash_watch(fy_report_running, world);
        loop(world);
        fy_crash_unwatch(crash);
        fy_storage_unwatch();
        fy_env_say_ended(socket);
        close(socket);
        status = world->ended ? world->status : judge_deaths(world);
        if (write_tape(world, true) != 0 && status == 0)
            status = FERRY_ESYSTEM;
        if (world->options.report)
            fy_report_end(world, fy_clock_now_ns() - start_ns);
    }
    world_free(world);
    return status;
}
