/* Shares of floor plans: a rank learns the blocks near its own, and no rank has a table of all.
 *
 * The space that the blocks span is cut into bins, a few per rank. A hash of a bin's number gives
 * the rank that keeps it. Each rank sends a block to the keepers of the bins that the block
 * intersects, and asks the keepers of the bins that its regions intersect. A keeper answers with
 * the blocks that it knows and that intersect the regions. So a rank has its own blocks, those
 * near, those in its bins, and a few words per rank. If many blocks are in one corner, the hash
 * spreads their bins over the ranks. */
#include <stdlib.h>
#include <string.h>

#include <ferry/collective.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "core/fail.h"
#include "mover/bind/change.h"
#include "mover/bind/exchange.h"
#include "mover/bind/link.h"
#include "mover/geometry/array.h"
#include "mover/geometry/tree.h"

enum { BINS_PER_RANK = 8 };

/* A block; or with number -1 a request for the blocks that intersect the region. */
typedef struct record {
    ferry_region region;
    int32_t number, owner;
} record;

typedef struct records {
    record *items;
    size_t count, capacity;
} records;

/* The words about a rank's blocks that all ranks get. */
typedef struct summary {
    int64_t low[FERRY_DIMS_MAX], high[FERRY_DIMS_MAX];
    uint64_t count;
    int64_t dims, total; /* -1: the blocks have no numbers yet */
} summary;

typedef struct sharing {
    ferry *f;
    const ferry_floorplan *own;
    const ferry_regions *near;
    int ranks, rank; /* numbers that ranks may have, and this rank */
    int members;
    ferry_region hull;
    ferry_region bins;     /* the indices of all bins */
    ferry_point edge;      /* the extents of a bin */
    uint64_t first, total; /* number of this rank's first block, and of all blocks */
    records *out;          /* per rank: the blocks and requests for it */
    bool *marks;           /* per rank */
    records known;
    fy_exchange exchange;
} sharing;

static int share_append(records *list, const record *r)
{
    int error =
        fy_array_reserve((void **)&list->items, &list->capacity, list->count + 1, sizeof *r);
    if (error == 0)
        list->items[list->count++] = *r;
    return error;
}

/* Whether block `i` of the table belongs to this rank. An older share has others too. */
static bool is_own(const sharing *s, size_t i)
{
    return s->own->numbers == NULL || s->own->blocks[i].owner == s->rank;
}

static int share_check(sharing *s)
{
    int error = ferry_floorplan_check(s->f, s->own, INT32_MAX, (ferry_region){0}, 0);
    for (size_t i = 0; i < s->near->count && error == 0; i++)
        if (s->near->items[i].dims != s->own->dims)
            error = fy_fail(s->f, FERRY_EINVAL,
                            "floorplan_share: region %zu has %d dimensions, the blocks %d", i,
                            s->near->items[i].dims, s->own->dims);
    return error;
}

/* The summary of this rank's blocks. */
static summary sharing_describe(const sharing *s)
{
    const ferry_floorplan *own = s->own;
    summary mine = {.dims = own->dims, .total = own->numbers != NULL ? (int64_t)own->total : -1};
    ferry_region hull = {.dims = own->dims};
    for (size_t i = 0; i < own->count; i++) {
        const ferry_region region = own->blocks[i].region;
        if (is_own(s, i))
            hull = mine.count++ == 0 ? region : ferry_region_bound(hull, region);
    }
    memcpy(mine.low, hull.low.at, sizeof mine.low);
    memcpy(mine.high, hull.high.at, sizeof mine.high);
    return mine;
}

/* Exchanges summaries. Sets the region that all blocks span, their number, and how many come before
 * this rank's. */
