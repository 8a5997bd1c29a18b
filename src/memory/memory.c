/* The shared heap, registered memory, and what put and get have in common. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/peer.h"
#include "memory/state.h"

static int open_memory(ferry *f, const ferry_options *options)
{
    (void)options;
    fy_memory *m = fy_calloc(1, sizeof(*m));
    if (m == NULL)
        return fy_fail(f, FERRY_ENOMEM, "open: no memory for the memory layer");
    fy_layer_state_set(f, FY_LAYER_MEMORY, m);
    fy_port *port = fy_port_of(f);
    fy_port_info info = {0};
    port->ops->transport.query(port, &info);
    m->bundle_bytes = info.inline_bytes != 0 && info.inline_bytes < FY_BUNDLE_BYTES
                          ? info.inline_bytes
                          : FY_BUNDLE_BYTES;
    m->gets.item_bytes = sizeof(fy_pending_get);
    m->words.item_bytes = sizeof(fy_word_wait);
    fy_transfer_pool_init(&m->follows);
    fy_gets_pool_init(&m->gets_of_pieces);
    return 0;
}

static void close_memory(ferry *f)
{
    fy_memory *m = fy_memory_of(f);
    for (size_t i = 0; i < m->regions.count; i++)
        if (m->regions.items[i].allocated)
            free((void *)m->regions.items[i].base);
    free(m->regions.items);
    fy_gets_fini(&m->gets);
    free(m->words.items);
    fy_pool_fini(&m->follows);
    fy_pool_fini(&m->gets_of_pieces);
    free(m);
    fy_layer_state_set(f, FY_LAYER_MEMORY, NULL);
}

static const fy_kind_info kinds[] = {
    [FY_KIND_PUT - FY_KINDS_OF_MEMORY] = {fy_put_deliver, fy_put_hold, "put",
                                          FY_FRAME_MAY_TAG | FY_FRAME_WRITES},
    [FY_KIND_PUT_ANSWER - FY_KINDS_OF_MEMORY] = {fy_put_answer_deliver, NULL, "put answer", 0},
    [FY_KIND_GET - FY_KINDS_OF_MEMORY] = {fy_get_deliver, NULL, "get",
                                          FY_FRAME_ASKS | FY_FRAME_MAY_TAG | FY_FRAME_READS},
    [FY_KIND_GOT - FY_KINDS_OF_MEMORY] = {fy_got_deliver, NULL, "get answer", 0},
    [FY_KIND_TRANSFER - FY_KINDS_OF_MEMORY] = {fy_transfer_deliver, fy_transfer_hold, "transfer",
                                               FY_FRAME_ASKS | FY_FRAME_TAGGED},
    [FY_KIND_WORD -
        FY_KINDS_OF_MEMORY] = {fy_word_deliver, NULL, "word", FY_FRAME_ASKS | FY_FRAME_READS},
};

const fy_layer_ops fy_memory_layer = {
    .layer = FY_LAYER_MEMORY,
    .name = "memory",
    .kinds = kinds,
    .kind_count = sizeof(kinds) / sizeof(kinds[0]),
    .open = open_memory,
    .close = close_memory,
};

/* Memory of this rank alone, for ports without a shared heap. */
static void *alloc_private(ferry *f, size_t size_bytes)
{
    enum { ALIGNMENT = 64 };
    if (size_bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    size_t rounded = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *address = fy_aligned_alloc(ALIGNMENT, rounded);
    const fy_region region = {
        .base = (uintptr_t)address, .size_bytes = size_bytes, .allocated = true};
    if (address != NULL && !fy_regions_add(&fy_memory_of(f)->regions, region)) {
        free(address);
        address = NULL;
    }
    return address;
}

int ferry_alloc(ferry *f, size_t size_bytes, void **out)
{
    const fy_port_ops *ops = fy_port_of(f)->ops;
    if (out == NULL || size_bytes == 0)
        return fy_fail(f, FERRY_EINVAL, "alloc: %s",
                       out == NULL ? "the result is missing" : "0 bytes; expected at least 1");
    void *address = ops->heap.alloc == NULL
                        ? alloc_private(f, size_bytes)
                        : ops->heap.alloc(fy_port_of(f), size_bytes, FY_KEEP_ALL);
    if (address == NULL)
        return fy_fail(f, FERRY_ENOMEM,
                       "alloc: %zu bytes are more than the shared heap of rank %d has left "
                       "(FERRY_HEAP_BYTES)",
                       size_bytes, ferry_rank(f));
    *out = address;
    return 0;
}

int ferry_memory_reclaim(ferry *f, int rank)
{
    const fy_port_ops *ops = fy_port_of(f)->ops;
    int error = fy_memory_check(f, "memory_reclaim", rank, NULL, NULL, 0);
    if (error != 0)
        return error;
    if (!fy_peer_is_gone(f, rank))
        return fy_fail(f, FERRY_ESTATE, "memory_reclaim: rank %d is not known to be gone", rank);
    /* A rank that is absent may still come. */
    if (ops->heap.free_gone != NULL && ops->members.peer(fy_port_of(f), rank) != FY_PEER_ABSENT)
        ops->heap.free_gone(fy_port_of(f), rank);
    return 0;
}

int ferry_free(ferry *f, void *address)
{
    if (address == NULL)
        return 0;
    fy_port *port = fy_port_of(f);
    fy_memory *m = fy_memory_of(f);
    if (port->ops->heap.release != NULL) {
        if (port->ops->heap.release(port, address) == 0)
            return 0;
    } else {
        const fy_region *region = fy_regions_at(&m->regions, (uintptr_t)address);
        if (region != NULL && region->allocated) {
            fy_regions_remove(&m->regions, region);
            free(address);
            return 0;
        }
    }
    return fy_fail(f, FERRY_EINVAL, "free: %p is not from ferry_alloc, or was freed before",
                   address);
}

int ferry_memory_register(ferry *f, void *base, size_t size_bytes)
{
    fy_memory *m = fy_memory_of(f);
    uintptr_t start = (uintptr_t)base;
    if (base == NULL || size_bytes == 0 || size_bytes - 1 > UINTPTR_MAX - start)
        return fy_fail(f, FERRY_EINVAL, "memory_register: %zu bytes at %p are not a range",
                       size_bytes, base);
    const fy_region *other = fy_regions_overlapping(&m->regions, start, size_bytes);
    if (other != NULL)
        return fy_fail(f, FERRY_EINVAL,
                       "memory_register: %zu bytes at %p overlap the %zu registered at %p",
                       size_bytes, base, other->size_bytes, (void *)other->base);
    const fy_region region = {.base = start, .size_bytes = size_bytes};
    if (!fy_regions_add(&m->regions, region))
        return fy_fail(f, FERRY_ENOMEM, "memory_register: no memory to note %zu bytes at %p",
                       size_bytes, base);
    return 0;
}

int ferry_memory_unregister(ferry *f, void *base)
{
    fy_memory *m = fy_memory_of(f);
    const fy_region *region = fy_regions_at(&m->regions, (uintptr_t)base);
    if (region == NULL || region->allocated)
        return fy_fail(f, FERRY_ENOENT, "memory_unregister: nothing is registered at %p", base);
    fy_regions_remove(&m->regions, region);
    return 0;
}

bool fy_memory_is_open(ferry *f, const void *address, size_t size_bytes)
{
    if (fy_memory_is_direct(f, ferry_rank(f), address, size_bytes))
        return true;
    const fy_regions *regions = &fy_memory_of(f)->regions;
    return fy_regions_containing(regions, (uintptr_t)address, size_bytes) != NULL;
}

bool fy_memory_is_direct(ferry *f, int rank, const void *address, size_t size_bytes)
{
    fy_port *port = fy_port_of(f);
    return port->ops->heap.owner != NULL &&
           port->ops->heap.owner(port, FY_APP, address, size_bytes) == rank;
}

int fy_memory_check(ferry *f, const char *call, int rank, const void *remote, const void *local,
                    size_t size_bytes)
{
    if (rank < 0 || rank >= ferry_ranks(f))
        return fy_fail(f, FERRY_EINVAL, "%s: rank %d is outside 0..%d", call, rank,
                       ferry_ranks(f) - 1);
    if (local == NULL && size_bytes > 0)
        return fy_fail(f, FERRY_EINVAL, "%s: %zu bytes at NULL here", call, size_bytes);
    if (size_bytes > UINTPTR_MAX - (uintptr_t)remote)
        return fy_memory_refused(f, call, rank, (uintptr_t)remote, size_bytes);
    if (size_bytes > FY_UNCHECKED_BYTES && !fy_memory_is_mapped(local, size_bytes))
        return fy_memory_refuse_here(f, call, local, size_bytes);
    /* Without it, what is sent could not be counted as work. */
    if (fy_peer_of(f, rank) == NULL)
        return fy_fail(f, FERRY_ENOMEM, "%s: no memory", call);
    return 0;
}

__attribute__((cold)) int fy_memory_check_wait(ferry *f, const char *call, int rank)
{
    if (!fy_in_handler(f))
        return 0;
    return fy_fail(f, FERRY_ESTATE,
                   "%s: without track it waits for rank %d, which is not allowed inside a handler",
                   call, rank);
}

__attribute__((cold)) int fy_memory_refuse_here(ferry *f, const char *call, const void *local,
                                                size_t size_bytes)
{
    return fy_fail(f, FERRY_ERANGE,
                   "%s: %zu bytes at %p here are not all memory of rank %d; expected a size within "
                   "what was allocated",
                   call, size_bytes, local, ferry_rank(f));
}

int fy_memory_refused(ferry *f, const char *call, int rank, uint64_t address, uint64_t size_bytes)
{
    return fy_fail(f, FERRY_ERANGE,
                   "%s: %" PRIu64 " bytes at 0x%" PRIx64
                   " on rank %d are outside every allocation and registered region there",
                   call, size_bytes, address, rank);
}

void fy_memory_log(ferry *f)
{
    enum { LINES_MAX = 8 };
    if (fy_memory_of(f)->lines_logged++ < LINES_MAX)
        fy_log(f, "%s", ferry_error_message(f));
}

int fy_memory_start(ferry *f, int rank, const fy_op_about *about, size_t size_bytes,
                    const ferry_track *track, uint32_t *op)
{
    int error = fy_op_start(f, track, rank, 0, size_bytes, op);
    if (*op != 0)
        fy_op_describe(f, *op, about);
    return error;
}

int fy_memory_done(ferry *f, int rank, const fy_op_about *about, size_t size_bytes,
                   const ferry_track *track)
{
    uint32_t op;
    int error = fy_memory_start(f, rank, about, size_bytes, track, &op);
    if (error == 0)
        fy_op_end(f, op, 0);
    return error;
}
