/* Layout: which cells are objects, and where they begin. The same on every rank.
 *
 * The domain has 8^level *boxes*, in Z order. A *chunk* is a run of boxes; each box with its bodies
 * is a tree. The cells above the boxes, from level 1 on, are *parents*. An *element* is a chunk or
 * a parent: first come the chunks, then the parents, level by level. */
#ifndef FMM_LAYOUT_H
#define FMM_LAYOUT_H

#include "fmm/tree.h"

typedef struct layout {
    int level, ranks;
    uint32_t boxes, chunks, elements;
    uint32_t *first;    /* box of each chunk; then `boxes` */
    uint32_t *chunk_of; /* of each box */
    int32_t *rank;      /* of each chunk */
} layout;

/* Chunks of `size` boxes (0: each rank's chunks halve what is left of its boxes). Every rank begins
 * with as many boxes as any other. False: no memory. */
bool layout_init(layout *l, int level, int ranks, uint32_t size);
void layout_fini(layout *l);

/* Gives each rank a run of chunks, so that the largest sum of `weights` of a rank is the least that
 * runs allow. */
void layout_split(layout *l, const double *weights);

/* The rank where an element begins. A parent begins where the first box below it does. */
int layout_rank(const layout *l, uint32_t element);

/* The chunk where an element begins, or itself. */
uint32_t layout_chunk(const layout *l, uint32_t element);

/* The cell of a box, or of a parent. */
cell layout_box(const layout *l, uint32_t box);
cell layout_parent(const layout *l, uint32_t element);

/* Inverse of these. `c` is in the domain. */
uint32_t layout_box_of(const cell *c);
uint32_t layout_parent_of(const layout *l, const cell *c);

/* The box that contains a place in the domain. */
uint32_t layout_box_at(const layout *l, const double at[3]);

/* The other elements that touch `element` and are of its kind and level, in ascending order. Gives
 * `*out`, freed with free. NULL: no memory. */
uint32_t *layout_neighbours(const layout *l, uint32_t element, uint32_t *count);

static inline bool layout_is_chunk(const layout *l, uint32_t element)
{
    return element < l->chunks;
}

#endif
