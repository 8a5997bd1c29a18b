/* The plan that fills ghost cells. For each target block the tree gives the blocks near enough to
 * be its sources. A rank that plans its own part alone also asks the tree for the targets of each
 * of its blocks. One function makes the copies of a pair of blocks, whether the pair was found from
 * its target or from its source. So both ranks of a copy make the same one. In a periodic domain
 * each source block appears at all of its images. */
#include <inttypes.h>

#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

int fy_plan_tree(fy_tree *tree, const ferry_floorplan *blocks)
{
    if (blocks->dims < 1 || blocks->dims > FERRY_DIMS_MAX)
        return fy_mover_fail(NULL, FERRY_EINVAL, "plan: %" PRId32 " dimensions, expected 1 to %d",
                             blocks->dims, FERRY_DIMS_MAX);
    for (size_t i = 0; i < blocks->count; i++)
        if (blocks->blocks[i].region.dims != blocks->dims)
            return fy_mover_fail(
                NULL, FERRY_EINVAL,
                "plan: block %" PRId32 " has %" PRId32 " dimensions, expected %" PRId32,
                fy_block_number(blocks, i), blocks->blocks[i].region.dims, blocks->dims);
    int error = fy_tree_init(tree, blocks->dims, blocks->blocks ? &blocks->blocks->region : NULL,
                             sizeof *blocks->blocks, blocks->count);
    return fy_mover_no_memory(NULL, error, "plan");
}

/* Limits: how often a periodic domain may fit into the width of ghost cells, and how many of its
 * images the surroundings of one block may intersect. Each image costs a query. */
enum { FY_FITS_MAX = 64, FY_IMAGES_MAX = 65536 };

typedef struct planner {
    ferry_plan *plan;
    const ferry_floorplan *blocks;
    const ferry_halo *halo;
    fy_tree tree;
    int rank;
} planner;

static ferry_region halo_widen(const ferry_region *r, const ferry_point *low,
                               const ferry_point *high)
{
    ferry_region wide = *r;
    for (int d = 0; d < r->dims; d++) {
        wide.low.at[d] -= low->at[d];
        wide.high.at[d] += high->at[d];
    }
    return wide;
}

static int emit(planner *p, uint32_t target, uint32_t source, const ferry_region *to,
                const ferry_point *image)
{
    ferry_plan_entry copy = {.target = fy_block_number(p->blocks, target),
                             .source = fy_block_number(p->blocks, source),
                             .to = *to,
                             .from = *to};
    for (int d = 0; d < to->dims; d++) {
        copy.from.low.at[d] -= image->at[d];
        copy.from.high.at[d] -= image->at[d];
    }
    fy_copy_plain(&copy);
    return ferry_plan_add(p->plan, &copy);
}

/* Adds the copies to each face of the ghost cells. A face lies outside the block in one dimension,
 * and within its extent in all others. */
static int emit_faces(planner *p, uint32_t target, uint32_t source, const ferry_region *shown,
                      const ferry_point *image)
{
    const ferry_region *own = &p->blocks->blocks[target].region;
    for (int side = 0; side < 2 * own->dims; side++) {
        int d = side / 2;
        ferry_region face = *own, to;
        if (side % 2 == 0) {
            face.low.at[d] = own->low.at[d] - p->halo->low.at[d];
            face.high.at[d] = own->low.at[d] - 1;
        } else {
            face.low.at[d] = own->high.at[d] + 1;
            face.high.at[d] = own->high.at[d] + p->halo->high.at[d];
        }
        if (fy_box_intersect(&face, shown, &to)) {
            int error = emit(p, target, source, &to, image);
            if (error)
                return error;
        }
    }
    return 0;
}

/* Adds the copies to the ghost cells of `target` from the image of `source` that is `image`
 * away. */
static int emit_pair(planner *p, uint32_t target, uint32_t source, const ferry_point *image)
{
    const ferry_region *own = &p->blocks->blocks[target].region;
    ferry_region shown = p->blocks->blocks[source].region, to;
    bool here = true;
    for (int d = 0; d < shown.dims; d++) {
        shown.low.at[d] += image->at[d];
        shown.high.at[d] += image->at[d];
        here &= image->at[d] == 0;
    }
    if (here && source == target)
        return 0;
    if (p->halo->faces_only)
        return emit_faces(p, target, source, &shown, image);
    ferry_region wide = halo_widen(own, &p->halo->low, &p->halo->high);
    if (!fy_box_intersect(&wide, &shown, &to))
        return 0;
    if (!fy_box_meets(&to, own))
        return emit(p, target, source, &to, image);
    ferry_region rest[2 * FERRY_DIMS_MAX];
    int count = ferry_region_difference(to, *own, rest), error = 0;
    for (int i = 0; i < count && error == 0; i++)
        error = emit(p, target, source, &rest[i], image);
    return error;
}

/* Finds all blocks whose image intersects `wide`, the surroundings of `block`. If `block` is the
 * target, it gets copies from them. `as_source`: blocks of other ranks get copies from it, and the
 * image is then away in the opposite direction. */
