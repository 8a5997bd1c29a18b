/* The short forms of collectives, over all members. */
#include "core/collective.h"

/* A call over all members. All fields are set: a structure that is cleared first takes longer than
 * a small call may. */
static ferry_collective form(ferry_collective_kind kind, int root, const void *in, void *out,
                             size_t count, ferry_type type)
{
    return (ferry_collective){.size = sizeof(ferry_collective),
                              .kind = kind,
                              .root = root,
                              .in = in,
                              .out = out,
                              .count = count,
                              .type = type,
                              .reduction = FERRY_REPLACE,
                              .value_bytes = 0,
                              .combine = NULL,
                              .combine_arg = NULL,
                              .group = NULL,
                              .in_counts = NULL,
                              .in_offsets = NULL,
                              .out_counts = NULL,
                              .out_offsets = NULL};
}

/* Those that do not combine, of bytes. */
static int move_pieces(ferry *f, ferry_collective_kind kind, int root, const void *in,
                       const size_t *in_sizes, void *out, const size_t *out_sizes,
                       size_t size_bytes)
{
    ferry_collective what = form(kind, root, in, out, size_bytes, FERRY_BYTE);
    what.in_counts = in_sizes;
    what.out_counts = out_sizes;
    return fy_collective_call_own(f, &what);
}

static int move(ferry *f, ferry_collective_kind kind, int root, const void *in, void *out,
                size_t size_bytes)
{
    return move_pieces(f, kind, root, in, NULL, out, NULL, size_bytes);
}

int ferry_broadcast(ferry *f, int root, void *data, size_t size_bytes)
{
    return move(f, FERRY_BROADCAST, root, NULL, data, size_bytes);
}

int ferry_gather(ferry *f, int root, const void *in, size_t size_bytes, void *out)
{
    return move(f, FERRY_GATHER, root, in, out, size_bytes);
}

int ferry_allgather(ferry *f, const void *in, size_t size_bytes, void *out)
{
    return move(f, FERRY_ALLGATHER, 0, in, out, size_bytes);
}

int ferry_scatter(ferry *f, int root, const void *in, size_t size_bytes, void *out)
{
    return move(f, FERRY_SCATTER, root, in, out, size_bytes);
}

int ferry_alltoall(ferry *f, const void *in, size_t size_bytes, void *out)
{
    return move(f, FERRY_ALLTOALL, 0, in, out, size_bytes);
}

int ferry_gatherv(ferry *f, int root, const void *in, size_t size_bytes, void *out,
                  const size_t *sizes)
{
    return move_pieces(f, FERRY_GATHERV, root, in, NULL, out, sizes, size_bytes);
}

int ferry_allgatherv(ferry *f, const void *in, size_t size_bytes, void *out, const size_t *sizes)
{
    return move_pieces(f, FERRY_ALLGATHERV, 0, in, NULL, out, sizes, size_bytes);
}

int ferry_scatterv(ferry *f, int root, const void *in, const size_t *sizes, void *out,
                   size_t size_bytes)
{
    return move_pieces(f, FERRY_SCATTERV, root, in, sizes, out, NULL, size_bytes);
}

int ferry_alltoallv(ferry *f, const void *in, const size_t *in_sizes, void *out,
                    const size_t *out_sizes)
{
    return move_pieces(f, FERRY_ALLTOALLV, 0, in, in_sizes, out, out_sizes, 0);
}

static int reduce(ferry *f, ferry_collective_kind kind, int root, ferry_type type,
                  ferry_reduction reduction, const void *in, void *out, size_t count)
{
    ferry_collective what = form(kind, root, in, out, count, type);
    what.reduction = reduction;
    return fy_collective_call_own(f, &what);
}

int ferry_allreduce(ferry *f, ferry_type type, ferry_reduction reduction, const void *in, void *out,
                    size_t count)
{
    return reduce(f, FERRY_ALLREDUCE, 0, type, reduction, in, out, count);
}

int ferry_reduce(ferry *f, int root, ferry_type type, ferry_reduction reduction, const void *in,
                 void *out, size_t count)
{
    return reduce(f, FERRY_REDUCE, root, type, reduction, in, out, count);
}

int ferry_scan(ferry *f, ferry_type type, ferry_reduction reduction, const void *in, void *out,
               size_t count)
{
    return reduce(f, FERRY_SCAN, 0, type, reduction, in, out, count);
}

int ferry_scan_inclusive(ferry *f, ferry_type type, ferry_reduction reduction, const void *in,
                         void *out, size_t count)
{
    return reduce(f, FERRY_SCAN_INCLUSIVE, 0, type, reduction, in, out, count);
}

int ferry_reduce_scatter(ferry *f, ferry_type type, ferry_reduction reduction, const void *in,
                         void *out, size_t count)
{
    return reduce(f, FERRY_REDUCE_SCATTER, 0, type, reduction, in, out, count);
}
