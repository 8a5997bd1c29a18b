/* Array: grows an array that a public struct has as pointer, count and capacity. */
#ifndef FY_ARRAY_H
#define FY_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <ferry/error.h>

#include "base/alloc.h"
#include "base/error.h"

/* Makes room for `count` items of `item_bytes`. If it grows, then by half at least. FERRY_ENOMEM:
 * nothing has changed, and ferry_error_message(NULL) says what was wanted. */
static inline int fy_array_reserve(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count <= *capacity)
        return 0;
    size_t wanted = *capacity + *capacity / 2;
    if (wanted < count)
        wanted = count < 8 ? 8 : count;
    void *grown = wanted > SIZE_MAX / item_bytes ? NULL : fy_realloc(*items, wanted * item_bytes);
    if (grown == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory for %zu items of %zu bytes", wanted,
                            item_bytes);
    *items = grown;
    *capacity = wanted;
    return 0;
}

#endif