static int summarise(sharing *s, int error)
{
    summary mine = {0};
    summary *all = fy_malloc((size_t)s->members * sizeof *all);
    if (all == NULL || s->out == NULL || s->marks == NULL)
        error = error ? error : FERRY_ENOMEM;
    if (error == 0)
        mine = sharing_describe(s);
    int failed = fy_mover_agree(s->f, error);
    if (failed == 0)
        failed = ferry_allgather(s->f, &mine, sizeof mine, all);
    s->hull = (ferry_region){.dims = s->own->dims};
    const int place = fy_mover_place(s->f);
    for (int r = 0; r < s->members && failed == 0; r++) {
        ferry_region theirs = ferry_region_make(s->own->dims, all[r].low, all[r].high);
        if (all[r].dims != s->own->dims)
            failed = fy_fail(
                s->f, FERRY_EINVAL, "floorplan_share: %lld dimensions on rank %d, %d on rank %d",
                (long long)all[r].dims, ferry_member_rank(s->f, r), s->own->dims, s->rank);
        else if (all[r].count > 0)
            s->hull = s->total == 0 ? theirs : ferry_region_bound(s->hull, theirs);
        s->first += r < place ? all[r].count : 0;
        s->total += all[r].count;
    }
    for (int r = 0; r < s->members && failed == 0; r++)
        if (all[r].total != mine.total || (mine.total >= 0 && (uint64_t)mine.total != s->total))
            failed = fy_fail(s->f, FERRY_EINVAL,
                             "floorplan_share: blocks with numbers up to %lld on rank %d, %lld on "
                             "rank %d, and %llu in all",
                             (long long)all[r].total - 1, ferry_member_rank(s->f, r),
                             (long long)mine.total - 1, s->rank, (unsigned long long)s->total);
    free(all);
    if (failed == 0 && s->total > INT32_MAX)
        failed = fy_fail(s->f, FERRY_EINVAL, "floorplan_share: %llu blocks, more than 2^31 - 1",
                         (unsigned long long)s->total);
    return failed;
}

static void cut_bins(sharing *s)
{
    const int wanted =
        s->members < INT32_MAX / BINS_PER_RANK ? s->members * BINS_PER_RANK : s->members;
    const ferry_point parts = ferry_floorplan_parts(s->hull, wanted);
    s->bins = (ferry_region){.dims = s->hull.dims};
    for (int d = 0; d < s->hull.dims; d++) {
        const uint64_t extent = ferry_region_extent(s->hull, d), count = (uint64_t)parts.at[d];
        const uint64_t edge = extent / count + (extent % count != 0);
        s->edge.at[d] = (int64_t)edge;
        s->bins.high.at[d] = (int64_t)((extent - 1) / edge);
    }
}

static int keeper_of(const sharing *s, const ferry_point *bin)
{
    uint64_t hash = 0;
    for (int d = 0; d < s->bins.dims; d++)
        hash = fy_mix(hash, (uint64_t)bin->at[d]);
    return ferry_member_rank(s->f, (int)(hash % (uint64_t)s->members));
}

/* Adds `r` to the records for each rank that keeps a bin which `r` intersects. */
static int sharing_post(sharing *s, const record *r)
{
    ferry_region range = ferry_region_intersect(r->region, s->hull);
    if (ferry_region_is_empty(range))
        return 0;
    for (int d = 0; d < range.dims; d++) {
        range.low.at[d] = (range.low.at[d] - s->hull.low.at[d]) / s->edge.at[d];
        range.high.at[d] = (range.high.at[d] - s->hull.low.at[d]) / s->edge.at[d];
    }
    int error = 0, marked = 0;
    ferry_point bin = range.low;
    memset(s->marks, 0, (size_t)s->ranks * sizeof *s->marks);
    do {
        const int keeper = keeper_of(s, &bin);
        if (s->marks[keeper])
            continue;
        s->marks[keeper] = true;
        marked++;
        error = share_append(&s->out[keeper], r);
    } while (error == 0 && marked < s->members && ferry_region_next(&range, &bin));
    return error;
}

static int post_all(sharing *s)
{
    int error = 0;
    for (size_t i = 0; i < s->own->count && error == 0; i++) {
        const int32_t *numbers = s->own->numbers;
        const record r = {.region = s->own->blocks[i].region,
                          .number = numbers != NULL ? numbers[i] : (int32_t)(s->first + i),
                          .owner = s->rank};
        if (!is_own(s, i))
            continue;
        error = share_append(&s->known, &r);
        if (error == 0)
            error = sharing_post(s, &r);
    }
    for (size_t i = 0; i < s->near->count && error == 0; i++)
        error = sharing_post(s, &(record){.region = s->near->items[i], .number = -1});
    return error;
}

