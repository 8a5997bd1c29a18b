/* Finds the polygon from its segments alone: faces between segments, by following half-edges, and
 * which of them the mesh must fill. Internal to the checker. */
#ifndef MESH_CHECK_DOMAIN_H
#define MESH_CHECK_DOMAIN_H

#include "pslg.h"

#include <stdbool.h>

typedef struct mesh_domain {
    mesh_wide area2; /* twice the area */
    int64_t euler;   /* points - edges + faces of any triangulation */
    uint8_t *filled; /* filled[2 s], [2 s + 1]: is the domain left, right of
                        segment s? */
} mesh_domain;

/* -1 out of memory. Free with mesh_domain_fini. */
int mesh_domain_init(mesh_domain *d, const mesh_pslg *pslg);
void mesh_domain_fini(mesh_domain *d);

#endif
