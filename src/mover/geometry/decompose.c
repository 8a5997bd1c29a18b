/* Decompositions: they cut domains into blocks. */
#include <ferry/mover_plan.h>

#include "mover/geometry/box.h"
#include "mover/geometry/fail.h"

/* A search for the best numbers of parts along the dimensions, whose product is the number of
 * blocks. */
typedef struct shaping {
    ferry_region domain;
    ferry_point parts, best;
    double best_cost;
} shaping;

/* The surface of the cuts, and a penalty for empty parts. */
static double shaping_cost(const shaping *s)
{
    double cost = 0;
    for (int d = 0; d < s->domain.dims; d++) {
        double face = 1;
        for (int e = 0; e < s->domain.dims; e++)
            if (e != d)
                face *= (double)ferry_region_extent(s->domain, e);
        cost += face * (double)(s->parts.at[d] - 1);
        if ((uint64_t)s->parts.at[d] > ferry_region_extent(s->domain, d))
            cost += 1e100;
    }
    return cost;
}

static void shape(shaping *s, int d, int64_t count)
{
    if (d == s->domain.dims - 1) {
        s->parts.at[d] = count;
        double cost = shaping_cost(s);
        if (cost < s->best_cost) {
            s->best_cost = cost;
            s->best = s->parts;
        }
        return;
    }
    for (int64_t part = 1; part <= count; part++) {
        if (count % part == 0) {
            s->parts.at[d] = part;
            shape(s, d + 1, count / part);
        }
    }
}

ferry_point ferry_floorplan_parts(ferry_region domain, int count)
{
    shaping s = {.domain = domain, .best = ferry_point_all(1), .best_cost = 1e300};
    if (domain.dims >= 1 && domain.dims <= FERRY_DIMS_MAX && count > 0)
        shape(&s, 0, count);
    return s.best;
}

/* The first index of part `i`, if `extent` indices are cut into `parts`. */
static int64_t part_start(uint64_t extent, int64_t parts, int64_t i)
{
    uint64_t each = extent / (uint64_t)parts, more = extent % (uint64_t)parts;
    uint64_t before = (uint64_t)i < more ? (uint64_t)i : more;
    return (int64_t)((uint64_t)i * each + before);
}

ferry_region ferry_floorplan_part(ferry_region domain, ferry_point parts, int64_t number)
{
    ferry_region r = domain;
    for (int d = domain.dims - 1; d >= 0; d--) {
        const uint64_t extent = ferry_region_extent(domain, d);
        if (parts.at[d] < 1 || number < 0)
            return (ferry_region){.dims = domain.dims, .low = ferry_point_all(1)};
        const int64_t i = number % parts.at[d];
        number /= parts.at[d];
        r.low.at[d] = domain.low.at[d] + part_start(extent, parts.at[d], i);
        r.high.at[d] = domain.low.at[d] + part_start(extent, parts.at[d], i + 1) - 1;
    }
    return number == 0 ? r : (ferry_region){.dims = domain.dims, .low = ferry_point_all(1)};
}

/* Adds the block at `at`. `tile` is NULL: of a cut into `parts`; otherwise of a tiling. */
static int add_part(ferry_region domain, const ferry_point *parts, const ferry_point *tile,
                    const ferry_point *at, ferry_floorplan *out)
{
    ferry_region r = domain;
    for (int d = 0; d < domain.dims; d++) {
        uint64_t extent = ferry_region_extent(domain, d);
        int64_t i = at->at[d];
        int64_t start = tile ? i * tile->at[d] : part_start(extent, parts->at[d], i);
        int64_t end = tile ? fy_min(start + tile->at[d], (int64_t)extent)
                           : part_start(extent, parts->at[d], i + 1);
        r.low.at[d] = domain.low.at[d] + start;
        r.high.at[d] = domain.low.at[d] + end - 1;
        if (end <= start)
            return 0;
    }
    return ferry_floorplan_add(out, r, 0);
}

static int check_domain(const char *call, const ferry_region *domain)
{
    return !ferry_region_is_empty(*domain)
               ? 0
               : fy_mover_fail(NULL, FERRY_EINVAL, "%s: the domain of %d dimensions is empty", call,
                               domain->dims);
}

static int cut(ferry_region domain, ferry_point parts, const ferry_point *tile,
               ferry_floorplan *out)
{
    const ferry_region grid = ferry_region_sized(domain.dims, parts.at);
    if (out == NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL, "floor plan: out is NULL");
    if (ferry_region_size(grid) > INT32_MAX)
        return fy_mover_fail(NULL, FERRY_EINVAL, "floor plan: %llu parts, expected at most %d",
                             (unsigned long long)ferry_region_size(grid), INT32_MAX);
    ferry_floorplan plan = {.dims = domain.dims};
    ferry_point at = grid.low;
    int error;
    do {
        error = add_part(domain, &parts, tile, &at, &plan);
    } while (error == 0 && ferry_region_next(&grid, &at));
    if (error)
        ferry_floorplan_fini(&plan);
    else
        *out = plan;
    return error;
}

