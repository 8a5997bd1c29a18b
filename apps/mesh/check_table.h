/* The checker's own mesh: all sub-domains' triangles over points merged by
 * place, and a table of directed edges. Internal to the checker. */
#ifndef MESH_CHECK_TABLE_H
#define MESH_CHECK_TABLE_H

#include "check.h"

enum {
    MESH_MARK_INPUT = 1, /* part of an input segment */
    MESH_MARK_CUT = 2    /* part of a shared edge */
};

/* A triangle's side: from -> to with the triangle on its left. */
typedef struct mesh_side {
    int32_t from, to;
    int32_t tri;
    uint32_t mark;
} mesh_side;

typedef struct mesh_table {
    int64_t tri_count;
    int32_t point_count;
    mesh_point *point;
    int32_t *corner; /* 3 per triangle */
    int32_t *owner;  /* the sub-domain of each triangle */
    int32_t *point_slot;
    uint64_t point_mask;
    mesh_side *side;
    uint64_t side_mask;
    int64_t doubled; /* sides met twice */
} mesh_table;

/* -1 out of memory, or more triangles than 2^31 / 3. */
int mesh_table_init(mesh_table *t, mesh_sub *const *sub, int32_t count);
void mesh_table_fini(mesh_table *t);

/* The point at p, or -1. */
int32_t mesh_table_point(const mesh_table *t, mesh_point p);

/* The side from -> to, or NULL. */
mesh_side *mesh_table_side(const mesh_table *t, int32_t from, int32_t to);

#endif
