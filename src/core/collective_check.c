/* The properties of each kind of collective, and the check of the program's calls. */
#include "core/collective.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/rank.h"
#include "core/reduce.h"

const fy_collective_kind fy_collective_kinds[] = {
    [FERRY_BARRIER] = {"ferry_barrier", 0},
    [FERRY_BROADCAST] = {"ferry_broadcast", FY_WRITES},
    [FERRY_ALLREDUCE] = {"ferry_allreduce", FY_READS | FY_WRITES | FY_COMBINES},
    [FERRY_REDUCE] = {"ferry_reduce", FY_READS | FY_WRITES_AT_ROOT | FY_COMBINES},
    [FERRY_SCAN] = {"ferry_scan", FY_READS | FY_WRITES | FY_COMBINES},
    [FERRY_GATHER] = {"ferry_gather", FY_READS | FY_WRITES_AT_ROOT},
    [FERRY_ALLGATHER] = {"ferry_allgather", FY_READS | FY_WRITES},
    [FERRY_SCAN_INCLUSIVE] = {"ferry_scan_inclusive", FY_READS | FY_WRITES | FY_COMBINES},
    [FERRY_SCATTER] = {"ferry_scatter", FY_READS_AT_ROOT | FY_WRITES},
    [FERRY_ALLTOALL] = {"ferry_alltoall", FY_READS | FY_WRITES},
    [FERRY_REDUCE_SCATTER] = {"ferry_reduce_scatter", FY_READS | FY_WRITES | FY_COMBINES},
    [FERRY_GATHERV] = {"ferry_gatherv", FY_READS | FY_WRITES_AT_ROOT | FY_VARIES},
    [FERRY_ALLGATHERV] = {"ferry_allgatherv", FY_READS | FY_WRITES},
    [FERRY_SCATTERV] = {"ferry_scatterv", FY_READS_AT_ROOT | FY_WRITES | FY_VARIES},
    [FERRY_ALLTOALLV] = {"ferry_alltoallv", FY_READS | FY_WRITES | FY_VARIES},
};

/* The name without "ferry_", as error texts about arguments begin. */
static const char *collective_name(const ferry_collective *what)
{
    return fy_collective_kinds[what->kind].name + sizeof("ferry_") - 1;
}

static uint8_t flags_of(const ferry_collective *what)
{
    return fy_collective_kinds[what->kind].flags;
}

static const fy_group *group_of(const ferry *f, const ferry_collective *what)
{
    return what->group != NULL ? what->group : f->collectives.group;
}

/* How many values the pieces of `in` or `out` have together, at most SIZE_MAX. */
static size_t add_up(const size_t *counts, int pieces, size_t count)
{
    size_t sum = 0;
    bool fits = counts != NULL || !__builtin_mul_overflow(count, (size_t)pieces, &sum);
    for (int i = 0; counts != NULL && i < pieces; i++)
        fits = !__builtin_add_overflow(sum, counts[i], &sum) && fits;
    return fits ? sum : SIZE_MAX;
}

/* One side of a call: `in` or `out`, with pieces of `counts`, or of `count` values. */
static int check_side(ferry *f, const ferry_collective *what, const void *at, const size_t *counts,
                      size_t value_bytes)
{
    size_t sum = add_up(counts, group_of(f, what)->size, what->count);
    bool many = sum > PTRDIFF_MAX / value_bytes;
    if (!many && (sum == 0 || at != NULL))
        return 0;
    return fy_fail(f, FERRY_EINVAL, "%s: %zu values %s", collective_name(what),
                   counts == NULL ? what->count : sum, many ? "are too many" : "at NULL");
}

