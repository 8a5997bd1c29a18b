/* Barrier by dissemination: in round r a rank tells the one 2^r above it and hears from the one 2^r
 * below; after log2(ranks) rounds each has heard, at some remove, from all. */
#include "core/collective.h"
#include "core/rank.h"

int fy_collective_disseminate(ferry *f, int32_t step)
{
    int error = 0;
    for (int distance = 1; distance < f->ranks && error == 0; distance *= 2, step++) {
        int to = (int)(((int64_t)f->rank + distance) % f->ranks);
        int from = (int)(((int64_t)f->rank + f->ranks - distance) % f->ranks);
        fy_collective_want(f, from, step, NULL, 0);
        error = fy_collective_send(f, to, step, NULL, 0);
        if (error == 0)
            error = fy_collective_await(f, 0);
    }
    return error;
}

int fy_barrier(ferry *f, fy_doing doing)
{
    if (f->ranks == 1)
        return 0;
    fy_doing before = fy_account_enter(f, doing);
    const fy_collective_call call = {.what = fy_collective_what(FY_BARRIER, 0, 0, 0)};
    fy_collective_begin(f, &call);
    int error = fy_collective_end(f, fy_collective_disseminate(f, 0));
    fy_account_leave(f, before);
    return error;
}

int ferry_barrier(ferry *f)
{
    int error = fy_check_outside(f, "barrier");
    return error != 0 ? error : fy_barrier(f, FY_DOING_BARRIER);
}
