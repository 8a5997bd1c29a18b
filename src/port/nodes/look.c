/* Looks: whether messages have come on the two lanes.
 *
 * A look calls the network, which makes progress on all messages. If it makes a system call, as
 * over TCP, a look that finds nothing costs as much as hundreds of instructions. Then one look
 * tests the receives of both lanes, and a round looks once. */
#include "port/nodes/port_state.h"

#include "base/clock.h"

/* The oldest receive of a lane; NULL: there is none, or its message has come. */
static slot *look_awaited(const nodes_port *p, fy_lane lane)
{
    const posted *set = &p->posted[lane];
    slot *s = set->spent < set->count ? set->slots[set->first] : NULL;
    return s == NULL || s->done ? NULL : s;
}

static void note_failure(slot *s)
{
    s->done = true;
    s->source = -1;
}

/* One look at both lanes. If it finds a message on the other lane, the next look is left out: the
 * caller looks at that lane first. */
static void test_both(nodes_port *p, slot *s, slot *other)
{
    slot *const slots[] = {s, other};
    fy_nodes_request *const requests[] = {&s->request, &other->request};
    int which, source = -1;
    size_t size_bytes = 0;
    int error = p->binding->test_any(requests, 2, &which, &source, &size_bytes);
    if (which >= 0) {
        slots[which]->done = true;
        slots[which]->source = error != 0 ? -1 : source;
        slots[which]->size_bytes = size_bytes;
        p->leaves_out = which == 1;
    } else if (error != 0) {
        note_failure(s);
    }
}

bool fy_nodes_has_come(nodes_port *p, fy_lane lane, slot *s)
{
    slot *other = p->looks_dear ? look_awaited(p, lane == FY_DATA ? FY_CONTROL : FY_DATA) : NULL;
    if (s->done)
        return true;
    if (p->leaves_out)
        p->leaves_out = false;
    else if (other != NULL)
        test_both(p, s, other);
    else if (p->binding->test(&s->request, &s->done, &s->source, &s->size_bytes) != 0)
        note_failure(s);
    return s->done;
}

void fy_nodes_price_look(nodes_port *p)
{
    enum { LOOKS = 8, DEAR_NS = 250 };
    uint64_t least_ns = UINT64_MAX;
    slot *s = p->posted[FY_DATA].slots[p->posted[FY_DATA].first];
    for (int i = 0; i < LOOKS && p->binding->test_any != NULL; i++) {
        uint64_t before = fy_clock_now_ns();
        if (fy_nodes_has_come(p, FY_DATA, s))
            break;
        uint64_t took_ns = fy_clock_now_ns() - before;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    p->looks_dear = p->binding->test_any != NULL &&
                    (p->binding->looks_dear || (least_ns != UINT64_MAX && least_ns > DEAR_NS));
}

/* A round looks at the data lane, at the control lane, and at the data lane again. If looks are
 * dear, the first of these has tested both lanes, and the other two are left out. */
static bool is_seen(const nodes_port *p, fy_lane lane)
{
    enum { SKIPPED_MAX = 7 };
    if (lane == FY_DATA)
        return p->looks_dear && p->pumped == FY_LANES;
    return p->pumped == FY_DATA && (p->looks_dear || p->skipped < SKIPPED_MAX);
}

bool fy_nodes_may_skip(nodes_port *p, fy_lane lane)
{
    bool skips = look_awaited(p, lane) != NULL && is_seen(p, lane);
    if (skips)
        p->pumped = lane == FY_DATA ? FY_CONTROL : FY_LANES;
    if (lane == FY_CONTROL)
        p->skipped = skips ? p->skipped + 1 : 0;
    return skips;
}
