/* The constrained Delaunay triangulation of a clean planar straight-line graph, without what lies
 * outside its outermost segments or in its holes. */
#ifndef MESH_CDT_H
#define MESH_CDT_H

#include "pslg.h"
#include "sub.h"

/* Triangulates the borrowed `pslg` as one sub-domain without neighbours; its edge i's `segment` is
 * an index into pslg->segment. Gives it (free with mesh_sub_destroy), or NULL with log->error,
 * among others if nothing is enclosed or the holes swallow everything. */
mesh_sub *mesh_cdt_create(const mesh_pslg *pslg, mesh_log *log);

#endif
