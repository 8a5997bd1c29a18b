/* Goal: after a death, and in a job with room for ranks that have not come, the members share floor
 * plans, bind ghosts, remap and write files as in a job that has only them.
 * Method: the rank that the second argument names is killed, or none; the others agree on the
 * members. Then they make all these calls over a row of blocks, read the files again, and look at
 * the end of the picture. The first argument is a folder. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>
#include <ferry/member.h>
#include <ferry/mover_file.h>

#include "../support/survive.h"
#include "check_that.h"

enum { WIDTH = 10 };

/* The member `distance` places after this rank. */
static int member_after(const ferry *f, int distance)
{
    const int place = ferry_member_place(f, ferry_rank(f)) + distance;
    return ferry_member_rank(f, place % ferry_member_count(f));
}

static ferry_region row(const ferry *f)
{
    const int64_t extent = (int64_t)WIDTH * ferry_member_count(f);
    return ferry_region_sized(1, &extent);
}

static ferry_halo halo_of(const ferry *f)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.low = halo.high = ferry_point_of(1, 0, 0);
    halo.domain = row(f);
    halo.periodic[0] = true;
    return halo;
}

/* Each member has a block, knows the two beside it, and numbers them by place. */
static ferry_floorplan share_row(ferry *f)
{
    const int count = ferry_member_count(f), place = ferry_member_place(f, ferry_rank(f));
    const ferry_halo halo = halo_of(f);
    ferry_floorplan own = {.dims = 1}, out;
    ferry_regions near = {0};
    const ferry_region mine = ferry_floorplan_part(row(f), ferry_point_of(count, 1, 1), place);
    CHECK(ferry_floorplan_add(&own, mine, 0) == 0);
    CHECK(ferry_halo_near(&own, &halo, &near) == 0);
    CHECK(ferry_floorplan_share(f, &own, &near, &out) == 0);
    CHECK(out.total == (size_t)count);
    const ferry_block *next = ferry_floorplan_block(&out, (place + 1) % count);
    CHECK(next != NULL && next->owner == member_after(f, 1));
    ferry_floorplan_fini(&own);
    ferry_regions_fini(&near);
    return out;
}

static double value_at(int64_t i)
{
    return 7 * (double)i + 1;
}

static void fill(ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count; i++) {
        const ferry_region inner = ferry_region_shrink(x->grids[i].region, x->ghosts);
        ferry_point p = inner.low;
        do
            *(double *)ferry_grid_at(&x->grids[i], p) = value_at(p.at[0]);
        while (ferry_region_next(&inner, &p));
    }
}

/* Moves, and checks every element, ghost cells too. */
static void move_and_check(ferry *f, ferry_mover *m, const ferry_xarray *x)
{
    const int64_t all = (int64_t)ferry_region_size(row(f));
    CHECK(ferry_mover_start(m, NULL) == 0);
    CHECK(ferry_mover_wait(m) == 0);
    for (size_t i = 0; i < x->local_count; i++) {
        const ferry_region whole = x->grids[i].region;
        ferry_point p = whole.low;
        do
            CHECK(*(double *)ferry_grid_at(&x->grids[i], p) == value_at((p.at[0] + all) % all));
        while (ferry_region_next(&whole, &p));
    }
}

/* Each member gives its block to the next. */
static void remap_row(ferry *f, ferry_xarray *x)
{
    int32_t *owners = calloc(x->blocks.count, sizeof *owners);
    CHECK(owners != NULL);
    for (size_t i = 0; i < x->blocks.count; i++) {
        const int place = ferry_member_place(f, x->blocks.blocks[i].owner);
        owners[i] = ferry_member_rank(f, (place + 1) % ferry_member_count(f));
    }
    CHECK(ferry_xarray_remap(x, owners) == 0);
    free(owners);
}

/* The first element of the next member stands in this rank's second. */
static void move_ghosts(ferry *f)
{
    double data[2] = {ferry_rank(f), -1};
    const int64_t extent = 2;
    const ferry_grid grid = ferry_grid_over(ferry_region_sized(1, &extent), sizeof *data, data);
    const ferry_ghost ghost = {.local = 1, .remote = 0, .owner = member_after(f, 1)};
    const ferry_ghosts ghosts = {.items = &ghost, .count = 1};
    ferry_mover *m;
    CHECK(ferry_mover_bind_ghosts(f, &ghosts, &grid, &grid, NULL, &m) == 0);
    CHECK(ferry_mover_start(m, NULL) == 0);
    CHECK(ferry_mover_wait(m) == 0);
    CHECK(data[1] == member_after(f, 1));
    CHECK(ferry_mover_free(m) == 0);
}

static bool ends_with(const char *path, const char *text)
{
    char tail[64] = "";
    const long length = (long)strlen(text);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    const bool found = fseek(file, -length, SEEK_END) == 0 &&
                       fread(tail, 1, (size_t)length, file) == (size_t)length &&
                       memcmp(tail, text, (size_t)length) == 0;
    fclose(file);
    return found;
}

static void write_files(ferry *f, ferry_xarray *x, const char *folder)
{
    char path[512], index[520];
    snprintf(path, sizeof path, "%s/members_%d", folder, ferry_member_rank(f, 0));
    snprintf(index, sizeof index, "%s.pvti", path);
    CHECK(ferry_vtk_write(x, path, NULL) == 0);
    CHECK(ends_with(index, "</VTKFile>\n"));
    CHECK(ferry_checkpoint_write(x, path) == 0);
    CHECK(ferry_checkpoint_read(path, x) == 0);
    const int written = ferry_dataset_write(x, path, NULL);
    CHECK(written == 0 || written == FERRY_ENOTSUP);
    if (written == 0)
        CHECK(ferry_dataset_read(path, NULL, x) == 0);
}

static void use_members(ferry *f, const char *folder)
{
    const ferry_halo halo = halo_of(f);
    ferry_floorplan blocks = share_row(f);
    ferry_plan plan = {0};
    ferry_xarray *x;
    ferry_mover *m;
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_of(1, 0, 0), &x) == 0);
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, NULL, &m) == 0);
    fill(x);
    move_and_check(f, m, x);
    write_files(f, x, folder);
    remap_row(f, x);
    move_and_check(f, m, x);
    CHECK(ferry_mover_free(m) == 0);
    move_ghosts(f);
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&blocks);
    ferry_plan_fini(&plan);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc < 2)
        return 2;
    CHECK(survive_deaths(f) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (argc > 2 && ferry_rank(f) == atoi(argv[2]))
        raise(SIGKILL);
    if (argc > 2)
        CHECK(survive_quiesce(f) == 0);
    use_members(f, argv[1]);
    return ferry_barrier(f);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
