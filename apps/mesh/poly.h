/* Reads Triangle's .poly format: vertices, segments and hole points of a planar straight-line
 * graph.
 *
 * Accepted: 0- or 1-based numbering, attributes, boundary markers, '#' comments, blank lines,
 * regions (ignored), and vertices in a .node file beside the .poly file when it declares 0
 * vertices. Invariant of a mesh_poly that was read: every coordinate is finite, every segment names
 * existing vertices (0-based here). Geometry is not judged here but by mesh_pslg_create. Threads:
 * no shared state. */
#ifndef MESH_POLY_H
#define MESH_POLY_H

#include "log.h"

#include <stddef.h>
#include <stdint.h>

typedef struct mesh_poly_vertex {
    double x, y;
    int32_t line;
} mesh_poly_vertex;

typedef struct mesh_poly_segment {
    int32_t a, b;
    int32_t line;
} mesh_poly_segment;

typedef struct mesh_poly {
    char *name; /* for messages: the file */
    int32_t vertex_count, segment_count, hole_count;
    int32_t index_base; /* 0 or 1: how the file numbers its vertices */
    mesh_poly_vertex *vertex;
    mesh_poly_segment *segment;
    mesh_poly_vertex *hole;
} mesh_poly;

/* Reads `path`. Returns 0 and gives *out (free with mesh_poly_fini), or -1 with log->error naming
 * file, line and value; *out is then empty. */
int mesh_poly_read(const char *path, mesh_poly *out, mesh_log *log);

/* The same from `size` bytes of borrowed text; `name` stands for the file in messages. A text that
 * declares 0 vertices is an error here. */
int mesh_poly_parse(const char *text, size_t size, const char *name, mesh_poly *out, mesh_log *log);

void mesh_poly_fini(mesh_poly *poly);

#endif