static int check_sides(ferry *f, const ferry_collective *what, size_t value_bytes)
{
    bool at_root = f->head.rank == what->root;
    int self = group_of(f, what)->self;
    bool reads = flags_of(what) & (at_root ? FY_READS | FY_READS_AT_ROOT : FY_READS);
    bool writes = flags_of(what) & (at_root ? FY_WRITES | FY_WRITES_AT_ROOT : FY_WRITES);
    ferry_collective_kind kind = what->kind;
    bool in_counts = kind == FERRY_ALLTOALLV || (kind == FERRY_SCATTERV && at_root) ||
                     (kind == FERRY_REDUCE_SCATTER && what->in_counts != NULL);
    bool out_counts =
        kind == FERRY_ALLTOALLV || kind == FERRY_ALLGATHERV || (kind == FERRY_GATHERV && at_root);
    if ((in_counts && what->in_counts == NULL) || (out_counts && what->out_counts == NULL))
        return fy_fail(f, FERRY_EINVAL, "%s: %s_counts are missing", collective_name(what),
                       in_counts && what->in_counts == NULL ? "in" : "out");
    const size_t *own = out_counts ? what->out_counts : what->in_counts;
    const size_t *expected = in_counts && out_counts ? &what->in_counts[self] : &what->count;
    if ((in_counts || out_counts) && own[self] != *expected)
        return fy_fail(f, FERRY_EINVAL, "%s: the piece of rank %d has %zu values, expected %zu",
                       collective_name(what), f->head.rank, own[self], *expected);
    int error = 0;
    if (reads)
        error = check_side(f, what, what->in, in_counts ? what->in_counts : NULL, value_bytes);
    if (writes && error == 0)
        error = check_side(f, what, what->out, out_counts ? what->out_counts : NULL, value_bytes);
    return error;
}

static int check_values(ferry *f, const ferry_collective *what)
{
    size_t value_bytes = what->value_bytes != 0 ? what->value_bytes : fy_type_bytes(what->type);
    if (value_bytes == 0)
        return fy_fail(f, FERRY_EINVAL, "%s: type %d is unknown; expected 0..%d",
                       collective_name(what), (int)what->type, FERRY_BYTE);
    if ((flags_of(what) & FY_COMBINES) && what->combine == NULL &&
        (what->value_bytes != 0 || !fy_reduces(what->type, what->reduction)))
        return what->value_bytes != 0
                   ? fy_fail(f, FERRY_EINVAL, "%s: value_bytes is %zu, and combine is NULL",
                             collective_name(what), what->value_bytes)
                   : fy_fail(f, FERRY_EINVAL,
                             "%s: type %d with reduction %d is unknown; expected 1..4, for "
                             "integers 1..7",
                             collective_name(what), (int)what->type, (int)what->reduction);
    return check_sides(f, what, value_bytes);
}

int fy_collective_check_group(ferry *f, const fy_group *group, const char *name)
{
    int error = fy_check_outside(f, name);
    if (error == 0 && group->self < 0)
        error =
            fy_fail(f, FERRY_ESTATE,
                    "%s: rank %d is a member of no group before its first ferry_quiesce has ended",
                    name, f->head.rank);
    return error;
}

int fy_not_member(ferry *f, const char *call, int rank)
{
    return fy_fail(f, FERRY_EPEER, "%s: rank %d %s", call, rank,
                   fy_peer_is_gone(f, rank) ? fy_peer_outcome(f, rank)
                                            : "is no member of the group");
}

int fy_collective_check(ferry *f, const ferry_collective *what)
{
    if ((unsigned)what->kind > FERRY_ALLTOALLV)
        return fy_fail(f, FERRY_EINVAL, "collective: kind %d is unknown", (int)what->kind);
    const char *name = collective_name(what);
    const fy_group *group = group_of(f, what);
    bool rooted = fy_collective_is_rooted(what->kind);
    int error = fy_collective_check_group(f, group, name);
    if (error == 0)
        error = fy_check_rank(f, name, what->root);
    if (error == 0 && rooted && fy_group_place(group, what->root) < 0)
        error = fy_not_member(f, name, what->root);
    return error == 0 ? check_values(f, what) : error;
}
