/* Collective: calls that every rank makes, beside the common ones of core.h: reductions of other
 * kinds, prefixes, gathering, the program's own operations, and all of them without waiting.
 *
 * Every rank makes the same calls in the same order, each in the same form (waiting or started),
 * with the same root, type, reduction and size. Started ones run on in polls, any number at a time;
 * their buffers are kept until they end. Results are the same bits on every rank and in every run
 * with as many ranks. Errors as core.h says of collectives; a started one reports them by `track`.
 */
#ifndef FERRY_COLLECTIVE_H
#define FERRY_COLLECTIVE_H

#include <ferry/core.h>

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
    const void *in; /* may be `out`, except for gathers */
    void *out;
    size_t count;              /* of values, of each rank */
    ferry_type type;           /* of a value */
    ferry_reduction reduction; /* of reductions and scans */
    size_t value_bytes;        /* not 0: values are of this size, and `type` says nothing */
    ferry_combine_fn *combine; /* not NULL: the operation, and `reduction` says nothing */
    void *combine_arg;
} ferry_collective;

#define FERRY_COLLECTIVE_DEFAULTS                                                                  \
    {                                                                                              \
        sizeof(ferry_collective), FERRY_BARRIER, 0, NULL, NULL, 0, FERRY_INT32, FERRY_SUM, 0,      \
            NULL, NULL                                                                             \
    }

/* Does `what` and returns when this rank's part in it is done. Borrows all. Errors as
 * ferry_allreduce. [app thread, not in
 * handlers | polls | may block] */
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

/* Copies `size_bytes` at `in` of each rank, in the order of ranks, to `out` of `root`, or of all.
 * Errors as ferry_allreduce. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_gather(ferry *f, int root, const void *in, size_t size_bytes, void *out);
FERRY_API int ferry_allgather(ferry *f, const void *in, size_t size_bytes, void *out);

#ifdef __cplusplus
}
#endif
#endif
