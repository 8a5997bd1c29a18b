/* What the memory layer keeps in a rank. Private to memory. */
#ifndef FY_MEMORY_STATE_H
#define FY_MEMORY_STATE_H

#include <ferry/memory.h>

#include "core/core.h"
#include "memory/regions.h"

/* Data for ranges that are not reached directly travels in pieces of at most this size. */
enum { FY_PIECE_BYTES = 32 * 1024 };

/* A get that pieces are asked for, named by index and generation. */
typedef struct fy_pending_get {
    unsigned char *target;
    const void *source; /* on `rank`: a number here, never followed */
    size_t size_bytes, asked;
    int rank;
    int error; /* of the pieces so far */
    uint32_t outstanding;
    uint32_t generation;
    uint32_t op;
    uint32_t next_free;
    bool open; /* pieces may come */
} fy_pending_get;

typedef struct fy_memory {
    fy_regions regions;
    fy_pending_get *gets;
    uint32_t get_count, get_capacity;
    uint32_t free_get; /* index + 1; 0 for none */
} fy_memory;

static inline fy_memory *fy_memory_of(const ferry *f)
{
    return (fy_memory *)fy_layer_state(f, FY_LAYER_MEMORY);
}

/* Whether this process may copy to or from the range of `rank` itself. */
bool fy_memory_is_direct(ferry *f, int rank, const void *address, size_t size_bytes);

/* Whether the range is memory of this rank that others may use. */
bool fy_memory_is_open(ferry *f, const void *address, size_t size_bytes);

/* What is wrong with the arguments of a put or get; 0 when nothing is. */
int fy_memory_check(ferry *f, const char *call, int rank, const void *remote, const void *local,
                    size_t size_bytes);

/* Keeps the message of a range that `rank` does not offer, and returns FERRY_ERANGE. */
int fy_memory_refused(ferry *f, const char *call, int rank, uint64_t address, uint64_t size_bytes);

/* Ends an operation that was done on the spot. */
int fy_memory_done(ferry *f, int rank, size_t size_bytes, const ferry_track *track);

fy_verdict fy_put_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_get_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_got_deliver(ferry *f, int source, const fy_frame *frame);

#endif
