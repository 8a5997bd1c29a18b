/* A hash of all bytes of a shape is its key in the index. If another shape has the key, it takes
 * the next free one. Reversing all shapes keeps their numbers but drops the index. The next look-up
 * makes it again. */
#include "mover/plan/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "mover/geometry/array.h"

_Static_assert(sizeof(fy_shape) == 8 + 2 * 8 * FERRY_DIMS_MAX + 4 * FERRY_DIMS_MAX + 8,
               "a shape has no hidden padding");

typedef struct shape_slot {
    uint64_t key;
    uint64_t number;
} shape_slot;

fy_shapes *fy_shapes_create(void)
{
    return fy_calloc(1, sizeof(fy_shapes));
}

static void forget_index(fy_shapes *shapes)
{
    if (shapes->is_indexed)
        fy_table_fini(&shapes->by_hash);
    shapes->is_indexed = false;
}

void fy_shapes_destroy(fy_shapes *shapes)
{
    if (shapes == NULL)
        return;
    forget_index(shapes);
    free(shapes->items);
    free(shapes);
}

void fy_shapes_clear(fy_shapes *shapes)
{
    forget_index(shapes);
    shapes->count = 0;
}

/* The lengths of a region with arbitrary corners may overflow: unsigned, so that they wrap. */
static fy_shape shape_of(const ferry_plan_entry *copy)
{
    fy_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.to_dims = copy->to.dims;
    shape.from_dims = copy->from.dims;
    shape.relation = copy->relation;
    for (int d = 0; d < fy_dims_kept(copy->to.dims); d++)
        shape.to_length[d] = (uint64_t)copy->to.high.at[d] - (uint64_t)copy->to.low.at[d];
    for (int d = 0; d < fy_dims_kept(copy->from.dims); d++)
        shape.from_length[d] = (uint64_t)copy->from.high.at[d] - (uint64_t)copy->from.low.at[d];
    memcpy(shape.ratio, copy->ratio, sizeof shape.ratio);
    memcpy(shape.axis, copy->axis, sizeof shape.axis);
    return shape;
}

void fy_shape_give(const fy_shape *shape, ferry_plan_entry *copy)
{
    copy->to.dims = shape->to_dims;
    copy->from.dims = shape->from_dims;
    copy->relation = shape->relation;
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        copy->to.high.at[d] = (int64_t)((uint64_t)copy->to.low.at[d] + shape->to_length[d]);
        copy->from.high.at[d] = (int64_t)((uint64_t)copy->from.low.at[d] + shape->from_length[d]);
    }
    memcpy(copy->ratio, shape->ratio, sizeof shape->ratio);
    memcpy(copy->axis, shape->axis, sizeof shape->axis);
}

/* Three sums take words in turn. So a multiplication waits only for the last one of its own sum. */
static uint64_t hash(const fy_shape *shape)
{
    enum { WORDS = sizeof *shape / 8 };
    uint64_t words[WORDS + 1] = {0}, a = 0, b = 0, c = 0;
    _Static_assert((WORDS + 1) % 3 == 0, "one word more makes it threes");
    memcpy(words, shape, sizeof *shape);
    for (int i = 0; i <= WORDS; i += 3) {
        a = fy_mix(a, words[i]);
        b = fy_mix(b, words[i + 1]);
        c = fy_mix(c, words[i + 2]);
    }
    return fy_mix(fy_mix(a, b), c) | 1;
}

/* Finds the number of a shape. `add`: if the shape is new, it gets `*number`. */
static int look_up(fy_shapes *shapes, const fy_shape *shape, bool add, uint32_t *number)
{
    uint64_t key = hash(shape);
    const shape_slot *found;
    while ((found = fy_table_find(&shapes->by_hash, key)) != NULL) {
        if (memcmp(&shapes->items[found->number], shape, sizeof *shape) == 0) {
            *number = (uint32_t)found->number;
            return 0;
        }
        key += 2;
    }
    if (!add)
        return FERRY_ENOENT;
    void *slot;
    if (fy_table_insert(&shapes->by_hash, key, &slot))
        return FERRY_ENOMEM;
    ((shape_slot *)slot)->number = *number;
    return 0;
}

static int make_index(fy_shapes *shapes)
{
    if (shapes->is_indexed)
        return 0;
    if (fy_table_init(&shapes->by_hash, sizeof(shape_slot)))
        return FERRY_ENOMEM;
    shapes->is_indexed = true;
    for (size_t i = 0; i < shapes->count; i++) {
        uint32_t number = (uint32_t)i;
        if (look_up(shapes, &shapes->items[i], true, &number)) {
            forget_index(shapes);
            return FERRY_ENOMEM;
        }
    }
    return 0;
}

int fy_shapes_number(fy_shapes *shapes, const ferry_plan_entry *copy, uint32_t *number)
{
    const fy_shape shape = shape_of(copy);
    int error = make_index(shapes);
    if (error || look_up(shapes, &shape, false, number) == 0)
        return error;
    if (shapes->count == UINT32_MAX || fy_array_reserve((void **)&shapes->items, &shapes->capacity,
                                                        shapes->count + 1, sizeof *shapes->items))
        return FERRY_ENOMEM;
    *number = (uint32_t)shapes->count;
    error = look_up(shapes, &shape, true, number);
    if (error == 0)
        shapes->items[shapes->count++] = shape;
    return error;
}

/* Reverses a permutation: if axis a of `to` runs along axis d of `from`, then d along a. */
static void reverse(fy_shape *shape)
{
    const fy_shape old = *shape;
    shape->to_dims = old.from_dims;
    shape->from_dims = old.to_dims;
    memcpy(shape->to_length, old.from_length, sizeof old.from_length);
    memcpy(shape->from_length, old.to_length, sizeof old.to_length);
    for (int d = 0; d < fy_dims_kept(old.to_dims) && old.from_dims == old.to_dims; d++) {
        if (old.axis[d] < 0 || old.axis[d] >= old.to_dims || old.axis[d] >= FERRY_DIMS_MAX)
            continue; /* not a permutation: ferry_plan_check reports it */
        shape->axis[old.axis[d]] = (int8_t)d;
        shape->ratio[old.axis[d]] = old.ratio[d];
    }
    if (old.relation == FERRY_REFINE)
        shape->relation = FERRY_COARSEN;
    else if (old.relation == FERRY_COARSEN)
        shape->relation = FERRY_REFINE;
}

void fy_shapes_reverse(fy_shapes *shapes)
{
    for (size_t i = 0; i < shapes->count; i++)
        reverse(&shapes->items[i]);
    forget_index(shapes);
}