static int around(planner *p, uint32_t block, const ferry_region *wide, const ferry_point *image,
                  bool as_source)
{
    ferry_region where = *wide;
    ferry_point opposite;
    for (int d = 0; d < FERRY_DIMS_MAX; d++)
        opposite.at[d] = -image->at[d];
    for (int d = 0; d < wide->dims; d++) {
        where.low.at[d] -= image->at[d];
        where.high.at[d] -= image->at[d];
    }
    fy_tree_walk walk;
    uint32_t other;
    const ferry_region *region;
    fy_tree_find(&walk, &p->tree, &where);
    while (fy_tree_next(&walk, &other, &region)) {
        int error = 0;
        if (!as_source)
            error = emit_pair(p, block, other, image);
        else if (p->blocks->blocks[other].owner != p->rank)
            error = emit_pair(p, other, block, &opposite);
        if (error)
            return error;
    }
    return 0;
}

/* The images of the domain that `wide` intersects, as multiples of the domain's extents. */
static ferry_region images_of(const ferry_halo *halo, const ferry_region *wide)
{
    ferry_region range = {.dims = wide->dims};
    for (int d = 0; d < wide->dims; d++) {
        if (!halo->periodic[d])
            continue;
        int64_t extent = (int64_t)ferry_region_extent(halo->domain, d);
        range.low.at[d] = fy_floor_div(wide->low.at[d] - halo->domain.low.at[d], extent);
        range.high.at[d] = fy_floor_div(wide->high.at[d] - halo->domain.low.at[d], extent);
    }
    return range;
}

/* The offset of image `at`. */
static ferry_point image_at(const ferry_halo *halo, int dims, const ferry_point *at)
{
    ferry_point image = {{0}};
    for (int d = 0; d < dims; d++)
        if (halo->periodic[d])
            image.at[d] = at->at[d] * (int64_t)ferry_region_extent(halo->domain, d);
    return image;
}

/* Looks for blocks in every image of the domain that the surroundings of `block` intersect. */
static int images(planner *p, uint32_t block, bool as_source)
{
    const ferry_halo *halo = p->halo;
    ferry_region wide = as_source
                            ? halo_widen(&p->blocks->blocks[block].region, &halo->high, &halo->low)
                            : halo_widen(&p->blocks->blocks[block].region, &halo->low, &halo->high);
    ferry_region range = images_of(halo, &wide);
    ferry_point at = range.low;
    int error;
    do {
        const ferry_point image = image_at(halo, wide.dims, &at);
        error = around(p, block, &wide, &image, as_source);
    } while (error == 0 && ferry_region_next(&range, &at));
    return error;
}

/* With coordinates and widths up to this, images and their surroundings stay within the limit. */
static const int64_t far = FERRY_COORDINATE_MAX / 2;

static int check_width(const ferry_halo *halo, int d)
{
    const int64_t low = halo->low.at[d], high = halo->high.at[d];
    if (low < 0 || high < 0 || low > far || high > far)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_halo: widths %" PRId64 " and %" PRId64
                             " in dimension %d, expected 0 to %" PRId64,
                             low, high, d, far);
    if (!halo->periodic[d])
        return 0;
    const int64_t period = (int64_t)ferry_region_extent(halo->domain, d);
    if (halo->domain.low.at[d] < -far || halo->domain.high.at[d] > far)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_halo: periodic domain %s is too near the limit",
                             fy_region_show(&halo->domain).text);
    if (low / period > FY_FITS_MAX || high / period > FY_FITS_MAX)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_halo: widths %" PRId64 " and %" PRId64
                             " in dimension %d are over %d times the period %" PRId64,
                             low, high, d, FY_FITS_MAX, period);
    return 0;
}

/* Whether a block's surroundings surely intersect few images: at most six per dimension. */
static bool is_plainly_small(const ferry_halo *halo, const ferry_region *wide)
{
    for (int d = 0; d < wide->dims; d++)
        if (halo->periodic[d] &&
            ferry_region_extent(*wide, d) / 4 >= ferry_region_extent(halo->domain, d))
            return false;
    return true;
}

static int check_block(const ferry_floorplan *blocks, const ferry_halo *halo,
                       const ferry_point *width, size_t i)
{
    const ferry_region *own = &blocks->blocks[i].region;
    const int32_t number = fy_block_number(blocks, i);
    for (int d = 0; d < own->dims; d++)
        if (own->low.at[d] < -far || own->high.at[d] > far)
            return fy_mover_fail(NULL, FERRY_EINVAL,
                                 "plan_halo: block %" PRId32 " %s is too near the limit", number,
                                 fy_region_show(own).text);
    const ferry_region wide = halo_widen(own, width, width);
    if (is_plainly_small(halo, &wide))
        return 0;
    const ferry_region range = images_of(halo, &wide);
    if (ferry_region_size(range) <= FY_IMAGES_MAX)
        return 0;
    int most = 0;
    for (int d = 1; d < own->dims; d++)
        if (ferry_region_extent(range, d) > ferry_region_extent(range, most))
            most = d;
    return fy_mover_fail(NULL, FERRY_EINVAL,
                         "plan_halo: block %" PRId32 " %s with ghost cells of width %" PRId64
                         " reaches into %" PRIu64 " images of the domain, %" PRIu64
                         " in dimension %d where its period is %" PRIu64 ": at most %d",
                         number, fy_region_show(own).text, width->at[most],
                         ferry_region_size(range), ferry_region_extent(range, most), most,
                         ferry_region_extent(halo->domain, most), FY_IMAGES_MAX);
}

