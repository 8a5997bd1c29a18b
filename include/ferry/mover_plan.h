/* Floor plans and motion plans: who owns which block, and what is copied where.
 *
 * Both are plain data that a program may read and edit. A floor plan is a table of regions with
 * owners. Every rank has the same table or, in jobs with many blocks, its share: the blocks near
 * its own. A motion plan is a list of copies between the blocks of two floor plans, which may be
 * the same. A rank keeps only the copies that touch its own blocks. Both ranks of a copy must have
 * it: if every rank calls the builders with the same arguments, they do. kelp-data-mover.txt 2. */
#ifndef FERRY_MOVER_PLAN_H
#define FERRY_MOVER_PLAN_H

#include <stdio.h>

#include <ferry/mover_region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Floor plans. Blocks are numbered from 0. [any thread, one at a time per plan | never blocks]
 * kelp-data-mover.txt Figure 3. */

typedef struct ferry_block {
    ferry_region region;
    int32_t owner; /* rank */
} ferry_block;

/* A decomposition. For an empty one set `dims` and leave the rest zero. ferry_floorplan_fini frees
 * it. A whole plan has the same blocks on every rank, numbered in their order. A share
 * (ferry_floorplan_share) has only the blocks near this rank's. */
typedef struct ferry_floorplan {
    int32_t dims;
    ferry_block *blocks;
    size_t count, capacity;
    int32_t *numbers; /* of a share: the number of each block, ascending; NULL in a whole plan */
    size_t total;     /* of a share: number of blocks of all ranks */
    int32_t rank;     /* of a share: the rank that has it */
} ferry_floorplan;

/* The block of that number. NULL: there is none or, in a share, it is not near. Lends until the
 * plan changes. */
FERRY_API const ferry_block *ferry_floorplan_block(const ferry_floorplan *plan, int32_t number);

/* Frees the blocks. The plan is then empty and has the same dimensions. */
FERRY_API void ferry_floorplan_fini(ferry_floorplan *plan);

/* Appends a block. FERRY_EINVAL: the region has other dimensions, or the plan more than 2^31 - 1
 * blocks. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_add(ferry_floorplan *plan, ferry_region region,
                                                 int owner);

/* Makes `*out` a copy of `plan`. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_copy(const ferry_floorplan *plan,
                                                  ferry_floorplan *out);

/* Into how many parts to cut each dimension of `domain`, so that there are `count` parts with the
 * least surface. Each number is at least 1 and, if possible, at most the number of indices of its
 * dimension. A `count` below 1 counts as 1. */
FERRY_API ferry_point ferry_floorplan_parts(ferry_region domain, int count);

/* Cuts `domain` into `parts` parts per dimension, as equal as possible, the last dimension fastest,
 * and makes `*out` of them. Every block belongs to rank 0 until a ferry_floorplan_map_ function
 * gives it another owner. Parts without an index are left out. FERRY_EINVAL: the domain is empty,
 * or there is no part or more than 2^31 - 1. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_cut(ferry_region domain, ferry_point parts,
                                                 ferry_floorplan *out);

/* Block number `number` of the plan that ferry_floorplan_cut would make, if no dimension of
 * `domain` has fewer indices than parts. In a job with many blocks each rank makes only its own
 * blocks by it. Empty: there is no such part. */
FERRY_API ferry_region ferry_floorplan_part(ferry_region domain, ferry_point parts, int64_t number);

/* As ferry_floorplan_cut, into tiles with `extents`. Tiles at the high ends may be smaller. Errors
 * as ferry_floorplan_cut. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_tile(ferry_region domain, ferry_point extents,
                                                  ferry_floorplan *out);

/* Cuts `domain` into `count` boxes of nearly equal weight, by recursive bisection across the
 * longest side, and makes `*out` of them. Box i belongs to rank i. `weight` returns the weight of a
 * box, at least 0; NULL: its size. FERRY_EINVAL: there are fewer indices than boxes, or no boxes.
 * FERRY_ENOMEM. */
typedef double ferry_weight_fn(void *arg, ferry_region region);
FERRY_API FERRY_MUST_USE int ferry_floorplan_bisect(ferry_region domain, int count,
                                                    ferry_weight_fn *weight, void *arg,
                                                    ferry_floorplan *out);

