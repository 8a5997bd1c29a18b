/* Helper: the thread that answers other ranks' schedulers while a task runs.
 *
 * It sleeps in the port until a control frame comes for it. Then it does the work of a poll: under
 * the lock it polls the control lane, and without the lock it ships the objects that the scheduler
 * gave away. It misses no work while it sleeps. Frames that come while `serve` names the helper
 * wake it. The application thread polls the frames that came earlier, right after `serve`. The
 * helper leaves arrivals and departed objects to the application thread. It marks them under the
 * lock and wakes that thread, because its task may have ended meanwhile.
 *
 * The helper may not touch the backlog, in which frames of the application thread wait for room. So
 * words of schedulers do not go there: if there is no room for one, the helper sends it, and those
 * after it. */
#include "balance/balance.h"

#include "base/env.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/why.h"

/* Also while the helper waits for room. [helper thread, lock held] */
static void poll(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    s->by_helper = true;
    (void)fy_control_poll(f);
    fy_balance_wake(s, 0);
    s->by_helper = false;
}

static void helper_main(void *arg)
{
    ferry_scheduling *s = arg;
    const fy_port_ops *ops = s->port->ops;
    fy_control_lock(s->f);
    while (!s->stop) {
        if (s->serving) {
            poll(s->f);
            fy_why_helper(s->f);
        }
        fy_control_unlock(s->f);
        fy_balance_flush(s, FY_HELPER);
        /* The flush may have waited for room, and that wait consumes the wakes that come during it.
         * So the two things that they announce are read after the flush: the end, and the time of
         * the next look. */
        fy_control_lock(s->f);
        if (s->stop)
            break;
        uint64_t deadline_ns = s->serving && s->wake_ns != 0 ? s->wake_ns : UINT64_MAX;
        s->helper_wakes_ns = deadline_ns;
        fy_control_unlock(s->f);
        /* relaxed: a count */
        atomic_store_explicit(&s->helper_ns, ops->host.cpu(s->port), memory_order_relaxed);
        ops->transport.wait(s->port, FY_HELPER, deadline_ns);
        fy_control_lock(s->f);
    }
    fy_control_unlock(s->f);
}

int fy_helper_start(ferry_scheduling *s)
{
    uint64_t wanted = 1;
    int error = fy_env_number("FERRY_HELPER", &wanted);
    if (error != 0)
        return fy_fail(s->f, error, "%s", ferry_error_message(NULL));
    if (s->started || wanted == 0 || s->ranks == 1)
        return 0;
    fy_control_share(s->f, true);
    error = s->port->ops->host.spawn == NULL ? FERRY_ENOTSUP
                                             : s->port->ops->host.spawn(s->port, helper_main, s);
    if (error == 0) {
        s->started = true;
        return 0;
    }
    fy_control_share(s->f, false);
    return error == FERRY_ENOTSUP
               ? 0
               : fy_fail(s->f, error, "balance: the helper thread cannot be started");
}

void fy_helper_stop(ferry_scheduling *s)
{
    if (!s->started)
        return;
    fy_control_lock(s->f);
    s->stop = true;
    /* The helper may wait for room at a rank whose helper waits too, since it takes no frames in.
     */
    fy_control_serve(s->f, poll);
    fy_control_unlock(s->f);
    s->port->ops->transport.wake(s->port, FY_HELPER);
    s->port->ops->host.join(s->port);
    s->stop = s->started = false;
    fy_control_serve(s->f, NULL);
    fy_control_share(s->f, false);
    fy_helper_count(s);
}

void fy_helper_count(ferry_scheduling *s)
{
    /* relaxed: as where it is stored */
    fy_stats(s->f)->helper_ns = atomic_load_explicit(&s->helper_ns, memory_order_relaxed);
}

void fy_helper_serve(ferry_scheduling *s)
{
    const fy_port_ops *ops = s->port->ops;
    if (!s->started)
        return;
    fy_control_lock(s->f);
    s->serving = true;
    fy_control_serve(s->f, poll);
    bool timer = fy_helper_oversleeps(s);
    fy_control_unlock(s->f);
    fy_helper_count(s);
    s->objects->helped = true;
    ops->transport.serve(s->port, FY_HELPER);
    if (timer)
        ops->transport.wake(s->port, FY_HELPER);
    if (!ops->transport.pending(s->port, FY_CONTROL))
        return;
    fy_control_lock(s->f);
    (void)fy_control_poll(s->f);
    fy_control_unlock(s->f);
    fy_balance_flush(s, FY_APP);
}

void fy_helper_rest(ferry_scheduling *s)
{
    if (!s->started)
        return;
    fy_control_lock(s->f);
    s->serving = false;
    fy_control_serve(s->f, NULL);
    fy_control_unlock(s->f);
    s->objects->helped = false;
    s->port->ops->transport.serve(s->port, FY_APP);
}
