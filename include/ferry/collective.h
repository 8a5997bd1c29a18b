/* Collective: calls that all members make together, or all ranks of a group (group.h).
 *
 * The short forms are for all members. ferry_collective_run and ferry_collective_start take groups.
 * Every rank makes the same calls in the same order and form (waiting or started), with the
 * same root, type, reduction and size.
 * A rank of several groups makes their waiting calls in an order that fits all of them.
 * Started calls run on in polls; their buffers are kept until they end.
 * Results are the same bits in every run with as many ranks.
 * Errors as core.h says of collectives.
 */
#ifndef FERRY_COLLECTIVE_H
#define FERRY_COLLECTIVE_H

#include <ferry/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which collective. */
typedef enum ferry_collective_kind {
    FERRY_BARRIER,
    FERRY_BROADCAST, /* `out` of the root to `out` of all */
    FERRY_ALLREDUCE, /* `in` of all ranks, combined, to `out` of all */
    FERRY_REDUCE,    /* likewise, to `out` of the root alone; others' `out` may be NULL */
    FERRY_SCAN,      /* `in` of all ranks below this one, combined, to `out`; rank 0's is left */
    FERRY_GATHER,    /* `in` of all ranks, in their order, to `out` of the root */
    FERRY_ALLGATHER, /* likewise, to `out` of all */
    FERRY_SCAN_INCLUSIVE, /* as FERRY_SCAN, with this rank's `in` as the last */
    FERRY_SCATTER,        /* of `in` of the root, piece i to `out` of place i */
    FERRY_ALLTOALL, /* piece i of `in` to place i; its piece for this rank to piece i of `out` */
    FERRY_REDUCE_SCATTER, /* `in` of all, combined by place, piece i of the result to place i */
    FERRY_GATHERV,        /* as FERRY_GATHER, with pieces of any size: see `out_counts` */
    FERRY_ALLGATHERV,
    FERRY_SCATTERV, /* see `in_counts` */
    FERRY_ALLTOALLV,
} ferry_collective_kind;

/* Combines `count` values, at least one: into[i] = low[i] (operation) high[i], where `low` comes
 * from lower ranks than `high`. `into` may be either of them. The operation must be associative; it
 * need not be commutative. May call nothing of Ferry's. */
typedef void ferry_combine_fn(void *arg, void *into, const void *low, const void *high,
                              size_t count);

/* A collective: its kind, and how many values it works on. Buffers of ranks that have no part in
 * them may be NULL. */
typedef struct ferry_collective {
    size_t size; /* sizeof(ferry_collective) */
    ferry_collective_kind kind;
    int root;
    const void *in; /* may be `out`, except where pieces are moved */
    void *out;
    size_t count;              /* of values: of each piece, or of this rank's own piece */
    ferry_type type;           /* of a value */
    ferry_reduction reduction; /* of reductions and scans */
    size_t value_bytes;        /* not 0: values are of this size, and `type` says nothing */
    ferry_combine_fn *combine; /* not NULL: the operation, and `reduction` says nothing */
    void *combine_arg;
    ferry_group *group; /* who makes the call; NULL: all members */
    /* By place: how many values each piece of `in` and of `out` has, and at which value it begins
     * (NULL: after the piece before). For SCATTERV `in` at the root, for GATHERV `out` at the root,
     * for ALLGATHERV `out`, the same on all, for ALLTOALLV both. For REDUCE_SCATTER `in`, the same
     * on all, or NULL: `count` each. `count` is this rank's own piece, except for ALLTOALLV. */
    const size_t *in_counts, *in_offsets, *out_counts, *out_offsets;
} ferry_collective;

#define FERRY_COLLECTIVE_DEFAULTS                                                                  \
    {                                                                                              \
        sizeof(ferry_collective), FERRY_BARRIER, 0, NULL, NULL, 0, FERRY_INT32, FERRY_SUM, 0,      \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL                                               \
    }

