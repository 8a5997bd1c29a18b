/* Check: whether a mesh fills its sub-domain, and whether two of them fit together. */
#ifndef FRONT_CHECK_H
#define FRONT_CHECK_H

#include "domain.h"
#include "mesh.h"
#include "surface.h"

enum { FRONT_TEXT_BYTES = 256 };

/* The sum of the volumes may differ from the true volume by this part of it: rounding. */
#define FRONT_VOLUME_TOLERANCE 1e-12

/* Whether every tetrahedron has a positive volume, they fill the box without gap and overlap, and
 * their boundary is the surface: the same points, bit by bit, and the same triangles. Sets
 * `*volume` to the sum of volumes. If false, `error` says what is wrong. */
bool front_check_mesh(const front_mesh *mesh, const front_surface *surface, const front_box *box,
                      double *volume, char error[FRONT_TEXT_BYTES]);

/* Whether both lists of triangles, as of front_mesh_interface, are the same, bit by bit. */
bool front_check_interface(const front_triangle *ours, int32_t our_count,
                           const front_triangle *theirs, int32_t their_count,
                           char error[FRONT_TEXT_BYTES]);

#endif
