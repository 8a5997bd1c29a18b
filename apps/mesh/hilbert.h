/* Orders points along a Hilbert curve: points that follow each other are near each other. */
#ifndef MESH_HILBERT_H
#define MESH_HILBERT_H

#include "exact.h"

typedef struct mesh_ranked {
    uint64_t key;
    int32_t index;
} mesh_ranked;

/* The place of p along the curve through the whole grid. */
uint64_t mesh_hilbert_key(mesh_point p);

/* Gives (free with free) the indices of `count` points in the curve's order, ties by index; NULL
 * out of memory. */
mesh_ranked *mesh_hilbert_order(const mesh_point *point, int32_t count);

#endif
