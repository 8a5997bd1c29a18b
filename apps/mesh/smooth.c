/* Straightens cuts. Where exactly two cuts meet away from the input, the point between them moves
 * towards the line through its neighbours. This is repeated as long as the triangles around the
 * point stay fair and no part gets a small corner. The triangulation is made Delaunay again when
 * sub-domains are cut out. */
#include "parts.h"

#include <stdlib.h>

#define SMOOTH_ROUNDS 6
#define FAIR_ANGLE 0.35 /* radians */

/* The two far ends of the cuts at the middle of a closed fan; false unless there are exactly two.
 */
static bool cut_ends(const mesh_parts *p, const mesh_fan *fan, int32_t end[2])
{
    int32_t count = 0;
    for (int32_t i = 0; i < fan->count; i++) {
        mesh_corner c = fan->at[i];
        int32_t n = p->coarse->tri[c.tri].n[mesh_prev3(c.edge)];
        if (mesh_part_of(p, n) != mesh_part_of(p, c.tri)) {
            if (count < 2) {
                end[count] = p->coarse->tri[c.tri].v[mesh_next3(c.edge)];
            }
            count++;
        }
    }
    return count == 2;
}

static bool triangle_is_fair(const mesh_sub *s, int32_t t)
{
    const int32_t *v = s->tri[t].v;
    if (mesh_orient(s->point[v[0]], s->point[v[1]], s->point[v[2]]) <= 0) {
        return false;
    }
    for (int32_t i = 0; i < 3; i++) {
        if (mesh_corner_angle(s, (mesh_corner){t, i}) < FAIR_ANGLE) {
            return false;
        }
    }
    return true;
}

/* True when the triangles of `fan` are fair and none of the corners of parts in and around it is
 * small. -1 out of memory. */
static int fan_is_fair(const mesh_parts *p, const mesh_fan *fan, mesh_fan *scratch)
{
    for (int32_t i = 0; i < fan->count; i++) {
        if (!triangle_is_fair(p->coarse, fan->at[i].tri)) {
            return 0;
        }
    }
    for (int32_t i = 0; i < fan->count; i++) {
        for (int32_t k = 0; k < 3; k++) {
            if (mesh_fan_find(p->coarse, (mesh_corner){fan->at[i].tri, k}, scratch) != 0) {
                return -1;
            }
            if (mesh_parts_smallest_corner(p, scratch) < MESH_CORNER_MIN) {
                return 0;
            }
        }
    }
    return 1;
}

static int32_t round_between(int32_t a, int32_t m, int32_t b, int32_t grain)
{
    int64_t sum = (int64_t)a + 2LL * m + b;
    return (int32_t)((sum + 2LL * grain) / (4LL * grain) * grain);
}

static int smooth_point(mesh_parts *p, mesh_corner c, mesh_fan *fan, mesh_fan *scratch)
{
    mesh_sub *s = p->coarse;
    int32_t end[2], v = s->tri[c.tri].v[c.edge];
    if (mesh_fan_find(s, c, fan) != 0) {
        return -1;
    }
    if (!fan->closed || !cut_ends(p, fan, end)) {
        return 0;
    }
    mesh_point old = s->point[v], a = s->point[end[0]], b = s->point[end[1]];
    int64_t near2 =
        mesh_length2(a, old) < mesh_length2(b, old) ? mesh_length2(a, old) : mesh_length2(b, old);
    int32_t grain = MESH_GRAIN;
    while (grain > 1 && (int64_t)grain * grain * 1024 > near2) {
        grain /= 2;
    }
    s->point[v] =
        (mesh_point){round_between(a.x, old.x, b.x, grain), round_between(a.y, old.y, b.y, grain)};
    int fair = fan_is_fair(p, fan, scratch);
    if (fair <= 0) {
        s->point[v] = old;
    }
    return fair < 0 ? -1 : 0;
}

int mesh_parts_smooth(mesh_parts *p)
{
    const mesh_sub *s = p->coarse;
    mesh_fan fan = {0}, scratch = {0};
    int32_t *round_of = calloc((size_t)s->head.point_count, sizeof *round_of);
    int rc = round_of == NULL ? -1 : 0;
    for (int32_t round = 1; round <= SMOOTH_ROUNDS && rc == 0; round++) {
        for (int32_t t = 0; t < s->head.tri_count && rc == 0; t++) {
            for (int32_t i = 0; i < 3 && rc == 0; i++) {
                int32_t right = s->tri[t].n[mesh_prev3(i)], v = s->tri[t].v[i];
                if (right >= 0 && round_of[v] < round &&
                    mesh_part_of(p, right) != mesh_part_of(p, t)) {
                    round_of[v] = round;
                    rc = smooth_point(p, (mesh_corner){t, i}, &fan, &scratch);
                }
            }
        }
    }
    free(fan.at);
    free(scratch.at);
    free(round_of);
    return rc;
}
