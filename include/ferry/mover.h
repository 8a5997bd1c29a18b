/* Mover: blocks of distributed arrays, moved by plan.
 *
 * A grid is an array over a region. An xarray has a grid for each block of a floor plan, on the
 * block's owner only. A mover binds a motion plan to two xarrays. The bind analyses the plan and
 * allocates all memory, once. Then ferry_mover_start and ferry_mover_wait move the data, any number
 * of times. If two ranks share memory, the target copies from the source's grid, and two counters
 * per pair of ranks say "ready" and "taken": no barrier, no message. Otherwise all copies to one
 * rank travel as one message. kelp-data-mover.txt. */
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
    ptrdiff_t stride[FERRY_DIMS_MAX]; /* bytes from one element to the next along each dimension */
    void *data;                       /* the element at region.low */
} ferry_grid;

/* The address of the element at `p`, which must lie in the region. */
static inline void *ferry_grid_at(const ferry_grid *grid, ferry_point p)
{
    char *at = FERRY_CAST(char *, grid->data);
    for (int d = 0; d < grid->region.dims; d++)
        at += (p.at[d] - grid->region.low.at[d]) * grid->stride[d];
    return at;
}

/* A grid over the caller's memory, the last dimension fastest, without gaps. Keeps `data` as long
 * as the grid is used. [any thread | never blocks] */
FERRY_API ferry_grid ferry_grid_over(ferry_region region, size_t element_bytes, void *data);

/* Makes a grid in this rank's shared heap, not cleared. Gives `out->data`, freed with ferry_free.
 * FERRY_EINVAL: the region is empty, or elements have 0 bytes. FERRY_ENOMEM. [app thread, handlers
 * | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_grid_alloc(ferry *f, ferry_region region, size_t element_bytes,
                                              ferry_grid *out);

/* Combines `count` elements at `source`, `source_stride` bytes apart, into those at `target`. Runs
 * inside the calls that move data. */
typedef void ferry_element_fn(void *arg, void *target, ptrdiff_t target_stride, const void *source,
                              ptrdiff_t source_stride, size_t count);

/* How an arriving element is combined with the old one. All zero: it replaces the old one. */
typedef struct ferry_operation {
    ferry_reduction reduction;
    ferry_type type; /* an element consists of one or more values of this type, from FERRY_DOUBLE to
                        FERRY_BYTE */
    ferry_element_fn *fn; /* for FERRY_USER */
    void *arg;
} ferry_operation;

/* Performs one entry of a plan between two grids of this rank. `operation` NULL: copies.
 * FERRY_EINVAL: the regions are not inside the grids or do not fit each other, or the elements have
 * 0 bytes or do not fit each other or the operation; see ferry_error_message(NULL). FERRY_ENOMEM.
 * [any thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_grid_move(const ferry_grid *target, const ferry_grid *source,
                                             const ferry_plan_entry *copy,
                                             const ferry_operation *operation);

/* XArrays. kelp-data-mover.txt 2 (Storage Model). */

/* A distributed array of grids. The program reads its fields. grids[i] is the grid of block
 * local[i], with ghost cells, in the order of block numbers. */
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

/* Makes this rank's part: a grid in the shared heap for each of its blocks, cleared to zero bytes.
 * Copies `blocks`. Gives `*out`, freed with ferry_xarray_destroy. Each rank makes its own part;
 * nothing is sent. FERRY_EINVAL: ferry_floorplan_check refuses the plan for the job's ranks, ghosts
 * are negative, or elements have 0 bytes. FERRY_ENOMEM. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_xarray_create(ferry *f, const ferry_floorplan *blocks,
                                                 size_t element_bytes, ferry_point ghosts,
                                                 ferry_xarray **out);

/* As ferry_xarray_create, with grids of the caller: one for each block of this rank, in the order
 * of block numbers, with any strides. Borrows `grids`, keeps their data until ferry_xarray_destroy.
 * FERRY_EINVAL also: a grid's region is not the region of its block with ghosts. [app thread |
 * never blocks] */
FERRY_API FERRY_MUST_USE int ferry_xarray_create_over(ferry *f, const ferry_floorplan *blocks,
                                                      size_t element_bytes, ferry_point ghosts,
                                                      const ferry_grid *grids, ferry_xarray **out);

/* Gives each block a new owner and moves the grids, with ghost cells. Movers bound to `x` stay
 * valid (docs/mover.md). Collective. Borrows `owners`: one per entry of x->blocks, the same on
 * every rank (of a share: for its own blocks). FERRY_EINVAL: an owner is no rank, the grids are the
 * caller's, or the blocks are objects. FERRY_ESTATE: a mover of `x` is in flight. FERRY_ENOMEM,
 * FERRY_EPEER. After an error `x` is as before on every rank. A mover that cannot follow is no
 * error here: it fails from its next start on. [app thread, not in handlers | polls | may block]
 * kelp-data-mover.txt 5. */
FERRY_API FERRY_MUST_USE int ferry_xarray_remap(ferry_xarray *x, const int32_t *owners);

/* Frees this rank's part. No mover may be bound to it, and no set of blocks may contain it. NULL is
 * ignored. [app thread | never blocks] */
FERRY_API void ferry_xarray_destroy(ferry_xarray *x);

/* The grid of a block, or NULL if the block is not here. Lends until ferry_xarray_destroy or
 * ferry_xarray_remap. [app thread, handlers | never blocks] kelp-data-mover.txt 2 (presence). */
FERRY_API ferry_grid *ferry_xarray_grid(const ferry_xarray *x, int32_t block);

/* Movers. */

typedef struct ferry_mover ferry_mover;

