/* Alloc: memory of the process for the code of a rank. Above the ports nothing else asks the system
 * for memory, so that a simulation can refuse it.
 *
 * The functions are those of the C library without fy_. Their memory is freed with free. Each first
 * asks the function set by fy_alloc_refuse in the calling thread, if any. Threads: any. */
#ifndef FY_ALLOC_H
#define FY_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/shared.h"

/* NULL, with errno ENOMEM: it was refused, or there is no memory. Then fy_realloc leaves `old`
 * unchanged. */
FY_SHARED void *fy_malloc(size_t size_bytes)
    __attribute__((malloc, alloc_size(1), warn_unused_result));
FY_SHARED void *fy_calloc(size_t count, size_t size_bytes)
    __attribute__((malloc, alloc_size(1, 2), warn_unused_result));
FY_SHARED void *fy_realloc(void *old, size_t size_bytes)
    __attribute__((alloc_size(2), warn_unused_result));
FY_SHARED void *fy_aligned_alloc(size_t alignment, size_t size_bytes)
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/* Doubles the array `items`, which has room for `*capacity` items; an empty one gets room for
 * `first`. Returns the array, and sets `*capacity`. NULL: there is no memory, and nothing has
 * changed. */
FY_SHARED void *fy_double(void *items, uint32_t *capacity, uint32_t first, size_t item_bytes)
    __attribute__((warn_unused_result));

/* From now on `refuses` decides for each allocation of the calling thread whether it fails; NULL:
 * none does. Keeps `arg` until the next call. */
typedef bool fy_refuses_fn(void *arg);
FY_SHARED void fy_alloc_refuse(fy_refuses_fn *refuses, void *arg);

/* Whether all pages from `address` on are mapped, if the system tells; one system call. Keeps
 * errno. */
bool fy_memory_is_mapped(const void *address, size_t size_bytes);

/* The memory of the machine; SIZE_MAX if the system does not tell. */
size_t fy_memory_bytes(void);

#endif
