#include "starved.h"

#include "failing.h"
#include "port/port.h"
#include "ranks.h"

void settle_both(ferry *f[2])
{
    for (int quiet = 0; quiet < 3;)
        quiet = fy_progress(f[0], true) + fy_progress(f[1], true) == 0 ? quiet + 1 : 0;
}

static ferry *open_one(fy_segment *segment, int rank, const char *scheduler)
{
    const ferry_options options = {.size = sizeof(options), .scheduler = scheduler};
    fy_port *port;
    ferry *f;
    if (fy_shm_join(segment, rank, &port) != 0)
        return NULL;
    return fy_rank_create(port, &options, &f) == 0 ? f : NULL;
}

/* The session whose allocation number `failing` fails. Returns whether it was reached. */
static bool run(const char *scheduler, starved_session *session, long failing)
{
    fy_segment *segment = make_segment(2, 8, 1024);
    failing_set(failing);
    ferry *f[2] = {open_one(segment, 0, scheduler), open_one(segment, 1, scheduler)};
    if (f[0] != NULL && f[1] != NULL)
        session(f);
    bool reached = failing_reached();
    failing_set(-1);
    for (int rank = 0; rank < 2; rank++)
        if (f[rank] != NULL)
            fy_rank_destroy(f[rank]);
    fy_segment_unmap(segment);
    return reached;
}

void starve(const char *scheduler, starved_session *session, long allocations_min)
{
    long failing = 0;
    CHECK(!run(scheduler, session, 1000000));
    while (run(scheduler, session, failing))
        failing++;
    CHECK(failing > allocations_min);
}
