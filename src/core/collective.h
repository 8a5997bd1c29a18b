/* Collective: barrier, broadcast and allreduce over frames of their own kind.
 *
 * Each call has a number, the same on every rank, which all its frames carry, so calls close
 * together never mix. Frames for a later number or step wait in `early`, in order. Application
 * thread only. */
#ifndef FY_COLLECTIVE_H
#define FY_COLLECTIVE_H

#include "core/core.h"
#include "core/queue.h"

/* What a call is: ranks that make the same call with fitting arguments have equal ones. */
typedef struct fy_collective_call {
    uint64_t what; /* collective, type, reduction and root (collective.c) */
    uint64_t size_bytes;
    uint64_t signature; /* of the handlers registered so far */
} fy_collective_call;

/* A message that the running call waits for: frames of `step` from `source`, in order, until
 * `size_bytes` are there. */
typedef struct fy_collective_wish {
    int source;
    int32_t step;
    unsigned char *buffer;
    size_t size_bytes, received;
    bool active, complete;
} fy_collective_wish;

typedef struct fy_collectives {
    uint32_t number; /* of the call that runs, or of the last one */
    bool running;
    int error; /* of the running call */
    fy_collective_call call;
    fy_collective_wish wish;
    fy_queue early;
} fy_collectives;

void fy_collectives_fini(ferry *f);

/* Starts the call of the next number, and ends it; fy_collective_end returns `error`, having told
 * the others when it is not 0. */
void fy_collective_begin(ferry *f, const fy_collective_call *call);
int fy_collective_end(ferry *f, int error);

/* Sends `size_bytes` to `rank` as part of the running call. */
int fy_collective_send(ferry *f, int rank, int32_t step, const void *data, size_t size_bytes);

/* Starts to receive; fy_collective_await polls until at least `size_bytes` of it are there. */
void fy_collective_want(ferry *f, int source, int32_t step, void *buffer, size_t size_bytes);
int fy_collective_await(ferry *f, size_t size_bytes);

/* The parts of a call's `what`. */
typedef enum fy_collective_sort { FY_BARRIER, FY_BROADCAST, FY_ALLREDUCE } fy_collective_sort;

static inline uint64_t fy_collective_what(fy_collective_sort sort, unsigned type,
                                          unsigned reduction, int root)
{
    return (uint64_t)sort | (uint64_t)type << 8 | (uint64_t)reduction << 16 | (uint64_t)root << 32;
}

/* The exchange of ferry_barrier inside a running call, at steps from `step`. */
int fy_collective_disseminate(ferry *f, int32_t step);

/* As ferry_barrier; while it waits the port is told `doing`. */
int fy_barrier(ferry *f, fy_doing doing);

#endif