/* As fy_exchange_expect, for the ranks that get records. */
static int sharing_expect(sharing *s, int error, size_t *asking)
{
    for (int r = 0; r < s->ranks; r++)
        s->marks[r] = s->out[r].count > 0;
    return fy_exchange_expect(&s->exchange, error, s->marks, asking);
}

/* Sends all records. Sets `*asked` to the number of ranks that this one asks. After an error the
 * others get that, since they wait. */
static int sharing_send_all(sharing *s, size_t *asked)
{
    int error = 0;
    *asked = 0;
    for (int r = 0; r < s->ranks; r++) {
        records *out = &s->out[r];
        if (out->count == 0)
            continue;
        int sent = fy_exchange_send(&s->exchange, r, FY_EXCHANGE_ASK, error, out->items,
                                    error ? 0 : out->count * sizeof *out->items);
        error = error ? error : sent;
        (*asked)++;
        free(out->items);
        *out = (records){0};
    }
    return error;
}

static const record *items_of(const fy_exchange_post *from, size_t *count)
{
    *count = from->size_bytes / sizeof(record);
    return (const record *)(const void *)from->data;
}

/* Collects the blocks in this rank's bins. Data of another rank may be wrong: an invalid region is
 * left out. */
static int collect(const sharing *s, records *kept)
{
    int error = 0;
    for (const fy_exchange_post *p = s->exchange.inbox[FY_EXCHANGE_ASK]; p != NULL; p = p->next) {
        size_t count;
        const record *items = items_of(p, &count);
        for (size_t i = 0; i < count && error == 0; i++)
            if (items[i].number >= 0 && fy_box_is_sound(&items[i].region, s->own->dims))
                error = share_append(kept, &items[i]);
    }
    return error;
}

/* Answers one rank with the blocks that intersect one of its regions, each once. `seen` has a mark
 * per kept block. */
static int sharing_answer(sharing *s, const fy_exchange_post *from, const fy_tree *tree,
                          const records *kept, int32_t *seen)
{
    records found = {0};
    size_t count;
    int error = 0;
    const record *items = items_of(from, &count);
    for (size_t i = 0; i < count && error == 0; i++) {
        fy_tree_walk walk;
        uint32_t hit;
        const ferry_region *region;
        if (items[i].number >= 0 || !fy_box_is_sound(&items[i].region, s->own->dims))
            continue;
        fy_tree_find(&walk, tree, &items[i].region);
        while (error == 0 && fy_tree_next(&walk, &hit, &region))
            if (kept->items[hit].owner != from->source && seen[hit] != from->source + 1) {
                seen[hit] = from->source + 1;
                error = share_append(&found, &kept->items[hit]);
            }
    }
    int sent = fy_exchange_send(&s->exchange, from->source, FY_EXCHANGE_ANSWER, error, found.items,
                                error ? 0 : found.count * sizeof *found.items);
    free(found.items);
    return error ? error : sent;
}

/* Answers all ranks that asked. After an error they get that, since they wait. */
static int answer_all(sharing *s, int error)
{
    records kept = {0};
    fy_tree tree = {0};
    if (error == 0)
        error = collect(s, &kept);
    if (error == 0)
        error = fy_tree_init(&tree, s->own->dims, kept.items != NULL ? &kept.items->region : NULL,
                             sizeof *kept.items, kept.count);
    int32_t *seen = fy_calloc(kept.count + 1, sizeof *seen);
    if (seen == NULL && error == 0)
        error = FERRY_ENOMEM;
    for (const fy_exchange_post *p = s->exchange.inbox[FY_EXCHANGE_ASK]; p != NULL; p = p->next) {
        int sent = error == 0 ? sharing_answer(s, p, &tree, &kept, seen)
                              : fy_exchange_send(&s->exchange, p->source, FY_EXCHANGE_ANSWER, error,
                                                 NULL, 0);
        error = error ? error : sent;
    }
    free(seen);
    fy_tree_fini(&tree);
    free(kept.items);
    return error;
}

