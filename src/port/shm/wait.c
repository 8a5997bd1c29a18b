/* Sleeping and waking.
 *
 * A thread that goes to sleep sets its `asleep` word, looks once more for what it waits for, and
 * sleeps on the word. A thread that brings something publishes it, then reads the word. One of the
 * two sees the other's store. On the control lane, for signals and for events, all four accesses
 * are sequentially consistent. On the data lane the sender's accesses are not. There the sleeper
 * calls membarrier between its own two, which makes every other processor of the job order its
 * accesses.
 *
 * If ranks share processors, they may sleep often. To interrupt every processor each time then
 * costs more than a fence in each send. So a rank that goes to sleep says that senders must fence
 * (SHM_NEEDS_FENCE), and calls membarrier once. From then on it sleeps without membarrier, until it
 * has not slept for a while.
 *
 * A sender that published without a fence reads SHM_NEEDS_FENCE once more, after it has read the
 * word. Either both reads came before the membarrier, and this has made its store visible. Or the
 * sender sees the flag and publishes again with a fence. tests/models/doze.pml.
 *
 * How long a thread looks before it sleeps is chosen by measurement. It spins a few times, then
 * makes timed yields. While they return quickly, nobody else wants the core, and looking costs
 * nothing. Looking goes on for ten times what a sleep and its end take, because ranks that compute
 * between two exchanges differ by about that time.
 *
 * A slow yield shows that another program computes on this core. It may go on for long, or have
 * ended already. So the rank sleeps without a look in its next few waits, then looks again. If a
 * yield is slow again soon, the rank sleeps in many more waits. Beside a computing program looks
 * become so rare that they cost a few percent. After a short burst the rank soon yields again. */
#include "port/shm/port_state.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/relax.h"

#define SPINS 20
#define YIELDS 40
#define YIELDS_MAX 1000 /* while only ranks run on this core */
#define LOOK_NS 300000u /* if several do */
#define YIELDS_TIMED 4  /* timed together, after the first */
#define QUICK_YIELDS_NS 6000u
#define SLOW_YIELD_NS 400000u /* no ranks that only communicate take so long */
/* After a slow yield a rank sleeps without a look in some waits: one for each IMPATIENCE_NS of the
 * yield. If the last slow yield was at most SOON_LOOKS ago, IMPATIENCE_GROWTH times as many as then
 * are added. */
#define IMPATIENCE_NS (1u << 19)
#define SOON_LOOKS 16
#define IMPATIENCE_GROWTH 32u
#define IMPATIENCE_MAX 12800u
/* The longest sleep: what should end it may be in memory that was overwritten. */
#define SLEEP_MAX_NS 1000000000u
#define AWAKE_DECISIONS 200 /* after so many waits without sleep senders need no fence */

static void repair_at(shm_port *p, fy_thread thread, uint64_t now_ns)
{
    if (now_ns - p->repaired_ns[thread] < SLEEP_MAX_NS)
        return;
    p->repaired_ns[thread] = now_ns;
    fy_shm_repair(p, thread);
}

static void futex_sleep(shm_port *p, fy_thread thread, _Atomic uint32_t *word, uint64_t deadline_ns)
{
    uint64_t now_ns = fy_clock_now_ns();
    repair_at(p, thread, now_ns);
    uint64_t latest_ns = now_ns + SLEEP_MAX_NS;
    if (deadline_ns < latest_ns)
        latest_ns = deadline_ns;
    struct timespec t = {
        .tv_sec = (time_t)(latest_ns / 1000000000u),
        .tv_nsec = (long)(latest_ns % 1000000000u),
    };
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, 1, &t, NULL, FUTEX_BITSET_MATCH_ANY);
}

