/* Mover: blocks of distributed arrays, moved by plan.
 *
 * A grid is an array over a region. An xarray has a grid for each block of a floor plan, on the
 * block's owner only. A mover binds a motion plan to two xarrays, analyses it, and allocates
 * everything once. ferry_mover_start and ferry_mover_wait then move the data as often as wanted.
 * Between ranks that share memory a target copies from its source's grid, and two counters per pair
 * of ranks say "ready" and "taken": no barrier, no message. Otherwise all copies to one rank travel
 * as one message. kelp-data-mover.txt. */
#ifndef FERRY_MOVER_H
#define FERRY_MOVER_H

#include <ferry/core.h>
#include <ferry/mover_plan.h>
#include <ferry/mover_region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grids: an array over a region, in the caller's memory or in the shared heap. */

typedef struct ferry_grid {
    ferry_region region;
    size_t element_bytes;
    ptrdiff_t stride[FERRY_DIMS_MAX]; /* bytes from an element to the next along each dimension */
    void *data;                       /* the element at region.low */
} ferry_grid;

/* The address of the element at `p`, which is inside the region. */
static inline void *ferry_grid_at(const ferry_grid *grid, ferry_point p)
{
    char *at = (char *)grid->data;
    for (int d = 0; d < grid->region.dims; d++)
        at += (p.at[d] - grid->region.low.at[d]) * grid->stride[d];
    return at;
}

/* A grid over the caller's memory, the last dimension fastest, without gaps. Keeps `data` for as
 * long as the grid is used. [any thread | never blocks] */
FERRY_API ferry_grid ferry_grid_over(ferry_region region, size_t element_bytes, void *data);

/* A grid in this rank's shared heap, not cleared. Gives `out->data`, freed with ferry_free.
 * FERRY_EINVAL: an empty region or element; FERRY_ENOMEM. [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_grid_alloc(ferry *f, ferry_region region, size_t element_bytes,
                                              ferry_grid *out);

/* Combines `count` elements at `source`, `source_stride` bytes apart, into those at `target`. Runs
 * inside the calls that move data. */
typedef void ferry_element_fn(void *arg, void *target, ptrdiff_t target_stride, const void *source,
                              ptrdiff_t source_stride, size_t count);

/* How an arriving element is combined with the old one. All zero: it replaces that. */
typedef struct ferry_operation {
    ferry_reduction reduction;
    ferry_type type;      /* an element consists of one or several values of it, up to FERRY_BYTE */
    ferry_element_fn *fn; /* for FERRY_USER */
    void *arg;
} ferry_operation;

/* Does one entry of a plan between two grids here. `operation` NULL: copies. FERRY_EINVAL: the
 * regions are not inside the grids or do not fit each other, or the elements have 0 bytes or do not
 * fit each other or the operation; see ferry_error_message(NULL). FERRY_ENOMEM. [any thread | never
 * blocks] */
FERRY_API FERRY_MUST_USE int ferry_grid_move(const ferry_grid *target, const ferry_grid *source,
                                             const ferry_plan_entry *copy,
                                             const ferry_operation *operation);

/* XArrays. kelp-data-mover.txt 2 (Storage Model). */

/* A distributed array of grids. The program reads it; grids[i] is that of block local[i], with
 * ghost cells, in the order of block numbers. */
typedef struct ferry_xarray {
    ferry *f;
    ferry_floorplan blocks; /* without ghost cells */
    size_t element_bytes;
    ferry_point ghosts; /* width on both sides of every block, per dimension */
    size_t local_count;
    int32_t *local;
    ferry_grid *grids;
    bool borrowed; /* the grids' data are the caller's */
    bool mobile;   /* its blocks are objects (mover_blocks.h) */
} ferry_xarray;

