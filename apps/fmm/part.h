/* Part: the data of an element. A chunk's part has its bodies, a parent's part only a cut tree. */
#ifndef FMM_PART_H
#define FMM_PART_H

#include <ferry/collection.h>

#include "fmm/layout.h"

/* Memory that grows. */
typedef struct bytes {
    unsigned char *at;
    size_t size, capacity;
} bytes;

typedef struct part {
    uint32_t element, tree_count;
    int64_t step;
    tree *trees; /* of each box of the chunk; of a parent one */
    body *bodies;
    uint32_t body_count, body_capacity;
    bytes sources; /* views of the neighbours, kept until the interactions are computed */
    double load;   /* operations of these; 0: there are none to compute */
} part;

/* Appends `size_bytes`, a multiple of 8, and returns where they are. `data` NULL: they are not
 * written. NULL: no memory. */
void *bytes_append(bytes *b, const void *data, size_t size_bytes);

part *part_create(const layout *l, uint32_t element);
void part_free(part *p);
void part_free_trees(part *p);
bool part_add_bodies(part *p, const body *bodies, size_t count);

/* Sorts the bodies of a chunk by box, and builds the trees. False: no memory. */
bool part_build(part *p, const layout *l, const method *m);

/* As ferry_object_ops says. */
size_t part_packed_size(const part *p, const method *m);
void part_pack(const part *p, const method *m, void *buffer);
part *part_unpack(const method *m, const void *buffer);

/* Appends what `target`, a cell of the level of the root, may need of `t`. False: no memory. */
bool view_pack(const tree *t, const method *m, const cell *targets, uint32_t target_count,
               bytes *out);

/* Reads the view at `*at`, and moves `*at` behind it. */
view view_unpack(const method *m, const unsigned char **at);

#endif
