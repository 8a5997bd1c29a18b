/* Memory: a heap that every rank of a node sees at the same address, and one-sided put and get.
 *
 * Remote memory is memory the library knows: from ferry_alloc, or registered. A put or get outside
 * it fails and says so; it never faults the target. dmcs.txt 3.4-3.5, prema.txt B.2.4-B.2.5. */
#ifndef FERRY_MEMORY_H
#define FERRY_MEMORY_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `size_bytes` (at least 1) from this rank's shared heap, 64-byte aligned, not cleared.
 * Gives `*out`, freed with ferry_free by any rank of the node. FERRY_ENOMEM: the heap's limit is
 * reached. [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_alloc(ferry *f, size_t size_bytes, void **out);

/* Frees what ferry_alloc gave, on whichever rank of the node. NULL is nothing. FERRY_EINVAL: not
 * such an address, or freed before; nothing was freed. [app thread, handlers | never blocks] */
FERRY_API int ferry_free(ferry *f, void *address);

/* Lets other ranks put to and get from `[base, base + size_bytes)` of this rank, until
 * ferry_memory_unregister. Keeps `base` until then. [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_memory_register(ferry *f, void *base, size_t size_bytes);
FERRY_API int ferry_memory_unregister(ferry *f, void *base);

/* Copies `size_bytes` from `source` here to `target` on `rank`. On one node and into the shared
 * heap the copy is done on return. Else borrows `source` (without `track`), or keeps it until
 * submitted. Zero bytes complete like any other. FERRY_ERANGE, here or by `track`: the target range
 * is not inside one allocation or registration there. Without `track` a later failure is reported
 * by ferry_error_message and a log line. [app thread, handlers | as ferry_request_send]
 * dmcs.txt 3.4. */
FERRY_API FERRY_MUST_USE int ferry_put(ferry *f, int rank, void *target, const void *source,
                                       size_t size_bytes, const ferry_track *track);

/* Copies `size_bytes` from `source` on `rank` to `target` here. Without `track` it waits until the
 * data is here (not in handlers, unless the source is on this node); with it, keeps `target` until
 * completed. [app thread, handlers | may block without track, then polls] dmcs.txt 3.5. */
FERRY_API FERRY_MUST_USE int ferry_get(ferry *f, int rank, void *target, const void *source,
                                       size_t size_bytes, const ferry_track *track);

#ifdef __cplusplus
}
#endif
#endif