/* Makes `*out` this rank's share of a floor plan that no rank has whole. It contains the blocks of
 * `own`, all owned by this rank, and the blocks of other ranks that intersect a region of `near`.
 * docs/mover.md says what a share is for. Blocks are numbered rank by rank; blocks of a share keep
 * their numbers. Collective; borrows both. FERRY_EINVAL: blocks or regions have other dimensions,
 * blocks are empty, only some ranks pass shares, over 2^31 - 1 blocks. FERRY_ENOMEM, FERRY_EPEER.
 * An error is one on all ranks. [app thread, not in handlers | polls | may block]
 * kelp-data-mover.txt 5. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_share(ferry *f, const ferry_floorplan *own,
                                                   const ferry_regions *near, ferry_floorplan *out);

/* Owners, of whole plans. Each function sets the owner of every block. FERRY_EINVAL: there is no
 * rank, or the plan is a share; nothing changed. A program may also write the owners itself. [any
 * thread, one at a time per plan | never blocks] kelp-data-mover.txt 2 (Map). */

/* Gives each rank consecutive blocks, in numbers as equal as possible. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_map_block(ferry_floorplan *plan, int ranks);

/* Gives `chunk` consecutive blocks to each rank in turn. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_map_cyclic(ferry_floorplan *plan, int ranks,
                                                        int chunk);

/* Gives block (i, j, ...) of `parts` to the rank at (i mod p, j mod q, ...) of a grid of ranks, as
 * dense linear algebra needs it. For plans of ferry_floorplan_cut or ferry_floorplan_tile.
 * FERRY_EINVAL also: the product of `parts` is not the number of blocks, or that of `ranks` is over
 * 2^31 - 1. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_map_grid(ferry_floorplan *plan, ferry_point parts,
                                                      ferry_point ranks);

/* Bisects the blocks' centres recursively: each rank gets blocks that are close together and have a
 * nearly equal sum of `weights` (one per block; NULL: sizes). Weights below 0 and NaN count as 0.
 * FERRY_EINVAL also: their sum is infinite. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_map_bisect(ferry_floorplan *plan, int ranks,
                                                        const double *weights);

/* Gives each rank a consecutive piece of a Hilbert curve through the blocks' centres; otherwise as
 * ferry_floorplan_map_bisect. */
FERRY_API FERRY_MUST_USE int ferry_floorplan_map_curve(ferry_floorplan *plan, int ranks,
                                                       const double *weights);

/* Checks. */

/* Rules that ferry_floorplan_check checks besides dimensions, empty regions and owners. */
typedef enum ferry_floorplan_rule {
    FERRY_FLOORPLAN_DISJOINT = 1, /* no two blocks overlap */
    FERRY_FLOORPLAN_INSIDE = 2,   /* every block lies in the domain */
    FERRY_FLOORPLAN_COVER = 4,    /* every point of the domain is in a block */
} ferry_floorplan_rule;

/* Checks a plan for `ranks` ranks against `rules`, a sum of the constants above.
 * FERRY_FLOORPLAN_INSIDE and FERRY_FLOORPLAN_COVER need a `domain` of the plan's dimensions;
 * without them it may be empty. FERRY_EINVAL: ferry_error_message(f) names the blocks and regions;
 * `f` may be NULL. FERRY_ENOMEM. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_floorplan_check(ferry *f, const ferry_floorplan *plan, int ranks,
                                                   ferry_region domain, int rules);

/* Motion plans. [any thread, one at a time per plan | never blocks] kelp-data-mover.txt Table 1. */

/* How the points of a copy's two regions correspond, besides the order of axes. */
typedef enum ferry_relation {
    FERRY_PLAIN,  /* one to one; regions of equal size but different shapes: in the order of each */
    FERRY_SAMPLE, /* target point i gets source point ratio * i, counted from the low corners */
    FERRY_REFINE, /* the target is finer: each of its points gets the source point that contains it
                   */
    FERRY_COARSEN, /* the source is finer: each of its points goes to the target point that contains
                      it */
} ferry_relation;

/* One entry of a motion plan: copies region `from` of block `source` to region `to` of block
 * `target`. Axis d of `to` runs along axis[d] of `from`. In FERRY_REFINE and FERRY_COARSEN the
 * coarse cells are aligned to multiples of the ratio in the finer region's coordinates, and the low
 * corners correspond. Ratios are given per axis of `to`; in FERRY_PLAIN each is 1. */
