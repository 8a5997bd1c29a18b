#include "hilbert.h"

#include <stdlib.h>

uint64_t mesh_hilbert_key(mesh_point p)
{
    uint32_t x = (uint32_t)p.x, y = (uint32_t)p.y;
    uint64_t key = 0;
    for (int bit = MESH_COORD_BITS - 1; bit >= 0; bit--) {
        uint32_t rx = (x >> bit) & 1u, ry = (y >> bit) & 1u;
        key = key << 2 | ((3u * rx) ^ ry);
        /* Turn the quadrant so that its curve starts and ends where its neighbours' do. */
        uint32_t mask = (1u << bit) - 1u;
        x &= mask;
        y &= mask;
        if (ry == 0) {
            uint32_t swap = rx != 0 ? mask - x : x;
            x = rx != 0 ? mask - y : y;
            y = swap;
        }
    }
    return key;
}

static int by_key(const void *a, const void *b)
{
    const mesh_ranked *l = a, *r = b;
    if (l->key != r->key) {
        return l->key < r->key ? -1 : 1;
    }
    return (l->index > r->index) - (l->index < r->index);
}

mesh_ranked *mesh_hilbert_order(const mesh_point *point, int32_t count)
{
    mesh_ranked *order = malloc(((size_t)count + 1) * sizeof *order);
    if (order == NULL) {
        return NULL;
    }
    for (int32_t i = 0; i < count; i++) {
        order[i] = (mesh_ranked){mesh_hilbert_key(point[i]), i};
    }
    qsort(order, (size_t)count, sizeof *order, by_key);
    return order;
}
