/* Verifies a refined mesh without trusting what made it.
 *
 * The checker uses only the points and the corners of the triangles of each sub-domain. It finds
 * neighbours, edges and the domain itself (check_domain.c) again, with predicates of this module's
 * own. Threads: no shared state. */
#ifndef MESH_CHECK_H
#define MESH_CHECK_H

#include "decompose.h"
#include "pslg.h"
#include "sub.h"

typedef enum mesh_check_kind {
    MESH_CHECK_ORIENTATION, /* every triangle turns left */
    MESH_CHECK_OVERLAP,     /* no edge has two triangles on one side */
    MESH_CHECK_BOUNDARY,    /* triangles end at input segments and nowhere else */
    MESH_CHECK_CONFORMITY,  /* the same points on both sides of every shared edge
                             */
    MESH_CHECK_DELAUNAY,    /* no far corner inside a circle, except across
                               constrained edges */
    MESH_CHECK_SIZE,        /* no edge longer than asked */
    MESH_CHECK_ANGLE,       /* no angle smaller than asked, except where the input
                               forbids it */
    MESH_CHECK_AREA,        /* the area is exactly the polygon's */
    MESH_CHECK_INPUT,       /* snapping kept the file's land, and moved segments by
                               little */
    MESH_CHECK_EULER,       /* points - edges + triangles are what the polygon demands
                             */
    MESH_CHECK_KINDS
} mesh_check_kind;

typedef struct mesh_check_input {
    const mesh_pslg *pslg;
    const mesh_decomp *decomp; /* only the cuts and their end points are used */
    mesh_sub *const *sub;      /* all decomp->count of them */
    const mesh_sizing *sizing;
    const mesh_quality *quality;
    const mesh_poly *poly; /* what pslg was made from; NULL: that is not compared */
    /* Called with each line of the report, lent until it returns. May be NULL. */
    void (*line)(void *arg, const char *text);
    void *arg;
} mesh_check_input;

typedef struct mesh_check_result {
    int64_t faults[MESH_CHECK_KINDS];
    int64_t triangles, points, edges;
    /* Triangles thinner or larger than asked that nothing can improve, by the
     * reason. */
    int64_t excused_input; /* they fill a corner of the input with a smaller angle */
    int64_t excused_limit; /* an edge near them cannot be halved on the grid
                              again, or they are tiny */
    double angle_min_deg;  /* of all triangles but the excused */
} mesh_check_result;

/* Runs all checks, hands one line per check to in->line, and fills *out.
 * Returns 0 if all passed, 1 if any failed, -1 with log->error out of memory.
 */
int mesh_check(const mesh_check_input *in, mesh_check_result *out, mesh_log *log);

#endif