static int by_number(const void *a, const void *b)
{
    const record *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Makes the share from the known blocks, each once. */
static int make_plan(sharing *s, ferry_floorplan *out)
{
    ferry_floorplan plan = {.dims = s->own->dims, .total = (size_t)s->total, .rank = s->rank};
    int error = 0;
    for (const fy_exchange_post *p = s->exchange.inbox[FY_EXCHANGE_ANSWER]; p != NULL;
         p = p->next) {
        size_t count;
        const record *items = items_of(p, &count);
        for (size_t i = 0; i < count && error == 0; i++)
            error = items[i].number < 0 || (uint64_t)items[i].number >= s->total ||
                            items[i].owner < 0 || items[i].owner >= s->ranks ||
                            !fy_box_is_sound(&items[i].region, plan.dims)
                        ? FERRY_EINVAL
                        : share_append(&s->known, &items[i]);
    }
    if (error)
        return error == FERRY_EINVAL
                   ? fy_fail(s->f, error,
                             "floorplan_share: another rank sent blocks that do not exist")
                   : error;
    if (s->known.count > 0)
        qsort(s->known.items, s->known.count, sizeof *s->known.items, by_number);
    plan.numbers = fy_malloc((s->known.count + 1) * sizeof *plan.numbers);
    plan.blocks = fy_malloc((s->known.count + 1) * sizeof *plan.blocks);
    if (plan.numbers == NULL || plan.blocks == NULL) {
        ferry_floorplan_fini(&plan);
        return FERRY_ENOMEM;
    }
    plan.capacity = s->known.count + 1;
    for (size_t i = 0; i < s->known.count; i++) {
        const record *r = &s->known.items[i];
        if (plan.count > 0 && plan.numbers[plan.count - 1] == r->number)
            continue;
        plan.numbers[plan.count] = r->number;
        plan.blocks[plan.count++] = (ferry_block){.region = r->region, .owner = r->owner};
    }
    *out = plan;
    return 0;
}

static int share(sharing *s, int error, ferry_floorplan *out)
{
    size_t asking, asked;
    error = summarise(s, error ? error : share_check(s));
    if (error)
        return error;
    if (s->total > 0) {
        cut_bins(s);
        error = post_all(s);
    }
    error = sharing_expect(s, error, &asking);
    if (error)
        return error;
    error = sharing_send_all(s, &asked);
    int heard = fy_exchange_receive(&s->exchange, FY_EXCHANGE_ASK, asking);
    error = error ? error : heard;
    int answered = heard == FERRY_EPEER ? heard : answer_all(s, error);
    if (answered == 0)
        answered = fy_exchange_receive(&s->exchange, FY_EXCHANGE_ANSWER, asked);
    error = error ? error : answered;
    if (error == FERRY_EINVAL)
        return fy_fail(s->f, error,
                       "floorplan_share: another rank sent an answer that was not asked for");
    return error ? error : make_plan(s, out);
}

int fy_floorplan_share(ferry *f, int error, const ferry_floorplan *own, const ferry_regions *near,
                       ferry_floorplan *out)
{
    ferry_floorplan plan = {0};
    sharing s = {.f = f,
                 .own = own,
                 .near = near,
                 .ranks = ferry_ranks(f),
                 .members = ferry_member_count(f),
                 .rank = ferry_rank(f)};
    s.out = fy_calloc((size_t)s.ranks, sizeof *s.out);
    s.marks = fy_calloc((size_t)s.ranks, sizeof *s.marks);
    fy_exchange_begin(&s.exchange, f);
    error = share(&s, error, &plan);
    error = fy_mover_agree(
        f, error == FERRY_ENOMEM ? fy_fail(f, error, "floorplan_share: no memory") : error);
    fy_exchange_end(&s.exchange);
    for (int r = 0; r < s.ranks && s.out != NULL; r++)
        free(s.out[r].items);
    free(s.out);
    free(s.marks);
    free(s.known.items);
    if (error)
        ferry_floorplan_fini(&plan);
    else
        *out = plan;
    return error;
}

int ferry_floorplan_share(ferry *f, const ferry_floorplan *own, const ferry_regions *near,
                          ferry_floorplan *out)
{
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "floorplan_share: not allowed inside a handler");
    return fy_floorplan_share(f, 0, own, near, out);
}
