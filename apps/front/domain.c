#include "domain.h"

#include <math.h>

int32_t front_domain_count(const front_domain *d)
{
    return d->parts[0] * d->parts[1] * d->parts[2];
}

/* The first cube of the part along an axis. */
static int32_t cut(const front_domain *d, int axis, int32_t part)
{
    return (int32_t)((int64_t)part * d->cubes[axis] / d->parts[axis]);
}

static void place(const front_domain *d, int32_t index, int32_t out[3])
{
    out[2] = index % d->parts[2];
    out[1] = index / d->parts[2] % d->parts[1];
    out[0] = index / d->parts[2] / d->parts[1];
}

static int32_t number(const front_domain *d, const int32_t at[3])
{
    return (at[0] * d->parts[1] + at[1]) * d->parts[2] + at[2];
}

front_box front_domain_box(const front_domain *d, int32_t index)
{
    front_box box;
    int32_t at[3];
    place(d, index, at);
    for (int axis = 0; axis < 3; axis++) {
        box.low[axis] = cut(d, axis, at[axis]);
        box.high[axis] = cut(d, axis, at[axis] + 1);
    }
    return box;
}

int32_t front_domain_neighbour(const front_domain *d, int32_t index, int axis, int up)
{
    int32_t at[3];
    place(d, index, at);
    at[axis] += up ? 1 : -1;
    return at[axis] < 0 || at[axis] >= d->parts[axis] ? -1 : number(d, at);
}

int32_t front_domain_owner(const front_domain *d, const double point[3])
{
    int32_t at[3];
    for (int axis = 0; axis < 3; axis++) {
        int32_t part = (int32_t)(point[axis] * d->parts[axis] / d->cubes[axis]);
        part = part < d->parts[axis] ? part : d->parts[axis] - 1;
        while (part > 0 && point[axis] <= cut(d, axis, part))
            part--;
        while (part + 1 < d->parts[axis] && point[axis] > cut(d, axis, part + 1))
            part++;
        at[axis] = part;
    }
    return number(d, at);
}
