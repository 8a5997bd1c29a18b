/* Lists of regions. */
#include <stdlib.h>
#include <string.h>

#include "mover/geometry/array.h"
#include "mover/geometry/box.h"
#include "mover/geometry/fail.h"

void ferry_regions_fini(ferry_regions *list)
{
    if (list == NULL)
        return;
    free(list->items);
    *list = (ferry_regions){0};
}

int ferry_regions_add(ferry_regions *list, ferry_region r)
{
    if (list == NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL, "regions_add: list is NULL");
    if (ferry_region_is_empty(r))
        return 0;
    int error = fy_array_reserve((void **)&list->items, &list->capacity, list->count + 1, sizeof r);
    if (error == 0)
        list->items[list->count++] = r;
    return error;
}

int ferry_regions_subtract(ferry_regions *list, ferry_region r)
{
    ferry_regions rest = {0};
    ferry_region piece[2 * FERRY_DIMS_MAX];
    if (list == NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL, "regions_subtract: list is NULL");
    for (size_t i = 0; i < list->count; i++) {
        int count = ferry_region_difference(list->items[i], r, piece);
        for (int k = 0; k < count; k++) {
            int error = ferry_regions_add(&rest, piece[k]);
            if (error) {
                ferry_regions_fini(&rest);
                return error;
            }
        }
    }
    ferry_regions_fini(list);
    *list = rest;
    return 0;
}

uint64_t ferry_regions_size(const ferry_regions *list)
{
    uint64_t sum = 0;
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (__builtin_add_overflow(sum, ferry_region_size(list->items[i]), &sum))
            return UINT64_MAX;
    return sum;
}
