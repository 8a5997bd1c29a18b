/* Goal: with a share of a floor plan a rank plans, moves, remaps and saves just what it does with
 * the whole one, and keeps no more than its own blocks and those near. Method: a program of any
 * number of ranks. Tiles are random and have random owners, periodic or not. They are given as a
 * table that every rank has, numbered rank by rank, and as shares of the same. Plans from both must
 * have the same entries, and movements over the shares leave what they should. The first argument
 * is the seed, the second a folder.
 *
 * With "measure N [faces]" instead: N blocks in a cube. It prints what a rank takes and keeps for
 * the plan of a halo with corners, or of faces alone. It also prints what it takes when every
 * sixteenth block goes to the next rank. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <ferry/mover_blocks.h>
#include <ferry/mover_file.h>

#include "arrays.h"
#include "shares.h"

/* Random tiles of `domain`, by owner. */
static ferry_floorplan sorted_plan(ferry *f, dice *d, ferry_region domain, bool all)
{
    ferry_floorplan tiles = random_plan(f, d, domain, all), out = {.dims = domain.dims};
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        for (size_t i = 0; i < tiles.count; i++)
            if (tiles.blocks[i].owner == rank)
                CHECK(ferry_floorplan_add(&out, tiles.blocks[i].region, rank) == 0);
    ferry_floorplan_fini(&tiles);
    return out;
}

/* Every block of a share is that of the whole plan, own ones are there, and regions near are. */
static void check_share(ferry *f, const ferry_floorplan *share, const ferry_floorplan *whole,
                        const ferry_regions *near)
{
    CHECK(share->total == whole->count);
    for (size_t i = 0; i < share->count; i++) {
        const ferry_block *b = &whole->blocks[share->numbers[i]];
        CHECK(i == 0 || share->numbers[i] > share->numbers[i - 1]);
        CHECK(ferry_region_equal(b->region, share->blocks[i].region));
        CHECK(b->owner == share->blocks[i].owner);
    }
    for (size_t i = 0; i < whole->count; i++) {
        bool wanted = whole->blocks[i].owner == ferry_rank(f);
        for (size_t k = 0; k < near->count && !wanted; k++)
            wanted = !ferry_region_is_empty(
                ferry_region_intersect(near->items[k], whole->blocks[i].region));
        CHECK((ferry_floorplan_block(share, (int32_t)i) != NULL) == wanted);
    }
    CHECK(ferry_floorplan_block(share, -1) == NULL &&
          ferry_floorplan_block(share, (int32_t)share->total) == NULL);
}

static bool same_entry(const ferry_plan_entry *a, const ferry_plan_entry *b)
{
    return a->source == b->source && a->target == b->target && a->relation == b->relation &&
           ferry_region_equal(a->from, b->from) && ferry_region_equal(a->to, b->to) &&
           memcmp(a->axis, b->axis, sizeof a->axis) == 0;
}

static void check_same(ferry *f, const ferry_plan *a, const ferry_plan *b)
{
    CHECK(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        const ferry_plan_entry wanted = ferry_plan_at(a, i);
        bool found = false;
        for (size_t k = 0; k < b->count && !found; k++) {
            const ferry_plan_entry copy = ferry_plan_at(b, k);
            found = same_entry(&wanted, &copy);
        }
        CHECK(found);
    }
}

static ferry_mover *bind(ferry *f, ferry_plan *plan, ferry_xarray *from, ferry_xarray *to)
{
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover *m;
    options.check = true;
    CHECK(ferry_mover_bind(f, plan, from, to, &options, &m) == 0);
    ferry_plan_fini(plan);
    return m;
}

static ferry_mover *bind_unchecked(ferry *f, ferry_plan *plan, ferry_xarray *x)
{
    ferry_mover *m;
    CHECK(ferry_mover_bind(f, plan, x, x, NULL, &m) == 0);
    ferry_plan_fini(plan);
    return m;
}

