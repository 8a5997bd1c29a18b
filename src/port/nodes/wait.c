/* Waiting. A binding cannot sleep and be woken, so a thread looks for messages again and again,
 * with growing pauses. It spins, then yields while yields return quickly. Then it sleeps in port
 * shm, where the ranks of this node can wake it. A pause is a part of the time that the thread has
 * waited, up to PAUSE_MAX_NS. So a message that comes late is seen late by that part at most. The
 * helper looks once per quantum (FERRY_QUANTUM_US). */
#include "port/nodes/port_state.h"

#include <sched.h>

#include "base/clock.h"

#define SPINS 20
#define YIELDS 100
#define SLOW_YIELD_NS 100000u
/* Each pause is longer than the one before by this part: it is this part of all pauses before. */
#define PAUSE_PART 8u
/* The pause of a helper that does not serve the control lane. It may be told to serve it at any
 * time. */
#define IDLE_QUANTUM_NS 1000000u

static bool near_pending(nodes_port *p)
{
    const fy_port_ops *ops = p->near->ops;
    return ops->transport.pending(p->near, FY_DATA) || ops->transport.pending(p->near, FY_CONTROL);
}

/* Whether anything has come for the application thread. */
static bool app_ready(nodes_port *p)
{
    lock(p);
    fy_nodes_pump(p, FY_DATA);
    if (!p->looks_dear || !fy_nodes_may_skip(p, FY_CONTROL))
        fy_nodes_pump(p, FY_CONTROL);
    bool ready = fy_nodes_ready(p, FY_DATA) || fy_nodes_ready(p, FY_CONTROL);
    unlock(p);
    return ready || near_pending(p);
}

/* Looks for a while. Returns true if something has come or the deadline has passed. */
static bool nodes_look(nodes_port *p, uint64_t deadline_ns)
{
    for (int i = 0; i < SPINS; i++)
        if (app_ready(p))
            return true;
    uint64_t before = fy_clock_now_ns();
    for (int i = 0; i < YIELDS; i++) {
        sched_yield();
        uint64_t after = fy_clock_now_ns();
        if (app_ready(p) || after >= deadline_ns)
            return true;
        if (after - before > SLOW_YIELD_NS)
            break;
        before = after;
    }
    return false;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns after each pause: port shm was woken for something that only the caller can look for. */
static void wait_app(nodes_port *p, uint64_t deadline_ns)
{
    /* relaxed: see fy_nodes_poll_remote */
    if (atomic_load_explicit(&p->came, memory_order_relaxed)) {
        atomic_store_explicit(&p->came, false, memory_order_relaxed);
        p->pause_ns = PAUSE_MIN_NS;
    }
    if (p->pause_ns > PAUSE_MIN_NS ? app_ready(p) : nodes_look(p, deadline_ns)) {
        p->pause_ns = PAUSE_MIN_NS;
        return;
    }
    uint64_t until = earlier(deadline_ns, fy_clock_now_ns() + p->pause_ns);
    p->near->ops->transport.wait(p->near, FY_APP, until);
    p->pause_ns = earlier(p->pause_ns + p->pause_ns / PAUSE_PART, PAUSE_MAX_NS);
}

void fy_nodes_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    nodes_port *p = port_of(port);
    if (thread == FY_APP) {
        wait_app(p, deadline_ns);
        return;
    }
    /* relaxed: a change that is missed now is seen after a quantum */
    bool serves = atomic_load_explicit(&p->serve, memory_order_relaxed) == FY_HELPER;
    /* relaxed: a number; the next wait uses a changed one */
    uint64_t quantum =
        serves ? atomic_load_explicit(&p->quantum_ns, memory_order_relaxed) : IDLE_QUANTUM_NS;
    p->near->ops->transport.wait(p->near, FY_HELPER,
                                 earlier(deadline_ns, fy_clock_now_ns() + quantum));
}
