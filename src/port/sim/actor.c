/* Actors: switching between the scheduler and the fibers, and what time means for each of them. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/sim/world.h"

/* With measured processor time, what the program did since the last call counts as work. */
fy_actor *fy_actor_enter(fy_sim_rank *rank)
{
    fy_world *world = rank->world;
    fy_actor *actor = world->running;
    actor->inside = true;
    if (world->options.cpu_permille > 0) {
        uint64_t ns = fy_clock_cpu_ns() - world->cpu_mark_ns;
        fy_actor_charge(actor, ns * world->options.cpu_permille / 1000);
    }
    return actor;
}

void fy_actor_leave(fy_sim_rank *rank)
{
    rank->world->running->inside = false;
    if (rank->world->options.cpu_permille > 0)
        rank->world->cpu_mark_ns = fy_clock_cpu_ns();
}

void fy_actor_charge(fy_actor *actor, uint64_t ns)
{
    actor->clock_ns += ns;
    actor->cpu_ns += ns;
}

void fy_actor_suspend(fy_actor *actor, fy_actor_state state, uint64_t time_ns)
{
    fy_world *world = actor->rank->world;
    actor->state = state;
    if (time_ns == UINT64_MAX)
        fy_events_cancel(&world->events, &actor->resume);
    else
        fy_events_set(&world->events, &actor->resume, time_ns);
    fy_fiber_switch(&actor->fiber, &world->scheduler);
}

void fy_actor_preempt(fy_actor *actor, uint64_t ns)
{
    actor->rank->preempted = actor;
    fy_actor_suspend(actor, FY_ACTOR_READY, actor->clock_ns + ns);
    actor->rank->preempted = NULL;
}

static void count_look(fy_world *world, fy_sim_rank *rank, uint64_t now_ns)
{
    bool same = rank->era == world->era;
    if (same && ++rank->looks <= FY_LOOKS_MAX)
        return;
    if (same && now_ns - rank->looks_from_ns < FY_LOOKS_NS)
        world->restless = rank;
    rank->era = world->era;
    rank->looks = 0;
    rank->looks_from_ns = now_ns;
}

void fy_actor_sync(fy_actor *actor)
{
    fy_world *world = actor->rank->world;
    count_look(world, actor->rank, actor->clock_ns);
    if (fy_events_next_ns(&world->events) <= actor->clock_ns || world->ended ||
        world->restless != NULL)
        fy_actor_suspend(actor, FY_ACTOR_READY, actor->clock_ns);
    else
        world->now_ns = actor->clock_ns;
}

/* Rounded towards more time: work that is asked for takes some. */
static uint64_t scale(uint64_t ns, uint32_t speed)
{
    return speed == 1000 ? ns : ns / speed * 1000 + (ns % speed * 1000 + speed - 1) / speed;
}

static uint64_t duration_ns(const fy_sim_rank *rank, uint64_t start_ns, uint64_t work_ns)
{
    uint64_t first = scale(work_ns, rank->speed);
    if (rank->speed_later == 0 || start_ns + first <= rank->speed_later_ns)
        return first;
    if (start_ns >= rank->speed_later_ns)
        return scale(work_ns, rank->speed_later);
    uint64_t before = rank->speed_later_ns - start_ns;
    uint64_t done = before / 1000 * rank->speed + before % 1000 * rank->speed / 1000;
    return before + scale(done < work_ns ? work_ns - done : 0, rank->speed_later);
}

/* Returns how long the looks of the helper take while the application works for `duration` more. */
static uint64_t looks_ns(fy_actor *app, uint64_t duration)
{
    const fy_sim_rank *rank = app->rank;
    fy_actor *helper = &app->rank->actors[FY_HELPER];
    if (app == helper || rank->quantum_ns == 0 || rank->served_by != FY_HELPER)
        return 0;
    uint64_t ns = duration / rank->quantum_ns * rank->world->net.look_ns;
    helper->cpu_ns += ns;
    helper->woke_cpu_ns += ns; /* it is charged here */
    return ns;
}

void fy_actor_compute(fy_actor *actor, uint64_t ns)
{
    fy_world *world = actor->rank->world;
    uint64_t duration = duration_ns(actor->rank, actor->clock_ns, ns);
    duration += looks_ns(actor, duration);
    uint64_t end = actor->clock_ns + duration;
    actor->cpu_ns += duration;
    actor->rank->busy_ns += duration;
    fy_world_progress(world);
    actor->rank->left_ns = 0;
    if (actor->thread == FY_HELPER) {
        actor->clock_ns = end;
        return;
    }
    if (fy_events_next_ns(&world->events) <= end || world->ended)
        fy_actor_suspend(actor, FY_ACTOR_COMPUTING, end);
    else
        world->now_ns = actor->clock_ns = end;
    fy_world_progress(world);
}

/* Ends a waiting actor's wait at `time_ns`. */
static void actor_rouse(fy_actor *actor, uint64_t time_ns)
{
    if (actor->state != FY_ACTOR_WAITING && actor->state != FY_ACTOR_PAUSED)
        return;
    if (actor->resume.number != 0 && actor->resume.time_ns < time_ns)
        time_ns = actor->resume.time_ns;
    if (time_ns < actor->clock_ns)
        time_ns = actor->clock_ns;
    actor->state = FY_ACTOR_READY;
    fy_events_set(&actor->rank->world->events, &actor->resume, time_ns);
    fy_actor_fetch(actor);
}