int ferry_floorplan_cut(ferry_region domain, ferry_point parts, ferry_floorplan *out)
{
    int error = check_domain("floorplan_cut", &domain);
    for (int d = 0; d < domain.dims && error == 0; d++)
        if (parts.at[d] < 1)
            error = fy_mover_fail(NULL, FERRY_EINVAL,
                                  "floorplan_cut: %lld parts in dimension %d, expected 1 or more",
                                  (long long)parts.at[d], d);
    return error ? error : cut(domain, parts, NULL, out);
}

int ferry_floorplan_tile(ferry_region domain, ferry_point extents, ferry_floorplan *out)
{
    ferry_point parts = ferry_point_all(0);
    int error = check_domain("floorplan_tile", &domain);
    if (error)
        return error;
    for (int d = 0; d < domain.dims; d++) {
        if (extents.at[d] < 1 || extents.at[d] > FERRY_COORDINATE_MAX)
            return fy_mover_fail(NULL, FERRY_EINVAL,
                                 "floorplan_tile: extent %lld in dimension %d, expected 1 to %lld",
                                 (long long)extents.at[d], d, (long long)FERRY_COORDINATE_MAX);
        uint64_t each = (uint64_t)extents.at[d];
        parts.at[d] = (int64_t)((ferry_region_extent(domain, d) + each - 1) / each);
    }
    return cut(domain, parts, &extents, out);
}

/* The bisection of a domain by weight. */
typedef struct bisection {
    ferry_weight_fn *weight;
    void *arg;
    ferry_floorplan *out;
} bisection;

static double size_weight(void *arg, ferry_region region)
{
    (void)arg;
    return (double)ferry_region_size(region);
}

static int longest_side(const ferry_region *r)
{
    int longest = 0;
    for (int d = 1; d < r->dims; d++)
        if (ferry_region_extent(*r, d) > ferry_region_extent(*r, longest))
            longest = d;
    return longest;
}

/* The weight of the part of `r` up to index `last` of dimension `d`. */
static double weight_up_to(const bisection *b, ferry_region r, int d, int64_t last)
{
    r.high.at[d] = last;
    return b->weight(b->arg, r);
}

/* Cuts `r` along `d` so that the lower part has nearly `share` of the weight. Returns the last
 * index of the lower part, from `low` to `high`. */
static int64_t cut_at(const bisection *b, ferry_region r, int d, double share, int64_t low,
                      int64_t high)
{
    const double wanted = share * b->weight(b->arg, r);
    const int64_t first = low;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (weight_up_to(b, r, d, middle) >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    if (low > first &&
        wanted - weight_up_to(b, r, d, low - 1) < weight_up_to(b, r, d, low) - wanted)
        low--;
    return low;
}

/* The number of layers, of `layer` indices each, that have an index for each of `count` boxes. */
static int64_t layers_for(int count, uint64_t layer)
{
    return (int64_t)(((uint64_t)count - 1) / layer) + 1;
}

/* Cuts `r` into `count` boxes. Invariant: `r` has at least `count` indices. So each side must get
 * at least as many indices as boxes, wherever the weight is. If the two sides together would need
 * more layers than `r` has, the lower side gets only as many boxes as fill whole layers. */
static int bisect(const bisection *b, ferry_region r, int first, int count)
{
    if (count == 1)
        return ferry_floorplan_add(b->out, r, first);
    const int d = longest_side(&r);
    ferry_region lower = r, upper = r;
    lower.high.at[d] = r.low.at[d];
    const uint64_t layer = ferry_region_size(lower);
    int lower_count = count / 2;
    if (layers_for(lower_count, layer) + layers_for(count - lower_count, layer) >
        (int64_t)ferry_region_extent(r, d))
        lower_count -= (int)((uint64_t)lower_count % layer);
    lower.high.at[d] = cut_at(b, r, d, (double)lower_count / count,
                              r.low.at[d] + layers_for(lower_count, layer) - 1,
                              r.high.at[d] - layers_for(count - lower_count, layer));
    upper.low.at[d] = lower.high.at[d] + 1;
    int error = bisect(b, lower, first, lower_count);
    return error ? error : bisect(b, upper, first + lower_count, count - lower_count);
}

int ferry_floorplan_bisect(ferry_region domain, int count, ferry_weight_fn *weight, void *arg,
                           ferry_floorplan *out)
{
    if (count < 1 || ferry_region_size(domain) < (uint64_t)count)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "floorplan_bisect: %d boxes of a domain of %llu indices, expected 1 "
                             "or more, and no more boxes than indices",
                             count, (unsigned long long)ferry_region_size(domain));
    if (out == NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL, "floorplan_bisect: out is NULL");
    ferry_floorplan plan = {.dims = domain.dims};
    bisection b = {.weight = weight ? weight : size_weight, .arg = arg, .out = &plan};
    int error = bisect(&b, domain, 0, count);
    if (error)
        ferry_floorplan_fini(&plan);
    else
        *out = plan;
    return error;
}
