/* Collective: calls that all members make together, or all ranks of a group (group.h).
 *
 * The short forms are for all members. ferry_collective_run and ferry_collective_start take groups.
 * Every rank makes the same calls in the same order and form (waiting or started), with the same
 * root, type, reduction and size. Ranks that are in several groups make the waiting calls of these
 * groups in one common order. Started calls go on in polls and keep their buffers until they end.
 * Results have the same bits in every run with the same number of ranks. Errors are those of the
 * collectives in core.h. */
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
    FERRY_REDUCE,    /* likewise, to `out` of the root alone; `out` of the others may be NULL */
    FERRY_SCAN,   /* `in` of all ranks below this one, combined, to `out`; on rank 0 `out` does not
                     change */
    FERRY_GATHER, /* `in` of all ranks, in their order, to `out` of the root */
    FERRY_ALLGATHER,      /* likewise, to `out` of all */
    FERRY_SCAN_INCLUSIVE, /* as FERRY_SCAN, and this rank's `in` too */
    FERRY_SCATTER,        /* piece i of the root's `in` to `out` of place i */
    FERRY_ALLTOALL, /* piece i of `in` to place i, which stores it as the piece of its source in
                       `out` */
    FERRY_REDUCE_SCATTER, /* `in` of all, combined by place, piece i of the result to place i */
    FERRY_GATHERV,        /* as FERRY_GATHER, with pieces of any size: see `out_counts` */
    FERRY_ALLGATHERV,
    FERRY_SCATTERV, /* see `in_counts` */
    FERRY_ALLTOALLV,
} ferry_collective_kind;

/* Combines `count` values, at least one: into[i] = low[i] (operation) high[i], where `low` comes
 * from lower ranks than `high`. `into` may be `low` or `high`. The operation must be associative;
 * it need not be commutative. It makes no calls to Ferry. */
typedef void ferry_combine_fn(void *arg, void *into, const void *low, const void *high,
                              size_t count);

/* The arguments of a collective. A buffer that the kind does not use on this rank may be NULL. */
typedef struct ferry_collective {
    size_t size; /* sizeof(ferry_collective) */
    ferry_collective_kind kind;
    int root;
    const void *in; /* may be `out`, except where pieces are moved */
    void *out;
    size_t count;              /* number of values: of each piece, or of this rank's own piece */
    ferry_type type;           /* of a value; FERRY_INT32 by default */
    ferry_reduction reduction; /* of reductions and scans; FERRY_SUM by default */
    size_t value_bytes;        /* not 0: values have this size, and `type` is ignored */
    ferry_combine_fn *combine; /* not NULL: the operation, and `reduction` is ignored */
    void *combine_arg;
    ferry_group *group; /* the ranks that make the call; NULL: all members */
    /* By place: how many values each piece of `in` and of `out` has, and at which value it begins
     * (NULL: directly after the piece before). SCATTERV: of `in` at the root. GATHERV: of `out` at
     * the root. ALLGATHERV: of `out`, the same on all ranks. ALLTOALLV: of both. REDUCE_SCATTER: of
     * `in`, the same on all ranks; NULL: `count` values each. Except for ALLTOALLV, `count` is this
     * rank's own piece. */
    const size_t *in_counts, *in_offsets, *out_counts, *out_offsets;
} ferry_collective;

#define FERRY_COLLECTIVE_DEFAULTS                                                                  \
    {                                                                                              \
        sizeof(ferry_collective), FERRY_BARRIER, 0, NULL, NULL, 0, FERRY_INT32, FERRY_SUM, 0,      \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL                                               \
    }

/* Performs `what` and returns when this rank's part is done. Borrows all. Errors as
 * ferry_allreduce. FERRY_EPEER: a rank of the group has died or left, even when the job goes on
 * without it. FERRY_EINVAL: ranks make different calls; the message names two of them and their
 * calls. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_collective_run(ferry *f, const ferry_collective *what);

/* Starts `what` and returns immediately. Keeps the buffers until `track` reports the end of this
 * rank's part; borrows `what` itself. If it is cancelled or times out on one rank, it fails with
 * FERRY_ECANCELED on all others that have not done their part. [app thread, not in handlers | never
 * blocks | does not poll] */
FERRY_API FERRY_MUST_USE int ferry_collective_start(ferry *f, const ferry_collective *what,
                                                    const ferry_track *track);

/* As ferry_allreduce, but the result goes to `out` of `root` alone. Errors as ferry_allreduce. [app
 * thread, not in handlers | polls | may block] */
FERRY_API int ferry_reduce(ferry *f, int root, ferry_type type, ferry_reduction reduction,
                           const void *in, void *out, size_t count);

/* Combines `in` of all ranks below this one into `out`. On rank 0 `out` does not change. Errors as
 * ferry_allreduce. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_scan(ferry *f, ferry_type type, ferry_reduction reduction, const void *in,
                         void *out, size_t count);

/* As ferry_scan, and combines this rank's `in` too, as the last. Errors as ferry_allreduce. [app
 * thread, not in handlers | polls | may block] */
FERRY_API int ferry_scan_inclusive(ferry *f, ferry_type type, ferry_reduction reduction,
                                   const void *in, void *out, size_t count);

/* Copies `size_bytes` at `in` of each rank, in the order of ranks, to `out` of `root`, or of all.
 * Errors as ferry_allreduce. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_gather(ferry *f, int root, const void *in, size_t size_bytes, void *out);
FERRY_API int ferry_allgather(ferry *f, const void *in, size_t size_bytes, void *out);

/* Copies piece i of `in` of `root` to `out` of the rank at place i; each piece has `size_bytes`.
 * `in` of others may be NULL. Errors as ferry_allreduce. [app thread, not in handlers | polls | may
 * block] */
FERRY_API int ferry_scatter(ferry *f, int root, const void *in, size_t size_bytes, void *out);

/* Sends piece i of `in` to place i, and receives piece i of `out` from there, for every i; each
 * piece has `size_bytes`. `in` and `out` do not overlap. Errors as ferry_allreduce. [app thread,
 * not in handlers | polls | may block] */
FERRY_API int ferry_alltoall(ferry *f, const void *in, size_t size_bytes, void *out);

/* As ferry_gather, ferry_allgather, ferry_scatter and ferry_alltoall, with pieces of different
 * sizes: `sizes` (`in_sizes`, `out_sizes`) gives the bytes of each piece, by place. Pieces lie one
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

/* Combines the `in` of all ranks, in the order of places, and stores the `count` values of this
 * rank's place in `out`. `in` has `count` values for each place. Errors as ferry_allreduce. [app
 * thread, not in handlers | polls | may block] */
FERRY_API int ferry_reduce_scatter(ferry *f, ferry_type type, ferry_reduction reduction,
                                   const void *in, void *out, size_t count);

#ifdef __cplusplus
}
#endif
#endif
