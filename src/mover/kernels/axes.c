/* A hash of its contents is a list's key. If another list has the key, it takes the next free
 * one. */
#include "mover/kernels/axes.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"

typedef struct axis_list {
    size_t count;
    fy_axis items[];
} axis_list;

typedef struct axes_slot {
    uint64_t key;
    axis_list *list;
} axes_slot;

static uint64_t hash(const fy_axis *list, int count)
{
    uint64_t sum = (uint64_t)count;
    for (int i = 0; i < count; i++)
        sum = fy_mix(fy_mix(fy_mix(sum, list[i].count), (uint64_t)list[i].d), (uint64_t)list[i].s);
    return sum | 1;
}

static axis_list *make_list(const fy_axis *list, int count)
{
    const size_t bytes = (size_t)count * sizeof *list;
    axis_list *made = fy_malloc(sizeof *made + bytes);
    if (made != NULL) {
        made->count = (size_t)count;
        memcpy(made->items, list, bytes);
    }
    return made;
}

const fy_axis *fy_axes_keep(fy_axes *axes, const fy_axis *list, int count)
{
    const size_t bytes = (size_t)count * sizeof *list;
    uint64_t key = hash(list, count);
    void *slot;
    if (!axes->is_indexed && fy_table_init(&axes->by_hash, sizeof(axes_slot)))
        return NULL;
    axes->is_indexed = true;
    while ((slot = fy_table_find(&axes->by_hash, key)) != NULL) {
        const axis_list *found = ((axes_slot *)slot)->list;
        if (found->count == (size_t)count && memcmp(found->items, list, bytes) == 0)
            return found->items;
        key += 2;
    }
    axis_list *made = make_list(list, count);
    if (made == NULL || fy_table_insert(&axes->by_hash, key, &slot)) {
        free(made);
        return NULL;
    }
    ((axes_slot *)slot)->list = made;
    return made->items;
}

void fy_axes_fini(fy_axes *axes)
{
    axes_slot *slot;
    size_t at = 0;
    while (axes->is_indexed && (slot = fy_table_next(&axes->by_hash, &at)) != NULL)
        free(slot->list);
    if (axes->is_indexed)
        fy_table_fini(&axes->by_hash);
    *axes = (fy_axes){0};
}