/* A call that needs whole plans says so, and owners that do not exist are refused on every rank. */
static void check_refusals(ferry *f, ferry_xarray *x)
{
    ferry_floorplan none;
    const ferry_regions nothing = {0};
    int32_t *owners = calloc(x->blocks.total + 1, sizeof *owners);
    CHECK(ferry_floorplan_map_block(&x->blocks, ferry_ranks(f)) == FERRY_EINVAL);
    CHECK(ferry_floorplan_map_curve(&x->blocks, ferry_ranks(f), NULL) == FERRY_EINVAL);
    CHECK(ferry_floorplan_add(&x->blocks, x->blocks.blocks[0].region, 0) == FERRY_EINVAL);
    owners[0] = ferry_ranks(f);
    CHECK(ferry_xarray_remap(x, owners) == FERRY_EINVAL);
    if (ferry_ranks(f) > 1) {
        const ferry_floorplan flat = {.dims = x->blocks.dims};
        CHECK(ferry_floorplan_share(f, ferry_rank(f) == 1 ? &flat : &x->blocks, &nothing, &none) ==
              FERRY_EINVAL);
    }
    free(owners);
}

/* Saved from a share, read into a plan that is whole. */
static void save(ferry *f, ferry_xarray *x, const ferry_floorplan *whole, const char *folder)
{
    char path[600];
    ferry_xarray *y;
    (void)snprintf(path, sizeof path, "%s/share_%d", folder, ferry_ranks(f));
    fill(x, 7);
    CHECK(ferry_checkpoint_write(x, path) == 0);
    CHECK(ferry_xarray_create(f, whole, sizeof(double), x->ghosts, &y) == 0);
    fill(y, 8);
    CHECK(ferry_checkpoint_read(path, y) == 0);
    for (size_t i = 0; i < y->local_count; i++) {
        ferry_region own = ferry_floorplan_block(&y->blocks, y->local[i])->region;
        ferry_point p = own.low;
        do
            CHECK(*(double *)ferry_grid_at(&y->grids[i], p) == value_of(p, own.dims, 7));
        while (ferry_region_next(&own, &p));
    }
    ferry_xarray_destroy(y);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0)
        CHECK(unlink(path) == 0);
}

/* The index names each piece once, and every rank has written its own. */
static void show(ferry *f, const ferry_xarray *x, const char *folder)
{
    char path[600], name[700], line[800];
    int32_t number;
    (void)snprintf(path, sizeof path, "%s/shown_%d", folder, ferry_ranks(f));
    CHECK(ferry_vtk_write(x, path, NULL) == 0);
    (void)snprintf(name, sizeof name, "%s.pvti", path);
    FILE *index = fopen(name, "r");
    int *seen = calloc(x->blocks.total + 1, sizeof *seen);
    CHECK(index != NULL && seen != NULL);
    while (fgets(line, sizeof line, index) != NULL) {
        const char *source = strstr(line, "Source=\"");
        if (source == NULL)
            continue;
        CHECK(strncmp(line, "<Piece Extent=", 14) == 0);
        CHECK(sscanf(strrchr(source, '_'), "_%" SCNd32 ".vti", &number) == 1);
        CHECK(number >= 0 && (size_t)number < x->blocks.total && seen[number]++ == 0);
    }
    CHECK(strcmp(line, "</VTKFile>\n") == 0 && fclose(index) == 0);
    for (size_t i = 0; i < x->blocks.total; i++)
        CHECK(seen[i] == 1);
    free(seen);
    CHECK(ferry_barrier(f) == 0);
    for (size_t i = 0; i < x->local_count; i++) {
        (void)snprintf(line, sizeof line, "%s_%" PRId32 ".vti", path, x->local[i]);
        CHECK(unlink(line) == 0);
    }
    CHECK(ferry_rank(f) != 0 || unlink(name) == 0);
}

/* New owners for all blocks, for both. */
static void remap(ferry *f, dice *d, ferry_xarray *x, ferry_floorplan *whole)
{
    int32_t *owners = calloc(x->blocks.count + 1, sizeof *owners);
    for (size_t i = 0; i < whole->count; i++)
        if (dice_between(d, 0, 1) == 0)
            whole->blocks[i].owner = (int32_t)dice_between(d, 0, ferry_ranks(f) - 1);
    for (size_t i = 0; i < x->blocks.count; i++)
        owners[i] = x->blocks.blocks[i].owner == ferry_rank(f)
                        ? whole->blocks[x->blocks.numbers[i]].owner
                        : -1; /* does not count */
    CHECK(ferry_xarray_remap(x, owners) == 0);
    free(owners);
}

static int named(const ferry_plan *plan, int32_t number)
{
    for (size_t i = 0; i < plan->count; i++)
        if (ferry_plan_at(plan, i).source == number || ferry_plan_at(plan, i).target == number)
            return true;
    return false;
}

