/* The plainest mesh: a box is convex, so its surface and one point in its middle will do. */
#ifndef FRONT_FAN_H
#define FRONT_FAN_H

#include "mesh.h"

#include <string.h>

static inline bool fan_make(front_mesh *out, const double (*points)[3], int32_t point_count,
                            const int32_t (*triangles)[3], int32_t triangle_count)
{
    double low[3], high[3];
    if (!front_mesh_init(out, point_count + 1, triangle_count))
        return false;
    memcpy(low, points[0], sizeof low);
    memcpy(high, points[0], sizeof high);
    for (int32_t i = 0; i < point_count; i++)
        for (int d = 0; d < 3; d++) {
            out->points[i][d] = points[i][d];
            low[d] = points[i][d] < low[d] ? points[i][d] : low[d];
            high[d] = points[i][d] > high[d] ? points[i][d] : high[d];
        }
    for (int d = 0; d < 3; d++)
        out->points[point_count][d] = (low[d] + high[d]) / 2;
    for (int32_t i = 0; i < triangle_count; i++) {
        /* The surface turns left seen from outside, where the fourth corner is not. */
        memcpy(out->tets[i], triangles[i], 3 * sizeof(int32_t));
        out->tets[i][3] = point_count;
    }
    return true;
}

#endif