/* How a mover moves. */
typedef struct ferry_mover_options {
    size_t size; /* sizeof(ferry_mover_options) */
    ferry_operation operation;
    bool ordered; /* combine in one fixed order, whatever the timing and the number of ranks: by
                     target block, place and source of the copies; of ghosts by index: own pairs,
                     then those of the other ranks by number. Without it the last bits of
                     floating-point sums may differ from run to run */
    bool check; /* safety mode: a mover that copies also checks for overlaps (ferry_plan_check); one
                   that combines may have them. If the bind fails on one rank, it fails on all. The
                   same value on every rank */
    bool messages; /* use messages even where memory is shared. The same value on ranks that share
                      copies */
    bool deferred; /* start copies nothing but small links on one node; polls, wait, or the thread
                      of ferry_background_begin copy the rest */
    size_t packet_bytes; /* about how many bytes a message has at most; 0: one message per pair of
                            ranks */
} ferry_mover_options;

#define FERRY_MOVER_OPTIONS_DEFAULTS                                                               \
    {                                                                                              \
        sizeof(ferry_mover_options), {FERRY_REPLACE, FERRY_DOUBLE, NULL, NULL}, false, false,      \
            false, false, 0                                                                        \
    }

/* Binds `plan` to `source` and `target`, which may be the same. Every rank binds the same movers in
 * the same order. It waits only for ranks with which it has copies in common. Borrows `plan` and
 * `options` (NULL: defaults). Keeps the xarrays until ferry_mover_free. Gives `*out`. FERRY_EINVAL:
 * an entry is wrong, elements do not fit, or the plans of two ranks differ in common copies.
 * FERRY_EPEER: a rank that it needs is dead. FERRY_ENOMEM. docs/mover.md says which other ranks
 * fail, and when. [app thread, not in handlers | polls | may block] kelp-data-mover.txt 2
 * (Mover). */
FERRY_API FERRY_MUST_USE int ferry_mover_bind(ferry *f, const ferry_plan *plan,
                                              ferry_xarray *source, ferry_xarray *target,
                                              const ferry_mover_options *options,
                                              ferry_mover **out);

/* An element of this rank that stands for an element of rank `owner`, which may be this rank.
 * `local` is its index here, `remote` the index of the original there. */
typedef struct ferry_ghost {
    int64_t local, remote;
    int32_t owner;
} ferry_ghost;

/* The ghosts of one rank, and the direction in which values move: from the originals to the ghosts
 * or, with `back`, from the ghosts to the originals, where they are combined. */
typedef struct ferry_ghosts {
    const ferry_ghost *items;
    size_t count;
    bool back;
} ferry_ghosts;

/* Binds a halo over indices, for unstructured meshes: each rank says which of its elements stand
 * for which elements of other ranks. `source` and `target` are grids of this rank with one
 * dimension, and may be the same. Collective; otherwise as ferry_mover_bind. Borrows `ghosts`,
 * `options` and the grids, keeps the grids' data until ferry_mover_free. FERRY_EINVAL: an index
 * outside the grids' regions, or an owner that is no rank. [app thread, not in handlers | polls |
 * may block] kelp-data-mover.txt 5. */
FERRY_API FERRY_MUST_USE int ferry_mover_bind_ghosts(ferry *f, const ferry_ghosts *ghosts,
                                                     const ferry_grid *source,
                                                     const ferry_grid *target,
                                                     const ferry_mover_options *options,
                                                     ferry_mover **out);

/* Starts a movement. Until its end the program must not write what the plan reads, nor read or
 * write what it writes. Movers without common data may be in flight together. With `track` it is an
 * operation that ends when ferry_mover_wait would return. If that operation is cancelled or times
 * out, the movement goes on: use ferry_mover_wait or ferry_mover_test to learn its end.
 * FERRY_ESTATE: it is in flight already, or blocks of its xarrays may be elsewhere
 * (ferry_blocks_send): the message names one that is. FERRY_EPEER: a neighbour died. [app thread |
 * never blocks] kelp-data-mover.txt 2 (start). */
FERRY_API FERRY_MUST_USE int ferry_mover_start(ferry_mover *mover, const ferry_track *track);

/* Returns when all data for this rank have arrived and all data of this rank have been taken. If
 * nothing was started, it returns immediately. FERRY_EPEER: a rank that the mover connects with
 * this one, directly or over others, has died, or has freed the mover without this movement. The
 * mover is lost on all these ranks: the targets are undefined, and it can only be freed. [app
 * thread, not in handlers | polls | may block] kelp-data-mover.txt 2 (wait). */
FERRY_API FERRY_MUST_USE int ferry_mover_wait(ferry_mover *mover);

/* As ferry_mover_wait, but if that would wait, it does what can be done now and returns
 * FERRY_EAGAIN. [app thread, handlers | polls outside handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_mover_test(ferry_mover *mover);

/* Frees a mover that is not in flight here. Each rank frees its own and waits for no other. NULL is
 * ignored. FERRY_ESTATE: it is in flight. [app thread, not in handlers | polls | never blocks] */
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

/* Writes the account of `mover` to `*out`, which begins as FERRY_MOVER_STATS_DEFAULTS. If its size
 * is smaller than that of the struct, the call writes only so many bytes. FERRY_EINVAL: `out` is
 * NULL, or its size is not set; nothing was written. [app thread | never blocks] */
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

/* Writes at most `capacity` pairs to `out`: first what `mover` moves to this rank, then what it
 * moves from it, each in the order of the other ranks, beginning after this one. Returns how many
 * pairs there are. [app thread | never blocks] */
FERRY_API size_t ferry_mover_pairs_get(const ferry_mover *mover, ferry_mover_pair *out,
                                       size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
