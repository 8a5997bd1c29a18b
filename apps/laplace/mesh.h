/* Mesh: triangles as the mesh application writes them, joined to one mesh, with an owner for each
 * node.
 *
 * Every rank reads the whole file; a rank has the triangles of some sub-domains. An error ends the
 * program. [any thread] */
#ifndef LAPLACE_MESH_H
#define LAPLACE_MESH_H

#include <stddef.h>
#include <stdint.h>

typedef struct laplace_mesh {
    int64_t points, triangles, nodes, subs;
    double *place;     /* x, y, 0 per point of the file */
    int32_t *corner;   /* three per triangle: points, then nodes */
    int32_t *sub;      /* per triangle */
    int32_t *point_of; /* per node: a point at its place */
    int32_t *owner;    /* per node: rank */
    int32_t *index;    /* per node: its number among those of its owner */
    char *edge;        /* per node: on the edge of the domain */
} laplace_mesh;

/* Reads a file's points, corners and sub-domains (blocks in base64). */
void laplace_mesh_init(laplace_mesh *m, const char *path, int ranks);
void laplace_mesh_fini(laplace_mesh *m);

int laplace_rank_of(const laplace_mesh *m, int64_t triangle, int ranks);

/* Cleared memory; never NULL. free() it. */
void *laplace_memory(int64_t count, size_t bytes);

#endif
