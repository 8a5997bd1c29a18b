/* Union-find: sets of numbers. `parent` leads from each number to the root of its set. */
#ifndef MESH_UNION_FIND_H
#define MESH_UNION_FIND_H

#include <stdint.h>

static inline int32_t find_root(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

#endif
