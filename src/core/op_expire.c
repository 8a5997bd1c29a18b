/* Operations whose timeout has passed. They stand in a wheel of timers (wheel.h), and the clock is
 * read for it as seldom as how closely polls follow each other allows. */
#include "core/op.h"

#include "core/rank.h"

/* How far apart looks at the clock may be while polls follow each other closely, in time and in
 * polls. */
enum { LOOK_NS = 4000, LOOK_POLLS_MAX = 128 };

static int end_expired(ferry *f, uint64_t now_ns)
{
    fy_ops *ops = &f->ops_table;
    int count = 0;
    for (fy_timer *timer; (timer = fy_wheel_take(ops->wheel, now_ns)) != NULL; count++) {
        ops->timers--;
        fy_op_give_up(f, (fy_op_record *)(void *)timer, FERRY_ETIMEDOUT, false);
    }
    return count;
}

int fy_ops_expire(ferry *f)
{
    fy_ops *ops = &f->ops_table;
    if (ops->timers == 0) {
        ops->polls_left = INT32_MAX;
        return 0;
    }
    uint64_t now_ns = f->head.ops->host.now(f->head.port);
    uint64_t between_ns = (now_ns - ops->looked_ns) / (ops->polls + 1);
    uint64_t polls = LOOK_NS / (between_ns + 1);
    ops->polls = polls < LOOK_POLLS_MAX ? (uint32_t)polls : LOOK_POLLS_MAX;
    ops->polls_left = (int32_t)ops->polls;
    ops->looked_ns = now_ns;
    return end_expired(f, now_ns);
}

uint64_t fy_ops_deadline(const ferry *f)
{
    const fy_ops *ops = &f->ops_table;
    return ops->timers == 0 ? UINT64_MAX : fy_wheel_next_ns(ops->wheel);
}