typedef struct ferry_plan_entry {
    int32_t source, target;
    ferry_region from, to;
    int32_t ratio[FERRY_DIMS_MAX];
    int8_t axis[FERRY_DIMS_MAX];
    uint8_t relation; /* ferry_relation */
} ferry_plan_entry;

/* A list of entries, numbered from 0. All zero is an empty plan; ferry_plan_fini frees it. An entry
 * takes 16 bytes and 16 per dimension. Extents, axes and ratios that many entries have in common
 * are stored once. The program reads and changes entries by ferry_plan_at and ferry_plan_set, and
 * may lower `count`. */
typedef struct ferry_plan {
    size_t count, capacity; /* number of entries, and of those for which there is room */
    size_t entry_bytes;     /* size of an entry */
    unsigned char *entries; /* this and the rest belong to the library */
    struct ferry_plan_shapes *shapes;
} ferry_plan;

/* Frees the entries. The plan is then empty. */
FERRY_API void ferry_plan_fini(ferry_plan *plan);

/* Entry number `index`. If there is none, the result has blocks -1 and regions without
 * dimensions. */
FERRY_API ferry_plan_entry ferry_plan_at(const ferry_plan *plan, size_t index);

/* Replaces entry number `index` by `copy`. FERRY_EINVAL: there is no such entry. FERRY_ENOMEM:
 * nothing changed. */
FERRY_API FERRY_MUST_USE int ferry_plan_set(ferry_plan *plan, size_t index,
                                            const ferry_plan_entry *copy);

/* Appends an entry of any kind, unchecked. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_plan_add(ferry_plan *plan, const ferry_plan_entry *copy);

/* Appends a copy, one to one, from region `from` of block `source` to region `to` of block
 * `target`. If both regions are empty, appends nothing. FERRY_EINVAL: the sizes differ.
 * FERRY_ENOMEM. kelp-data-mover.txt 2 (copy). */
FERRY_API FERRY_MUST_USE int ferry_plan_copy(ferry_plan *plan, int32_t target, ferry_region to,
                                             int32_t source, ferry_region from);

/* Appends all of `other`. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_plan_append(ferry_plan *plan, const ferry_plan *other);

/* Keeps the entries for which `keep` returns true, and removes the others. */
typedef bool ferry_plan_keep_fn(void *arg, const ferry_plan_entry *copy);
FERRY_API void ferry_plan_filter(ferry_plan *plan, ferry_plan_keep_fn *keep, void *arg);

/* Swaps source and target of every entry: a plan that filled ghost cells then sends them back. An
 * entry of FERRY_SAMPLE with a ratio above 1 has no reverse: ferry_plan_check refuses the
 * result. */
FERRY_API void ferry_plan_reverse(ferry_plan *plan);

/* Appends to `out` the copies that do `first` and then `second` in one step: each target point of
 * `second` gets the source point of `first` that it comes from. FERRY_EINVAL: an entry is not one
 * to one, with axes in order and equal shapes. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_plan_compose(const ferry_plan *first, const ferry_plan *second,
                                                ferry_plan *out);

/* Ghost cells: which cells around the blocks a halo fills. */
typedef struct ferry_halo {
    size_t size;           /* sizeof(ferry_halo) */
    ferry_point low, high; /* width below and above the block, per dimension */
    bool faces_only;       /* leaves out edges and corners: cells that are outside in two or more
                              dimensions */
    ferry_region domain;   /* where periodic dimensions wrap around; unused if none is periodic */
    bool periodic[FERRY_DIMS_MAX];
} ferry_halo;

#define FERRY_HALO_DEFAULTS                                                                        \
    {                                                                                              \
        sizeof(ferry_halo), {{0}}, {{0}}, false, {0, {{0}}, {{0}}},                                \
        {                                                                                          \
            false                                                                                  \
        }                                                                                          \
    }

/* Appends the copies that fill the ghost cells of every block of `blocks` from other blocks; with
 * `rank` not -1 only copies that touch a block of `rank`. A point inside a block is no ghost of it.
 * Time grows nearly linearly with copies and blocks. FERRY_EINVAL: negative widths, other
 * dimensions, a periodic domain that is empty or fits into the width over 64 times, a block that
 * reaches into over 65,536 images of it, coordinates beyond half the limit.
 * ferry_error_message(NULL) names block, width and period. FERRY_ENOMEM. kelp-data-mover.txt Figure
 * 4. */
