/* Reasons: why a scheduler moved each object, and how long its functions took, while FERRY_PROFILE
 * or FERRY_TRACE count. A message to a scheduler carries the load of the rank that sends it. So the
 * reason of each decision names the loads of both sides at that time. */
#include <inttypes.h>
#include <stdlib.h>

#include "balance/balance.h"
#include "base/alloc.h"
#include "core/profile.h"

enum { REASONS_MAX = 65536 };

uint64_t fy_scheduler_entered(ferry_scheduling *s, fy_occasion occasion)
{
    s->occasion = occasion;
    return s->port->ops->host.now(s->port);
}

void fy_scheduler_left(ferry_scheduling *s, uint64_t entered_ns)
{
    uint64_t passed = s->port->ops->host.now(s->port) - entered_ns;
    if (!s->by_helper) /* a profile is of the application thread */
        fy_profile_count(s->f, FY_PROFILE_SCHEDULER, passed);
}

/* Doubles the room; false at the limit, or without memory. */
static bool reasons_grow(ferry_scheduling *s)
{
    if (s->reason_capacity > REASONS_MAX / 2)
        return false;
    fy_reason *larger = fy_double(s->reasons, &s->reason_capacity, 64, sizeof *larger);
    if (larger == NULL)
        return false;
    s->reasons = larger;
    return true;
}

void fy_reason_keep(ferry_scheduling *s, ferry_object object, int rank)
{
    if (s->reason_count == s->reason_capacity && !reasons_grow(s)) {
        s->reasons_lost++;
        return;
    }
    s->reasons[s->reason_count++] = (fy_reason){.time_ns = s->port->ops->host.now(s->port),
                                                .object = object.word,
                                                .target = rank,
                                                .asker = s->asker,
                                                .occasion = s->occasion,
                                                .load = s->load,
                                                .asker_load = s->asker >= 0 ? s->asker_load : 0};
}

void fy_reasons_write(ferry *f, FILE *out)
{
    static const char *const occasions[] = {"task", "word", "time"};
    const ferry_scheduling *s = fy_scheduling_of(f);
    fprintf(out, "scheduler %s\n%s", s->name, s->told);
    for (uint32_t i = 0; i < s->reason_count; i++) {
        const fy_reason *r = &s->reasons[i];
        fprintf(out, "move %" PRIu64 " %016" PRIx64 " %d %s %d %.17g %.17g\n", r->time_ns,
                r->object, r->target, occasions[r->occasion], r->asker, r->load, r->asker_load);
    }
    if (s->reasons_lost != 0)
        fprintf(out, "stat moves_not_recorded %" PRIu64 "\n", s->reasons_lost);
}
