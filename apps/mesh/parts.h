/* Parts of the coarse mesh while they are being made and mended. Internal to the decomposition. */
#ifndef MESH_PARTS_H
#define MESH_PARTS_H

#include "kernel.h"
#include "sizing.h"

/* The triangles around a point from one piece to the next, counter-clockwise; all around if there
 * is none (`closed`). */
typedef struct mesh_fan {
    mesh_corner *at;
    int32_t count, room;
    bool closed;
} mesh_fan;

/* No part keeps a smaller corner than this beside a cut, if that can be avoided. */
#define MESH_CORNER_MIN (3.14159265358979323846 / 4.0)

/* Triangles that must stay together form a group; parts are made of groups. */
typedef struct mesh_parts {
    mesh_sub *coarse;
    int32_t count; /* of parts */
    int32_t group_count;
    int32_t *group;       /* of each triangle */
    int32_t *part;        /* of each group */
    double *weight;       /* of each group */
    double *x, *y;        /* centroid of each group */
    int32_t *part_groups; /* number of groups in each part */
    uint32_t dice;        /* breaks cycles of repairs that undo each other */
} mesh_parts;

/* Groups the coarse mesh's triangles; `density` weighs area. With `keep_narrow` a triangle with a
 * narrow corner is in one group with those beside it. -1 out of memory. */
int mesh_parts_init(mesh_parts *p, mesh_sub *coarse, int32_t count, const mesh_sizing *density,
                    bool keep_narrow);
void mesh_parts_fini(mesh_parts *p);

/* Fills p->part. -1 out of memory. */
int mesh_partition_bisect(mesh_parts *p);
/* Returns 1 when METIS is absent or did not manage. */
int mesh_partition_metis(mesh_parts *p);

/* Splits the groups of parts `from` in two by bisection, giving the second half to `to`. */
int mesh_partition_split(mesh_parts *p, int32_t from, int32_t to);

/* Makes every part non-empty and connected, without small corners. Returns the number of parts for
 * which that failed, or -1 out of memory. */
int mesh_parts_mend(mesh_parts *p);

/* The smallest corner, in radians, that any part has in this fan; infinite if it is all one part's.
 */
double mesh_parts_smallest_corner(const mesh_parts *p, const mesh_fan *fan);

/* Straightens the cuts. -1 out of memory. */
int mesh_parts_smooth(mesh_parts *p);

/* The triangle across slot i, also across a piece; -1 at the border. */
static inline int32_t mesh_across(const mesh_sub *s, int32_t t, int32_t i)
{
    int32_t n = s->tri[t].n[i];
    if (n >= 0) {
        return n;
    }
    const mesh_piece *piece = &s->piece[~n];
    return piece->tri[piece->tri[0] == t ? 1 : 0];
}

static inline int32_t mesh_part_of(const mesh_parts *p, int32_t t)
{
    return p->part[p->group[t]];
}

/* The fan that holds corner c. -1 out of memory. */
int mesh_fan_find(const mesh_sub *s, mesh_corner c, mesh_fan *fan);

double mesh_corner_angle(const mesh_sub *s, mesh_corner c);

#endif