/* Makes the part of this rank: a grid in the shared heap for each of its blocks, cleared to zero
 * bytes. Copies `blocks`. Gives `*out`, freed with ferry_xarray_destroy. FERRY_EINVAL: what
 * ferry_floorplan_check says of a plan for all ranks, negative ghosts, elements of 0 bytes;
 * FERRY_ENOMEM. Each rank of the job makes its own; nothing is sent. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_xarray_create(ferry *f, const ferry_floorplan *blocks,
                                                 size_t element_bytes, ferry_point ghosts,
                                                 ferry_xarray **out);

/* As ferry_xarray_create over the caller's grids, one per block of this rank in the order of
 * numbers, of any strides. Borrows `grids`, keeps their data until ferry_xarray_destroy.
 * FERRY_EINVAL too: a grid's region is not its block's with ghosts. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_xarray_create_over(ferry *f, const ferry_floorplan *blocks,
                                                      size_t element_bytes, ferry_point ghosts,
                                                      const ferry_grid *grids, ferry_xarray **out);

/* Gives each block a new owner and moves grids, with ghost cells. Movers bound to `x` stay valid,
 * without new plans (docs/mover.md). Collective; borrows `owners`, one per entry of x->blocks, the
 * same on every rank (with a share: own blocks). FERRY_EINVAL: an owner that is no rank, grids of
 * the caller's, or blocks that are objects; FERRY_ESTATE: a mover of `x` is in flight;
 * FERRY_ENOMEM, FERRY_EPEER. Then `x` is as before on every rank; movers that could not follow
 * report it from their next start on. [app thread, not in handlers | polls | may block]
 * kelp-data-mover.txt 5. */
FERRY_API FERRY_MUST_USE int ferry_xarray_remap(ferry_xarray *x, const int32_t *owners);

/* Frees the part of this rank. No mover may be bound to it, no set of blocks may have it. NULL is
 * nothing. [app thread | never blocks] */
FERRY_API void ferry_xarray_destroy(ferry_xarray *x);

/* The grid of a block, or NULL when it is not here. Lends until ferry_xarray_destroy or
 * ferry_xarray_remap. [app thread | never blocks] kelp-data-mover.txt 2 (presence). */
FERRY_API ferry_grid *ferry_xarray_grid(const ferry_xarray *x, int32_t block);

/* Movers. */

typedef struct ferry_mover ferry_mover;

/* How a mover moves. */
typedef struct ferry_mover_options {
    size_t size; /* sizeof(ferry_mover_options) */
    ferry_operation operation;
    bool ordered;        /* combine in one order whatever the timing and the number of ranks: that
                            of target block, place, and source of the copies, or over indices own
                            pairs and then those of the other ranks by number. Otherwise sums of
                            floating-point numbers may differ in their last bits from run to run */
    bool check;          /* safety mode: overlaps too (ferry_plan_check), but of movers that copy
                            alone: those that combine are meant to meet in one place; and all ranks
                            agree that everybody could bind, or fail together. The same on every
                            rank */
    bool messages;       /* use messages even where memory is shared */
    bool deferred;       /* start copies nothing, but for small links on one node: polls, wait, or
                            the thread of ferry_background_begin do */
    size_t packet_bytes; /* messages of at most about so many bytes; 0: one per pair of ranks */
} ferry_mover_options;

#define FERRY_MOVER_OPTIONS_DEFAULTS                                                               \
    {                                                                                              \
        sizeof(ferry_mover_options), {FERRY_REPLACE, FERRY_DOUBLE, NULL, NULL}, false, false,      \
            false, false, 0                                                                        \
    }

/* Binds `plan` to `source` and `target`, which may be one. Every rank binds the same movers in the
 * same order, and waits only for ranks that it shares copies with. Borrows `plan` and `options`
 * (NULL: defaults). Keeps the xarrays until ferry_mover_free. Gives `*out`. FERRY_EINVAL: a wrong
 * entry, elements that do not fit, or plans of two ranks that differ in common copies;
 * FERRY_ENOMEM; FERRY_EPEER: a rank that it needs is dead. docs/mover.md says which other ranks
 * fail, and when. [app thread, not in handlers | polls | may block] kelp-data-mover.txt 2 (Mover).
 */
FERRY_API FERRY_MUST_USE int ferry_mover_bind(ferry *f, const ferry_plan *plan,
                                              ferry_xarray *source, ferry_xarray *target,
                                              const ferry_mover_options *options,
                                              ferry_mover **out);

/* An element of this rank that stands for one of another's: `local` is its index here, `remote`
 * that of the original on rank `owner`, which may be this one. */
typedef struct ferry_ghost {
    int64_t local, remote;
    int32_t owner;
} ferry_ghost;

/* Ghosts of one rank: `count` items, which direction they are moved in. `back`: from the ghosts to
 * the originals, where they are combined; else from the originals to the ghosts. */
typedef struct ferry_ghosts {
    const ferry_ghost *items;
    size_t count;
    bool back;
} ferry_ghosts;