void fy_actor_wake(fy_actor *actor, uint64_t time_ns)
{
    actor->woken = actor->woken || actor->state != FY_ACTOR_WAITING;
    actor_rouse(actor, time_ns);
}

void fy_actor_notify(fy_sim_rank *rank, fy_lane lane)
{
    const fy_world *world = rank->world;
    uint64_t quantum = rank->quantum_ns;
    uint64_t time = world->now_ns + world->net.wake_ns;
    if (lane == FY_DATA || rank->served_by == FY_APP)
        actor_rouse(&rank->actors[FY_APP], time);
    else if (quantum == 0)
        actor_rouse(&rank->actors[FY_HELPER], time);
    else
        actor_rouse(&rank->actors[FY_HELPER], (world->now_ns / quantum + 1) * quantum);
}

/* The helper's work while the application computes is taken from the same processor. */
static void charge_application(fy_actor *helper)
{
    fy_actor *app = &helper->rank->actors[FY_APP];
    uint64_t spent = helper->cpu_ns - helper->woke_cpu_ns;
    helper->woke_cpu_ns = helper->cpu_ns;
    if (app->state == FY_ACTOR_COMPUTING && spent > 0)
        fy_events_set(&helper->rank->world->events, &app->resume, app->resume.time_ns + spent);
}

static _Noreturn void run_entry(void *arg)
{
    fy_actor *actor = arg;
    fy_world *world = actor->rank->world;
    fy_actor_leave(actor->rank);
    actor->entry(actor->arg);
    actor->state = FY_ACTOR_NONE;
    if (actor->thread == FY_HELPER) {
        fy_actor *app = &actor->rank->actors[FY_APP];
        if (app->state == FY_ACTOR_JOINING) {
            app->state = FY_ACTOR_READY;
            fy_events_set(&world->events, &app->resume,
                          actor->clock_ns > app->clock_ns ? actor->clock_ns : app->clock_ns);
        }
    }
    fy_fiber_exit(&actor->fiber, &world->scheduler);
}

int fy_actor_start(fy_actor *actor, void (*entry)(void *arg), void *arg)
{
    fy_world *world = actor->rank->world;
    size_t bytes = world->options.stack_bytes;
    size_t index = (size_t)actor->rank->rank * FY_THREADS + actor->thread;
    actor->entry = entry;
    actor->arg = arg;
    actor->woken = false;
    int error =
        fy_fiber_init(&actor->fiber, world->stacks + index * bytes, bytes, run_entry, actor);
    if (error != 0)
        return error;
    actor->state = FY_ACTOR_READY;
    fy_events_set(&world->events, &actor->resume, actor->clock_ns);
    return 0;
}

void fy_actor_kill(fy_actor *actor)
{
    fy_events_cancel(&actor->rank->world->events, &actor->resume);
    if (actor->state != FY_ACTOR_NONE)
        fy_fiber_fini(&actor->fiber);
    actor->state = FY_ACTOR_NONE;
}

void fy_actor_fetch(const fy_actor *actor)
{
    __builtin_prefetch((const char *)actor + FY_LINE_BYTES);
    __builtin_prefetch(actor->rank);
    __builtin_prefetch(actor->rank->inbox);
    fy_fiber_fetch(&actor->fiber);
}

bool fy_actor_overran(const fy_actor *actor, const void *address)
{
    const fy_fiber *fiber = &actor->fiber;
    uintptr_t below = (uintptr_t)fiber->stack - (uintptr_t)address;
    if (fy_fiber_intact(fiber, address != NULL || actor->state == FY_ACTOR_NONE) &&
        (below == 0 || below > fiber->stack_bytes))
        return false;
    fy_log_line(actor->rank->rank,
                "sim: the %s's stack of %zu bytes was overrun; set FERRY_SIM_STACK_BYTES to more",
                actor->thread == FY_APP ? "program" : "helper", fiber->stack_bytes);
    return true;
}

void fy_actor_run(fy_actor *actor)
{
    fy_world *world = actor->rank->world;
    if (actor->rank->stopped_until_ns > world->now_ns) {
        fy_events_set(&world->events, &actor->resume, actor->rank->stopped_until_ns);
        return;
    }
    const fy_actor *preempted = actor->rank->preempted;
    if (preempted != NULL && preempted != actor) { /* the other may hold a lock */
        fy_events_set(&world->events, &actor->resume, preempted->resume.time_ns);
        return;
    }
    if (actor->clock_ns < world->now_ns)
        actor->clock_ns = world->now_ns;
    actor->state = FY_ACTOR_RUNNING;
    world->running = actor;
    world->counts.switches++;
    world->idle_resumes++;
    fy_world_note(world, world->now_ns);
    fy_world_note(world, (uint64_t)actor->rank->rank << 1 | actor->thread);
    fy_fiber_switch(&world->scheduler, &actor->fiber);
    world->running = NULL;
    if (fy_actor_overran(actor, NULL))
        fy_world_end(world, FY_SIM_BROKEN);
    if (actor->thread == FY_HELPER)
        charge_application(actor);
    if (actor->state == FY_ACTOR_NONE)
        fy_fiber_fini(&actor->fiber);
}
