/* Mesh: the tetrahedra of one sub-domain, as they came from the mesher. */
#ifndef FRONT_MESH_H
#define FRONT_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first points are those of the surface, in its order. Three corners of a tetrahedron turn left
 * seen from outside, if the fourth is inside. */
typedef struct front_mesh {
    double (*points)[3];
    int32_t (*tets)[4];
    int32_t point_count, tet_count;
} front_mesh;

/* Makes room for these counts, which it sets. False: no memory, and the mesh is empty. */
bool front_mesh_init(front_mesh *mesh, int32_t points, int32_t tets);

void front_mesh_fini(front_mesh *mesh);

/* A face of a tetrahedron, by points; seen from outside the tetrahedron its corners turn left. */
typedef struct front_face {
    int32_t corner[3];
} front_face;

/* The faces that one tetrahedron alone has: `*out`, which the caller frees. Returns their number;
 * -1 without memory; -2 if more than two tetrahedra share a face, or two lie on one side of it. */
int32_t front_mesh_boundary(const front_mesh *mesh, front_face **out);

/* A triangle by the coordinates of its corners, the least corner first, in ascending order. */
typedef struct front_triangle {
    double corner[3][3];
} front_triangle;

/* The triangles of the boundary that lie in the plane where the coordinate `axis` is `at`, in
 * ascending order: `*out`, which the caller frees. Returns their number, or as
 * front_mesh_boundary. */
int32_t front_mesh_interface(const front_mesh *mesh, int axis, double at, front_triangle **out);

#endif