/* The share has own blocks and those that the mover's plan names, no others, with their owners. */
static void check_kept(ferry *f, const ferry_floorplan *share, const ferry_floorplan *whole,
                       const ferry_plan *plan)
{
    for (size_t i = 0; i < whole->count; i++) {
        const ferry_block *b = ferry_floorplan_block(share, (int32_t)i);
        const bool own = whole->blocks[i].owner == ferry_rank(f);
        CHECK((b != NULL) == (own || named(plan, (int32_t)i)));
        CHECK(b == NULL || b->owner == whole->blocks[i].owner);
    }
}

/* Blocks change owners again and again; movers stay, and plans can be made anew. */
static void remap_halos(ferry *f, dice *d, ferry_xarray *x, ferry_mover *m, ferry_floorplan *whole,
                        const ferry_halo *halo)
{
    for (int round = 4; round < 8; round++) {
        ferry_plan plan = {0}, wanted = {0};
        ferry_regions near = {0};
        ferry_floorplan share;
        remap(f, d, x, whole);
        CHECK(ferry_plan_halo(&wanted, whole, halo, ferry_rank(f)) == 0);
        check_kept(f, &x->blocks, whole, &wanted);
        fill(x, round);
        CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
        check_halo(f, x, halo, round);
        CHECK(ferry_halo_near(&x->blocks, halo, &near) == 0);
        CHECK(ferry_floorplan_share(f, &x->blocks, &near, &share) == 0);
        check_share(f, &share, whole, &near);
        CHECK(ferry_plan_halo(&plan, &share, halo, ferry_rank(f)) == 0);
        check_same(f, &plan, &wanted);
        ferry_plan_fini(&plan);
        ferry_plan_fini(&wanted);
        ferry_regions_fini(&near);
        ferry_floorplan_fini(&share);
    }
}

