/* Waiting: rounds of progress until there is work, and sleep in the port between them. */
#include "base/pause.h"
#include "core/outgoing.h"
#include "core/rank.h"

/* Rounds without work before a waiting call sleeps in the port and starts to count its time as
 * idle. The port spins and yields by its own rule. These few rounds keep short waits free of clock
 * reads. If ranks share processors there is one round, so that the caller acts on the result of the
 * last round before it sleeps: another rank may need its processor. */
enum { QUIET_ROUNDS = 50 };

uint64_t fy_patience_pause(ferry *f, fy_patience *patience)
{
    patience->pause_ns = patience->pause_ns == 0
                             ? FY_PAUSE_MIN_NS
                             : (uint32_t)fy_pause_longer(patience->pause_ns, FY_PAUSE_MAX_NS);
    return f->head.ops->host.now(f->head.port) + patience->pause_ns;
}

/* The time at which a round must run although no frame comes. */
static __attribute__((cold, noinline)) uint64_t earliest_deadline(ferry *f, uint64_t deadline_ns,
                                                                  fy_patience *patience)
{
    for (int i = 0; i < FY_LAYERS; i++) {
        uint64_t at = fy_layer_at(i)->deadline == NULL ? UINT64_MAX : fy_layer_at(i)->deadline(f);
        deadline_ns = at < deadline_ns ? at : deadline_ns;
    }
    uint64_t timeout_ns = fy_ops_deadline(f);
    deadline_ns = timeout_ns < deadline_ns ? timeout_ns : deadline_ns;
    bool scarce = f->leaves != NULL && f->leaves->scarce;
    if (scarce)
        f->leaves->scarce = false; /* until the next attempt */
    /* Nothing announces room at a peer, or memory for a frame that was left or not sent. */
    if (scarce || f->head.slow_lanes != 0 || f->orphans.head != NULL || f->tags.count != 0 ||
        f->peers.news || f->head.ops->transport.pending(f->head.port, FY_DATA) ||
        /* relaxed: what is missed now is seen after the next round, which leaves the frame again */
        atomic_exchange_explicit(&f->control_left, false, memory_order_relaxed)) {
        uint64_t at = fy_patience_pause(f, patience);
        deadline_ns = at < deadline_ns ? at : deadline_ns;
    }
    return deadline_ns;
}

static uint32_t quiet_rounds(const ferry *f)
{
    return f->info.crowded ? 1 : QUIET_ROUNDS;
}

bool fy_patience_ends(const ferry *f, const fy_patience *patience)
{
    return patience->rounds >= quiet_rounds(f);
}

int fy_progress_wait(ferry *f, uint64_t deadline_ns, fy_patience *patience)
{
    int count = fy_progress(f, true);
    if (count > 0) {
        patience->rounds = 0;
        patience->pause_ns = 0;
        return count;
    }
    if (patience->rounds++ < quiet_rounds(f))
        return 0;
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->busy != NULL && fy_layer_at(i)->busy(f))
            return 0;
    fy_collective_board_repair(f);
    fy_account_wait(f, earliest_deadline(f, deadline_ns, patience), patience->lookout);
    return 0;
}

int ferry_wait(ferry *f, uint64_t timeout_ns)
{
    int error = fy_check_outside(f, "wait");
    if (error != 0)
        return error;
    uint64_t before = f->head.done;
    uint64_t deadline = FERRY_FOREVER;
    if (timeout_ns != FERRY_FOREVER) {
        uint64_t now = f->head.ops->host.now(f->head.port);
        deadline = timeout_ns > FERRY_FOREVER - now ? FERRY_FOREVER : now + timeout_ns;
    }
    fy_doing doing = fy_account_enter(f, FY_DOING_IDLE);
    fy_patience patience = {0};
    do
        fy_progress_wait(f, deadline, &patience);
    while (f->head.done == before &&
           (deadline == FERRY_FOREVER || f->head.ops->host.now(f->head.port) < deadline));
    fy_account_leave(f, doing);
    return fy_poll_result(f, before);
}
