#include "parts.h"

#include <math.h>
#include <stdlib.h>

static int push_corner(mesh_fan *fan, mesh_corner c)
{
    if (fan->count == fan->room) {
        int32_t more = 2 * fan->room + 16;
        mesh_corner *bigger = realloc(fan->at, (size_t)more * sizeof *bigger);
        if (bigger == NULL) {
            return -1;
        }
        fan->at = bigger;
        fan->room = more;
    }
    fan->at[fan->count++] = c;
    return 0;
}

static int32_t same_corner(const mesh_sub *s, int32_t t, int32_t v)
{
    const mesh_tri *tri = &s->tri[t];
    return tri->v[0] == v ? 0 : tri->v[1] == v ? 1 : 2;
}

int mesh_fan_find(const mesh_sub *s, mesh_corner c, mesh_fan *fan)
{
    int32_t v = s->tri[c.tri].v[c.edge];
    mesh_corner first = c;
    fan->count = 0;
    fan->closed = false;
    /* Clockwise until a piece, or all around. */
    for (;;) {
        int32_t n = s->tri[first.tri].n[mesh_prev3(first.edge)];
        if (n < 0) {
            break;
        }
        if (n == c.tri) {
            fan->closed = true;
            first = c;
            break;
        }
        first = (mesh_corner){n, same_corner(s, n, v)};
    }
    for (mesh_corner at = first;;) {
        if (push_corner(fan, at) != 0) {
            return -1;
        }
        int32_t n = s->tri[at.tri].n[mesh_next3(at.edge)];
        if (n < 0 || n == first.tri) {
            return 0;
        }
        at = (mesh_corner){n, same_corner(s, n, v)};
    }
}

double mesh_corner_angle(const mesh_sub *s, mesh_corner c)
{
    const mesh_tri *tri = &s->tri[c.tri];
    mesh_point o = s->point[tri->v[c.edge]], a = s->point[tri->v[mesh_next3(c.edge)]];
    mesh_point b = s->point[tri->v[mesh_prev3(c.edge)]];
    return atan2((double)mesh_orient(o, a, b), (double)mesh_dot(a, b, o));
}