/* Binds a halo over indices, for unstructured meshes: each rank says which of its elements stand
 * for which elements of others. Moves originals to ghosts or, with `back`, ghosts to originals,
 * where they are combined. `source` and `target` are grids of one dimension here, which may be one.
 * Collective, otherwise like ferry_mover_bind; borrows `ghosts`, `options` and the grids, keeps the
 * grids' data until ferry_mover_free. FERRY_EINVAL: an index outside the grids' regions, a rank
 * that is none. [app thread, not in handlers | polls | may block] kelp-data-mover.txt 5. */
FERRY_API FERRY_MUST_USE int ferry_mover_bind_ghosts(ferry *f, const ferry_ghosts *ghosts,
                                                     const ferry_grid *source,
                                                     const ferry_grid *target,
                                                     const ferry_mover_options *options,
                                                     ferry_mover **out);

/* Starts a movement. From here to its end the program does not write what the plan reads, nor touch
 * what it writes. Movers without common data may be in flight together. With `track` it is an
 * operation that ends when wait would return; cancelled or timed out, it tells no more of the
 * movement, which goes on: ferry_mover_wait or _test says when. FERRY_ESTATE: it is in flight
 * already, or blocks of its xarrays may be elsewhere (ferry_blocks_send). FERRY_EPEER: a neighbour
 * died. [app thread | never blocks] kelp-data-mover.txt 2 (start). */
FERRY_API FERRY_MUST_USE int ferry_mover_start(ferry_mover *mover, const ferry_track *track);

/* Returns when everything has arrived here and everything from here has been taken. Without a
 * start before it returns at once. FERRY_EPEER: a neighbour died, or one of theirs, and so on: the
 * mover is lost on all ranks that it connects; the targets are undefined and it can only be freed.
 * [app thread, not in handlers | polls | may block] kelp-data-mover.txt 2 (wait). */
FERRY_API FERRY_MUST_USE int ferry_mover_wait(ferry_mover *mover);

/* As ferry_mover_wait, but FERRY_EAGAIN when that would wait; does what can be done now. [app
 * thread, handlers | polls outside handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_mover_test(ferry_mover *mover);

/* Frees a mover that is not in flight here. Each rank frees its own, and waits for nobody. NULL is
 * nothing. FERRY_ESTATE: it is in flight. [app thread, not in handlers | polls | never blocks] */
FERRY_API int ferry_mover_free(ferry_mover *mover);

/* The account of one movement on this rank. */
typedef struct ferry_mover_stats {
    size_t size;                          /* sizeof(ferry_mover_stats) */
    size_t neighbours_in, neighbours_out; /* ranks */
    size_t copies_local, copies_in;
    uint64_t bytes_local, bytes_in, bytes_out;
    size_t direct_in, direct_out;       /* neighbours without messages */
    uint64_t movements;                 /* so far */
    uint64_t messages_in, messages_out; /* with data; each link's target acknowledges one more */
} ferry_mover_stats;

#define FERRY_MOVER_STATS_DEFAULTS                                                                 \
    {                                                                                              \
        sizeof(ferry_mover_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                              \
    }

/* Writes the account of `mover` to `*out`, which begins as FERRY_MOVER_STATS_DEFAULTS.
 * FERRY_EINVAL: its size is none; nothing was written. [app thread | never blocks] */
FERRY_API int ferry_mover_stats_get(const ferry_mover *mover, ferry_mover_stats *out);

/* How the copies from one rank to another go. */
typedef enum ferry_mover_way {
    FERRY_WAY_MESSAGES, /* packed, in messages */
    FERRY_WAY_DIRECT,   /* straight from grid to grid, in shared memory */
    FERRY_WAY_STAGED,   /* packed into slots in shared memory */
} ferry_mover_way;

/* The account of one movement from one rank to another. */
typedef struct ferry_mover_pair {
    int32_t source, target; /* ranks; this one is one of them */
    ferry_mover_way way;
    uint64_t copies, bytes;
    uint64_t messages; /* with data; 0 in shared memory */
} ferry_mover_pair;

/* Writes what `mover` moves to this rank and then from it, by the other rank beginning after this
 * one, at most `capacity` pairs to `out`. Returns how many there are. [app thread | never blocks]
 */
FERRY_API size_t ferry_mover_pairs_get(const ferry_mover *mover, ferry_mover_pair *out,
                                       size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