static void halos(ferry *f, dice *d, const char *folder)
{
    int dims = (int)dice_between(d, 1, 3);
    ferry_point extent = ferry_point_all(dims == 1 ? 60 : 17);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_regions near = {0};
    ferry_plan plan = {0}, wanted = {0};
    ferry_floorplan share;
    ferry_xarray *x;
    halo.domain = ferry_region_sized(dims, extent.at);
    halo.faces_only = dice_between(d, 0, 1);
    for (int i = 0; i < dims; i++) {
        halo.low.at[i] = dice_between(d, 0, 2);
        halo.high.at[i] = dice_between(d, 0, 2);
        halo.periodic[i] = dice_between(d, 0, 1);
    }
    ferry_floorplan whole = sorted_plan(f, d, halo.domain, false);
    ferry_floorplan own = own_of(f, &whole);
    CHECK(ferry_halo_near(&own, &halo, &near) == 0);
    CHECK(ferry_floorplan_share(f, &own, &near, &share) == 0);
    check_share(f, &share, &whole, &near);
    CHECK(ferry_plan_halo(&plan, &share, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_plan_halo(&wanted, &whole, &halo, ferry_rank(f)) == 0);
    check_same(f, &plan, &wanted);
    ferry_plan_fini(&plan);
    /* cells.h checks ghosts of one width */
    for (int i = 0; i < dims; i++)
        halo.low.at[i] = halo.high.at[i] =
            halo.low.at[i] > halo.high.at[i] ? halo.low.at[i] : halo.high.at[i];
    CHECK(ferry_plan_halo(&plan, &share, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_xarray_create(f, &share, sizeof(double), halo.low, &x) == 0);
    ferry_mover *m = bind(f, &plan, x, x);
    for (int round = 1; round < 4; round++) {
        fill(x, round);
        CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
        check_halo(f, x, &halo, round);
    }
    remap_halos(f, d, x, m, &whole, &halo);
    CHECK(ferry_mover_free(m) == 0);
    save(f, x, &whole, folder);
    show(f, x, folder);
    ferry_xarray_destroy(x);
    ferry_plan_fini(&wanted);
    ferry_regions_fini(&near);
    ferry_floorplan_fini(&whole);
    ferry_floorplan_fini(&own);
    ferry_floorplan_fini(&share);
}

static void regions_of(ferry *f, const ferry_floorplan *own, ferry_regions *out)
{
    *out = (ferry_regions){0};
    for (size_t i = 0; i < own->count; i++)
        CHECK(ferry_regions_add(out, own->blocks[i].region) == 0);
}

static void redistributions(ferry *f, dice *d)
{
    ferry_region domain = ferry_region_sized(2, (int64_t[]){30, 30});
    ferry_floorplan whole[2], own[2], share[2];
    ferry_regions regions[2];
    ferry_xarray *x[2];
    ferry_plan plan = {0}, wanted = {0};
    for (int k = 0; k < 2; k++) {
        whole[k] = sorted_plan(f, d, domain, true);
        own[k] = own_of(f, &whole[k]);
        regions_of(f, &own[k], &regions[k]);
    }
    for (int k = 0; k < 2; k++) {
        CHECK(ferry_floorplan_share(f, &own[k], &regions[1 - k], &share[k]) == 0);
        CHECK(ferry_xarray_create(f, &share[k], sizeof(double), ferry_point_all(0), &x[k]) == 0);
    }
    CHECK(ferry_plan_intersect(&plan, &share[0], &share[1], NULL, ferry_rank(f)) == 0);
    CHECK(ferry_plan_intersect(&wanted, &whole[0], &whole[1], NULL, ferry_rank(f)) == 0);
    check_same(f, &plan, &wanted);
    ferry_mover *m = bind(f, &plan, x[0], x[1]);
    for (int round = 3; round < 8; round++) {
        if (round > 3)
            remap(f, d, x[round % 2], &whole[round % 2]);
        fill(x[0], round);
        fill(x[1], -round);
        CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
        for (size_t i = 0; i < x[1]->local_count; i++) {
            ferry_point p = x[1]->grids[i].region.low;
            do
                CHECK(*(double *)ferry_grid_at(&x[1]->grids[i], p) == value_of(p, 2, round));
            while (ferry_region_next(&x[1]->grids[i].region, &p));
        }
    }
    CHECK(ferry_mover_free(m) == 0);
    for (int k = 0; k < 2; k++) {
        ferry_xarray_destroy(x[k]);
        ferry_regions_fini(&regions[k]);
        ferry_floorplan_fini(&whole[k]);
        ferry_floorplan_fini(&own[k]);
        ferry_floorplan_fini(&share[k]);
    }
    ferry_plan_fini(&wanted);
}

/* Blocks that every rank has one of, and mistakes. */
static void mistakes(ferry *f)
{
    ferry_floorplan own = {.dims = 1}, share;
    ferry_xarray *x;
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_regions near = {0};
    const ferry_region domain = ferry_region_sized(1, (int64_t[]){8 * ferry_ranks(f)});
    const ferry_point parts = ferry_point_all(ferry_ranks(f));
    CHECK(ferry_region_is_empty(ferry_floorplan_part(domain, parts, ferry_ranks(f))));
    CHECK(ferry_region_is_empty(ferry_floorplan_part(domain, parts, -1)));
    CHECK(ferry_floorplan_add(&own, ferry_floorplan_part(domain, parts, ferry_rank(f)), 0) == 0);
    halo.low = halo.high = ferry_point_all(1);
    CHECK(ferry_halo_near(&own, &halo, &near) == 0);
    if (ferry_ranks(f) > 1) {
        const ferry_floorplan flat = {.dims = 2};
        CHECK(ferry_floorplan_share(f, ferry_rank(f) == 1 ? &flat : &own, &near, &share) ==
              FERRY_EINVAL);
    }
    CHECK(ferry_floorplan_share(f, &own, &near, &share) == 0);
    CHECK(share.count <= 3 && share.total == (size_t)ferry_ranks(f));
    CHECK(ferry_xarray_create(f, &share, sizeof(double), halo.low, &x) == 0);
    check_refusals(f, x);
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&share);
    ferry_floorplan_fini(&own);
    ferry_regions_fini(&near);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The sixteenth block and every sixteenth after it goes to the next rank. */
static bool goes(size_t i)
{
    return i % 16 == 15;
}

/* Prints the most that any rank took to change owners of an xarray with a mover, by a remap and
 * then as objects, and what it knows afterwards. */
static void measure_changes(ferry *f, const ferry_floorplan *share, ferry_plan *plan,
                            const ferry_halo *halo)
{
    const int next = (ferry_rank(f) + 1) % ferry_ranks(f);
    ferry_xarray *x;
    ferry_blocks *set;
    size_t moved = 0;
    CHECK(ferry_xarray_create(f, share, 1, halo->low, &x) == 0);
    double times[5] = {0}, at = cpu_seconds();
    ferry_mover *m = bind_unchecked(f, plan, x);
    times[0] = cpu_seconds() - at;
    int32_t *owners = calloc(x->blocks.count + 1, sizeof *owners);
    size_t own = 0;
    for (size_t i = 0; i < x->blocks.count; i++)
        if (x->blocks.blocks[i].owner == ferry_rank(f))
            owners[i] = goes(own++) ? next : ferry_rank(f);
    at = cpu_seconds();
    CHECK(ferry_xarray_remap(x, owners) == 0);
    times[1] = cpu_seconds() - at;
    free(owners);
    at = cpu_seconds();
    CHECK(ferry_blocks_create(f, &x, 1, &set) == 0);
    times[2] = cpu_seconds() - at;
    for (size_t i = 0; i < x->local_count; i++)
        if (goes(i))
            CHECK(ferry_object_move(f, ferry_blocks_object(set, x->local[i]), next) == 0);
    at = cpu_seconds();
    CHECK(ferry_blocks_settle(set, &moved) == 0);
    times[3] = cpu_seconds() - at;
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
    times[4] = (double)x->blocks.count;
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_MAX, times, times, 5) == 0);
    if (ferry_rank(f) == 0)
        printf("bind %.1f ms, remap %.1f ms, objects %.1f ms, settle %zu moved %.1f ms; %.0f known "
               "then\n",
               times[0] * 1e3, times[1] * 1e3, times[2] * 1e3, moved, times[3] * 1e3, times[4]);
    CHECK(ferry_blocks_destroy(set) == 0 && ferry_mover_free(m) == 0);
    ferry_xarray_destroy(x);
}

