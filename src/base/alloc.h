/* Alloc: memory of the process for what runs on a rank. Above the ports nothing else asks the
 * system for any, so that a simulation can refuse it.
 *
 * As the C library's functions of these names; what they give is freed with free. Each asks first
 * whoever may refuse in the calling thread, if anybody does. Threads: any. */
#ifndef FY_ALLOC_H
#define FY_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/shared.h"

/* NULL, with errno ENOMEM: refused, or there is no memory; of fy_realloc `old` is then as it was.
 */
FY_SHARED void *fy_malloc(size_t size_bytes)
    __attribute__((malloc, alloc_size(1), warn_unused_result));
FY_SHARED void *fy_calloc(size_t count, size_t size_bytes)
    __attribute__((malloc, alloc_size(1, 2), warn_unused_result));
FY_SHARED void *fy_realloc(void *old, size_t size_bytes)
    __attribute__((alloc_size(2), warn_unused_result));
FY_SHARED void *fy_aligned_alloc(size_t alignment, size_t size_bytes)
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/* From here on `refuses` is asked at each allocation of the calling thread whether it fails; NULL:
 * nobody is. Keeps `arg` until then. */
typedef bool fy_refuses_fn(void *arg);
FY_SHARED void fy_alloc_refuse(fy_refuses_fn *refuses, void *arg);

/* Whether each page from `address` on is one of this process, where the system tells; one system
 * call. errno is as before. */
bool fy_memory_is_mapped(const void *address, size_t size_bytes);

/* Memory of the machine; SIZE_MAX where it does not say. */
size_t fy_memory_bytes(void);

#endif