FERRY_API FERRY_MUST_USE int ferry_plan_halo(ferry_plan *plan, const ferry_floorplan *blocks,
                                             const ferry_halo *halo, int rank);

/* Appends to `near` the regions that a halo of the blocks `own` (of a share: its rank's own blocks)
 * reads or fills, for ferry_floorplan_share. Errors as ferry_plan_halo. */
FERRY_API FERRY_MUST_USE int ferry_halo_near(const ferry_floorplan *own, const ferry_halo *halo,
                                             ferry_regions *near);

/* How points of one floor plan correspond to those of another. */
typedef struct ferry_intersection {
    size_t size;                   /* sizeof(ferry_intersection) */
    bool permuted;                 /* whether `axis` is used */
    int8_t axis[FERRY_DIMS_MAX];   /* axis d of the target is axis[d] of the source */
    ferry_point shift;             /* added to the target's point, before the ratio */
    ferry_relation relation;       /* FERRY_PLAIN by default */
    int32_t ratio[FERRY_DIMS_MAX]; /* fine points per coarse point, per axis of the target */
    ferry_point low, high;         /* how many ghost cells of the target's blocks to fill too */
} ferry_intersection;

#define FERRY_INTERSECTION_DEFAULTS                                                                \
    {                                                                                              \
        sizeof(ferry_intersection), false, {0}, {{0}}, FERRY_PLAIN, {0}, {{0}},                    \
        {                                                                                          \
            {                                                                                      \
                0                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* Appends the copies from every block of `source` to every block of `target` that have points in
 * common, for redistribution and regridding. `intersection`, which may be NULL, adds transposes,
 * prolongation (FERRY_REFINE) and restriction: with FERRY_SAMPLE coarse point p gets fine point p x
 * ratio, with FERRY_COARSEN all its fine points, to be added. With `rank` not -1 only copies that
 * touch `rank`'s blocks. FERRY_EINVAL: wrong dimensions, axes or ratios, negative widths,
 * coordinates too near the limit; with FERRY_REFINE, a shift that is no multiple of the ratio.
 * FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_plan_intersect(ferry_plan *plan, const ferry_floorplan *source,
                                                  const ferry_floorplan *target,
                                                  const ferry_intersection *intersection, int rank);

/* How many points the copy moves. A point that is moved several times counts as often. */
FERRY_API uint64_t ferry_plan_entry_points(const ferry_plan_entry *copy);

/* The account of a plan between two ranks. */
typedef struct ferry_plan_pair {
    int32_t source, target; /* ranks */
    uint64_t copies, points;
} ferry_plan_pair;

/* The account of a plan. */
typedef struct ferry_plan_stats {
    size_t size;                         /* sizeof(ferry_plan_stats) */
    uint64_t copies, points;             /* all */
    uint64_t local_copies, local_points; /* within one rank */
    ferry_plan_pair *pairs;              /* between ranks, by (source, target); free() it */
    size_t pair_count; /* also the number of messages of one movement, if all are aggregated */
} ferry_plan_stats;

#define FERRY_PLAN_STATS_DEFAULTS                                                                  \
    {                                                                                              \
        sizeof(ferry_plan_stats), 0, 0, 0, 0, NULL, 0                                              \
    }

/* Writes the account of a plan between two floor plans to `*out`, which begins as
 * FERRY_PLAN_STATS_DEFAULTS. Gives `out->pairs`, freed with free. FERRY_EINVAL: an entry names a
 * block that does not exist, or the size of `*out` is 0; nothing was written. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_plan_account(const ferry_plan *plan,
                                                const ferry_floorplan *source,
                                                const ferry_floorplan *target,
                                                ferry_plan_stats *out);

/* Writes one line per entry. FERRY_ESYSTEM: it could not be written. */
FERRY_API int ferry_plan_print(const ferry_plan *plan, FILE *out);

/* Checks every entry: blocks exist, regions lie inside their blocks grown by the ghost widths,
 * sizes and axes fit, and, with `disjoint`, no two entries write one point. FERRY_EINVAL:
 * ferry_error_message(f) names entry, block and regions; `f` may be NULL. FERRY_ENOMEM. [app thread
 * | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_plan_check(ferry *f, const ferry_plan *plan,
                                              const ferry_floorplan *source,
                                              ferry_point source_ghosts,
                                              const ferry_floorplan *target,
                                              ferry_point target_ghosts, bool disjoint);

#ifdef __cplusplus
}
#endif
#endif