/* Prints the most that any rank took and keeps. */
static void measure(ferry *f, int count, bool faces)
{
    enum { EDGE = 2 };
    ferry_region unit = ferry_region_sized(3, (int64_t[]){count, count, count});
    const ferry_point parts = ferry_floorplan_parts(unit, count);
    ferry_region domain = unit;
    for (int d = 0; d < 3; d++)
        domain.high.at[d] = parts.at[d] * EDGE - 1;
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_floorplan own = {.dims = 3}, share;
    ferry_regions near = {0};
    ferry_plan plan = {0};
    struct rusage before, after;
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = faces;
    const int64_t first = (int64_t)count * ferry_rank(f) / ferry_ranks(f);
    const int64_t end = (int64_t)count * (ferry_rank(f) + 1) / ferry_ranks(f);
    (void)getrusage(RUSAGE_SELF, &before);
    for (int64_t i = first; i < end; i++)
        CHECK(ferry_floorplan_add(&own, ferry_floorplan_part(domain, parts, i), 0) == 0);
    double start = cpu_seconds();
    CHECK(ferry_halo_near(&own, &halo, &near) == 0);
    CHECK(ferry_floorplan_share(f, &own, &near, &share) == 0);
    double shared = cpu_seconds();
    ferry_regions_fini(&near);
    CHECK(ferry_plan_halo(&plan, &share, &halo, ferry_rank(f)) == 0);
    double planned = cpu_seconds();
    (void)getrusage(RUSAGE_SELF, &after);
    double most[6] = {(double)own.count,
                      (double)share.count,
                      (shared - start) * 1e3,
                      (planned - shared) * 1e3,
                      (double)(share.capacity * (sizeof *share.blocks + sizeof *share.numbers) +
                               plan.capacity * plan.entry_bytes) /
                          1048576,
                      (double)(after.ru_maxrss - before.ru_maxrss) / 1024};
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_MAX, most, most, 6) == 0);
    if (ferry_rank(f) == 0)
        printf("%d blocks, %d ranks: %.0f own, %.0f known; share %.1f ms, plan %.1f ms; %.2f MiB "
               "kept, %.2f MiB at most\n",
               count, ferry_ranks(f), most[0], most[1], most[2], most[3], most[4], most[5]);
    measure_changes(f, &share, &plan, &halo);
    ferry_floorplan_fini(&share);
    ferry_floorplan_fini(&own);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "measure") == 0) {
        measure(f, atoi(argv[2]), argc > 3 && strcmp(argv[3], "faces") == 0);
        return 0;
    }
    dice d = {argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
    mistakes(f);
    for (int round = 0; round < 6; round++) {
        halos(f, &d, argc > 2 ? argv[2] : ".");
        redistributions(f, &d);
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