/* Does `what` and returns when this rank's part in it is done. Borrows all. Errors as
 * ferry_allreduce. FERRY_EPEER: a rank of the group has died or left, even when the job goes on
 * without it. FERRY_EINVAL: ranks disagree; the message names two of them, and what each of them
 * calls. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_collective_run(ferry *f, const ferry_collective *what);

/* Starts `what`: returns at once, keeps its buffers until `track` reports the end of this rank's
 * part. Borrows `what` itself. Cancelled or timed out on one rank, it fails with FERRY_ECANCELED on
 * all others that have not done their part. [app thread, not in handlers | never blocks | does not
 * poll] */
FERRY_API FERRY_MUST_USE int ferry_collective_start(ferry *f, const ferry_collective *what,
                                                    const ferry_track *track);

/* Combines as ferry_allreduce, into `out` of `root` alone. Errors as ferry_allreduce. [app thread,
 * not in handlers | polls | may block] */
FERRY_API int ferry_reduce(ferry *f, int root, ferry_type type, ferry_reduction reduction,
                           const void *in, void *out, size_t count);

/* Combines `in` of all ranks below this one into `out`; rank 0's `out` is left as it was. Errors as
 * ferry_allreduce. [app
 * thread, not in handlers | polls | may block] */
FERRY_API int ferry_scan(ferry *f, ferry_type type, ferry_reduction reduction, const void *in,
                         void *out, size_t count);

/* As ferry_scan, with this rank's `in` as the last. [app thread, not in handlers | polls | may
 * block]
 */
FERRY_API int ferry_scan_inclusive(ferry *f, ferry_type type, ferry_reduction reduction,
                                   const void *in, void *out, size_t count);

/* Copies `size_bytes` at `in` of each rank, in the order of ranks, to `out` of `root`, or of all.
 * Errors as ferry_allreduce. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_gather(ferry *f, int root, const void *in, size_t size_bytes, void *out);
FERRY_API int ferry_allgather(ferry *f, const void *in, size_t size_bytes, void *out);

/* Copies piece i of `in` of `root` to `out` of place i; each has `size_bytes`. `in` of others may
 * be NULL. Errors as ferry_allreduce. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_scatter(ferry *f, int root, const void *in, size_t size_bytes, void *out);

/* Copies piece i of `in` to place i, for every i, and piece i of `out` from there; each has
 * `size_bytes`. `in` and `out` do not overlap. Errors as ferry_allreduce. [app thread, not in
 * handlers | polls | may block] */
FERRY_API int ferry_alltoall(ferry *f, const void *in, size_t size_bytes, void *out);

/* As ferry_gather, ferry_allgather, ferry_scatter and ferry_alltoall, with pieces of different
 * sizes: `sizes` (`in_sizes`, `out_sizes`) has the bytes of each piece by place; pieces lie one
 * after the other. `size_bytes` is this rank's own piece. `sizes` of ferry_gatherv and
 * ferry_scatterv is read at the root alone. FERRY_EINVAL: two ranks give a piece different sizes.
 * [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_gatherv(ferry *f, int root, const void *in, size_t size_bytes, void *out,
                            const size_t *sizes);
FERRY_API int ferry_allgatherv(ferry *f, const void *in, size_t size_bytes, void *out,
                               const size_t *sizes);
FERRY_API int ferry_scatterv(ferry *f, int root, const void *in, const size_t *sizes, void *out,
                             size_t size_bytes);
FERRY_API int ferry_alltoallv(ferry *f, const void *in, const size_t *in_sizes, void *out,
                              const size_t *out_sizes);

/* Combines `in` of all ranks, which has `count` values for each place, in the order of places:
 * `out` gets the `count` values of this rank's place. Errors as ferry_allreduce. [app thread, not
 * in handlers | polls | may block] */
FERRY_API int ferry_reduce_scatter(ferry *f, ferry_type type, ferry_reduction reduction,
                                   const void *in, void *out, size_t count);

#ifdef __cplusplus
}
#endif
#endif