void fy_rouse(_Atomic uint32_t *asleep)
{
    /* seq_cst: after the caller has published. The sleeper sets it before it looks once more */
    if (atomic_exchange(asleep, 0))
        syscall(SYS_futex, asleep, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void fy_shm_signal(shm_rank *target, fy_thread thread)
{
    /* seq_cst: before the look at `asleep` in fy_rouse */
    atomic_store(&target->signal[thread], 1);
    fy_rouse(thread == FY_APP ? &target->app_asleep : &target->helper_asleep);
}

void fy_shm_wake(fy_port *port, fy_thread thread)
{
    fy_shm_signal(state_of(port)->self, thread);
}

void fy_shm_serve(fy_port *port, fy_thread thread)
{
    /* seq_cst: before the caller's poll. A sender that still saw the other name has published
     * before that. */
    atomic_store(&state_of(port)->self->serve, (uint32_t)thread);
}

__attribute__((cold)) void fy_controls_tell(void *base, uint32_t ranks)
{
    for (uint32_t i = 0; i < ranks; i++) {
        shm_rank *peer = rank_at(base, i);
        /* seq_cst: after the changes to see, and before the look at sleeping threads. The caller
         * may have joined just now. Then it has to find this rank shut, which may be about to say
         * so itself. */
        if (atomic_fetch_add(&peer->events, 1) >> SHM_SHUT_SHIFT == SHM_SHUT)
            atomic_fetch_or(&peer->state, SHM_SHUT << SHM_SHUT_SHIFT);
        fy_rouse(&peer->app_asleep);
        fy_rouse(&peer->helper_asleep);
    }
}

__attribute__((cold)) void fy_controls_note(void *base, uint32_t rank, shm_state state)
{
    /* seq_cst: before the events; `peer` reads it after them */
    _Atomic uint32_t *word = &rank_at(base, rank)->state;
    uint32_t old = atomic_load(word);
    while (!atomic_compare_exchange_weak(word, &old, (old & ~SHM_STATE_MASK) | (uint32_t)state)) {
    }
}

__attribute__((cold)) void fy_controls_mark(void *base, uint32_t ranks, uint32_t rank,
                                            shm_state state)
{
    fy_controls_note(base, rank, state);
    fy_controls_tell(base, ranks);
}

__attribute__((cold)) void fy_shm_barrier_probe(shm_port *p)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    bool offered = commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    bool registered =
        offered && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    p->barrier = offered;
    p->fenced = !offered;
    p->fence = !registered;
}

/* Makes the stores of senders visible, after the store to `asleep`. */
static void order_senders(shm_port *p)
{
    p->awake = 0;
    if (p->fenced)
        return;
    if (p->crowded) {
        /* seq_cst: before membarrier; senders look at it after they have published */
        atomic_fetch_or(&p->self->state, SHM_NEEDS_FENCE);
        p->fenced = true;
    }
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

/* Counts a wait that ended without sleep. */
static void stay_awake(shm_port *p)
{
    if (!p->fenced || !p->barrier || ++p->awake < AWAKE_DECISIONS)
        return;
    /* relaxed: a sender that sees it late fences once too often */
    atomic_fetch_and_explicit(&p->self->state, ~SHM_NEEDS_FENCE, memory_order_relaxed);
    p->fenced = false;
}

__attribute__((cold)) bool fy_shm_is_crowded(const fy_segment *segment)
{
    cpu_set_t allowed;
    uint32_t there = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return false;
    uint32_t processors = (uint32_t)CPU_COUNT(&allowed);
    for (uint32_t rank = 0; rank < segment->ranks && there <= processors; rank++) {
        /* relaxed: a later look sees what this one misses */
        uint32_t state =
            atomic_load_explicit(&rank_at(segment->base, rank)->state, memory_order_relaxed);
        state &= SHM_STATE_MASK | SHM_FAR;
        there += state == SHM_JOINED || (state == SHM_ABSENT && rank < segment->starting);
    }
    return there > processors;
}

/* Whether wake was called, or the state of a peer changed, since the last call. */
static bool notices(shm_port *p, fy_thread thread)
{
    /* seq_cst: after the store to `asleep` */
    if (atomic_load(&p->self->signal[thread])) {
        atomic_store(&p->self->signal[thread], 0);
        return true;
    }
    uint32_t events = atomic_load(&p->self->events);
    if (events == p->events_seen[thread])
        return false;
    p->events_seen[thread] = events;
    if (thread == FY_APP)
        p->crowded = fy_shm_is_crowded(p->segment);
    return true;
}

static bool lookout_ends(fy_lookout *lookout, bool sleeps)
{
    return lookout != NULL && lookout->is_over(lookout, sleeps);
}

/* As app_ready, for looks that are repeated: it may miss something that has just come. */
static bool app_sees(shm_port *p)
{
    return fy_shm_has_news(p) || notices(p, FY_APP);
}

static bool app_ready(shm_port *p)
{
    return fy_shm_pending(&p->port, FY_DATA) || fy_shm_pending(&p->port, FY_CONTROL) ||
           notices(p, FY_APP);
}

static bool helper_ready(shm_port *p)
{
    /* seq_cst: pairs with fy_shm_serve */
    bool serving = atomic_load(&p->self->serve) == FY_HELPER;
    return (serving && fy_shm_pending(&p->port, FY_CONTROL)) || notices(p, FY_HELPER);
}

static __attribute__((cold)) void lose_patience(shm_port *p, uint64_t yield_ns)
{
    uint64_t waits = 1 + yield_ns / IMPATIENCE_NS;
    if (p->calm <= SOON_LOOKS)
        waits += IMPATIENCE_GROWTH * p->impatience_last;
    p->impatience_last = p->impatience = waits < IMPATIENCE_MAX ? (uint32_t)waits : IMPATIENCE_MAX;
    p->calm = 0;
}

/* Looks for a while. Returns true if something has come or the deadline has passed. `*now_ns` is
 * moved on. */
static bool shm_look(shm_port *p, uint64_t *now_ns, uint64_t deadline_ns, fy_lookout *lookout)
{
    for (int i = 0; i < SPINS && !p->crowded; i++) {
        if (app_sees(p) || lookout_ends(lookout, false))
            return true;
        fy_relax();
    }
    uint64_t first = *now_ns, before = first;
    repair_at(p, FY_APP, first);
    bool goes_on = true;
    p->calm++;
    for (uint32_t i = 0; i < (goes_on ? YIELDS_MAX : YIELDS); i++) {
        sched_yield();
        bool sees = lookout_ends(lookout, false) || app_sees(p);
        if (!sees && i % YIELDS_TIMED != 0)
            continue;
        uint64_t after = *now_ns = fy_clock_now_ns();
        bool ends = sees || after >= deadline_ns;
        /* A slow yield counts although something has come, as it often has by then. */
        if (after - before > SLOW_YIELD_NS) {
            lose_patience(p, after - before);
            return ends;
        }
        if (ends)
            return true;
        goes_on &= p->crowded ? after - first < LOOK_NS : after - before < QUICK_YIELDS_NS;
        before = after;
    }
    return false;
}

uint64_t fy_shm_await(fy_port *port, uint64_t now_ns, uint64_t deadline_ns, fy_lookout *lookout)
{
    shm_port *p = state_of(port);
    if (app_sees(p))
        return now_ns;
    if (p->impatience > 0) {
        if (deadline_ns <= now_ns)
            return now_ns;
        p->impatience--;
    } else if (shm_look(p, &now_ns, deadline_ns, lookout)) {
        stay_awake(p);
        return now_ns;
    }
    fy_heap_trim(p->heap);
    /* seq_cst: before the last look; pairs with fy_rouse */
    atomic_store(&p->self->app_asleep, 1);
    order_senders(p);
    /* A helper may poll the control lane: then the lane's state is not this thread's. */
    bool both = p->helper_entry == NULL;
    bool odd = fy_shm_look_closer(p, FY_DATA) || (both && fy_shm_look_closer(p, FY_CONTROL));
    if (!odd && !app_ready(p) && !lookout_ends(lookout, true))
        futex_sleep(p, FY_APP, &p->self->app_asleep, deadline_ns);
    atomic_store(&p->self->app_asleep, 0);
    return fy_clock_now_ns();
}

static void wait_helper(shm_port *p, uint64_t deadline_ns)
{
    if (helper_ready(p))
        return;
    /* seq_cst: before the last look; pairs with fy_rouse */
    atomic_store(&p->self->helper_asleep, 1);
    if (!helper_ready(p))
        futex_sleep(p, FY_HELPER, &p->self->helper_asleep, deadline_ns);
    atomic_store(&p->self->helper_asleep, 0);
}

void fy_shm_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    if (thread == FY_APP)
        (void)fy_shm_await(port, fy_clock_now_ns(), deadline_ns, NULL);
    else
        wait_helper(state_of(port), deadline_ns);
}