/* Reads and checks the halo against all blocks, not the rank's own alone. So every rank gets the
 * same result. */
static int read_halo(const ferry_floorplan *blocks, const ferry_halo *given, ferry_halo *halo)
{
    ferry_point width = {{0}};
    bool wraps = false;
    int error = fy_mover_read(NULL, "plan_halo: ferry_halo", given, halo, sizeof *halo);
    if (error)
        return error;
    if (blocks->dims < 1 || blocks->dims > FERRY_DIMS_MAX)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_halo: %" PRId32 " dimensions, expected 1 to %d", blocks->dims,
                             FERRY_DIMS_MAX);
    for (int d = 0; d < blocks->dims; d++)
        wraps |= halo->periodic[d];
    if (wraps && (halo->domain.dims != blocks->dims || ferry_region_is_empty(halo->domain)))
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_halo: a periodic domain of %" PRId32
                             " dimensions, expected %" PRId32 ", or an empty one",
                             halo->domain.dims, blocks->dims);
    for (int d = 0; d < blocks->dims && error == 0; d++) {
        width.at[d] = fy_max(halo->low.at[d], halo->high.at[d]);
        error = check_width(halo, d);
    }
    for (size_t i = 0; i < blocks->count && error == 0; i++) {
        if (blocks->blocks[i].region.dims != blocks->dims)
            return fy_mover_fail(
                NULL, FERRY_EINVAL,
                "plan_halo: block %" PRId32 " has %" PRId32 " dimensions, expected %" PRId32,
                fy_block_number(blocks, i), blocks->blocks[i].region.dims, blocks->dims);
        if (!ferry_region_is_empty(blocks->blocks[i].region))
            error = check_block(blocks, halo, &width, i);
    }
    return error;
}

int ferry_plan_halo(ferry_plan *plan, const ferry_floorplan *blocks, const ferry_halo *halo,
                    int rank)
{
    const fy_given given[] = {{"plan", plan}, {"blocks", blocks}};
    const int missing = fy_mover_given("plan_halo", given, 2);
    if (missing)
        return missing;
    ferry_halo known = FERRY_HALO_DEFAULTS;
    planner p = {.plan = plan, .blocks = blocks, .halo = &known, .rank = rank};
    size_t before = plan->count;
    int error = read_halo(blocks, halo, &known);
    if (error == 0)
        error = fy_plan_tree(&p.tree, blocks);
    if (error)
        return error;
    for (uint32_t i = 0; i < blocks->count && error == 0; i++) {
        bool own = rank < 0 || blocks->blocks[i].owner == rank;
        if (own && !ferry_region_is_empty(blocks->blocks[i].region)) {
            error = images(&p, i, false);
            if (error == 0 && rank >= 0)
                error = images(&p, i, true);
        }
    }
    if (error)
        plan->count = before;
    fy_tree_fini(&p.tree);
    return error;
}

/* A rank needs the blocks to which it gives, and those from which it gets. So the wider of the two
 * widths counts on both sides. */
int ferry_halo_near(const ferry_floorplan *own, const ferry_halo *given, ferry_regions *near)
{
    const fy_given pointers[] = {{"own", own}, {"near", near}};
    const int missing = fy_mover_given("halo_near", pointers, 2);
    if (missing)
        return missing;
    ferry_halo known = FERRY_HALO_DEFAULTS, *halo = &known;
    const size_t before = near->count;
    int error = read_halo(own, given, halo);
    for (size_t i = 0; i < own->count && error == 0; i++) {
        ferry_point width = {{0}};
        if ((own->numbers != NULL && own->blocks[i].owner != own->rank) ||
            ferry_region_is_empty(own->blocks[i].region))
            continue;
        for (int d = 0; d < own->dims; d++)
            width.at[d] = fy_max(halo->low.at[d], halo->high.at[d]);
        const ferry_region wide = halo_widen(&own->blocks[i].region, &width, &width);
        const ferry_region range = images_of(halo, &wide);
        ferry_point at = range.low;
        do {
            ferry_point image = image_at(halo, wide.dims, &at);
            for (int d = 0; d < own->dims; d++)
                image.at[d] = -image.at[d];
            error = ferry_regions_add(near, ferry_region_shift(wide, image));
        } while (error == 0 && ferry_region_next(&range, &at));
    }
    if (error)
        near->count = before;
    return error;
}
