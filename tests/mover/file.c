/* Goal: a checkpoint brings every value back on any decomposition. It is refused when any byte of
 * it has changed or it is cut. A failing write leaves the earlier one. Pictures have the sizes that
 * they state. Method: a program of any number of ranks; values made of coordinates. The first
 * argument is a folder. The second says what else to do:
 * - absent: the plug-in for HDF5 cannot be found
 * - show, show-hdf5: leave pictures in the folder for open_pictures.py
 * - keep, resume: write a checkpoint in one job, and read it in others */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ferry/ferry.h>
#include <ferry/mover_file.h>

#include "check_that.h"
#include "dice.h"
#include "shares.h"

static double value_of(ferry_point p)
{
    return (double)(p.at[0] * 10000 + p.at[1] * 100 + p.at[2]);
}

static ferry_xarray *make_of(ferry *f, int64_t extent, int ghosts, bool shares)
{
    int64_t extents[3] = {12, 10, 8};
    ferry_floorplan blocks;
    ferry_xarray *x;
    CHECK(ferry_floorplan_tile(ferry_region_sized(3, extents), ferry_point_all(extent), &blocks) ==
          0);
    CHECK(ferry_floorplan_map_cyclic(&blocks, ferry_ranks(f), 1) == 0);
    if (shares)
        blocks = only_own(f, &blocks);
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_all(ghosts), &x) == 0);
    ferry_floorplan_fini(&blocks);
    return x;
}

static ferry_xarray *make(ferry *f, int64_t extent, int ghosts)
{
    return make_of(f, extent, ghosts, false);
}

static void fill(ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_point p = x->grids[i].region.low;
        do
            *(double *)ferry_grid_at(&x->grids[i], p) = value_of(p);
        while (ferry_region_next(&x->grids[i].region, &p));
    }
}

static void check_values(ferry *f, const ferry_xarray *x)
{
    int64_t extents[3] = {12, 10, 8};
    ferry_region domain = ferry_region_sized(3, extents);
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_point p = x->grids[i].region.low;
        do {
            double wanted = ferry_region_contains_point(domain, p) ? value_of(p) : 0;
            CHECK(*(double *)ferry_grid_at(&x->grids[i], p) == wanted);
        } while (ferry_region_next(&x->grids[i].region, &p));
    }
}

/* Changes one byte; returns what it was. */
static int poke(ferry *f, const char *path, long at, int value)
{
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL && fseek(file, at, SEEK_SET) == 0);
    int old = fgetc(file);
    CHECK(fseek(file, at, SEEK_SET) == 0);
    fputc(value < 0 ? old ^ 0x40 : value, file);
    CHECK(fclose(file) == 0);
    return old;
}

/* On rank 0: bytes of header, table and data, one by one, make reading fail. */
static void damage(ferry *f, const char *path, ferry_xarray *x)
{
    for (long at = 0; at < 48 + 3 * 128; at += 5) {
        int old = poke(f, path, at, -1);
        CHECK(ferry_checkpoint_read(path, x) == FERRY_EINVAL);
        poke(f, path, at, old);
    }
    const long data = 16384; /* in one of the blocks */
    int old = poke(f, path, data + 100, -1);
    int error = ferry_checkpoint_read(path, x);
    CHECK(error == FERRY_EINVAL || error == 0);
    poke(f, path, data + 100, old);
    struct stat status;
    CHECK(stat(path, &status) == 0 && truncate(path, status.st_size - 4096) == 0);
    CHECK(ferry_checkpoint_read(path, x) == FERRY_EINVAL);
}

/* A limit of file sizes counts as a full disk. The ranks may be threads, which have one limit. */
static void limited(ferry *f, const ferry_xarray *x, const char *path)
{
    struct rlimit before, low;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    low = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    CHECK(ferry_barrier(f) == 0 && setrlimit(RLIMIT_FSIZE, &low) == 0);
    CHECK(ferry_barrier(f) == 0);
    CHECK(ferry_checkpoint_write(x, path) == FERRY_ESYSTEM);
    CHECK(ferry_barrier(f) == 0 && setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(ferry_barrier(f) == 0);
}

static void checkpoints(ferry *f, const char *path)
{
    ferry_xarray *x = make(f, 5, 1), *coarse = make(f, 12, 2), *fine = make(f, 3, 0);
    ferry_floorplan blocks;
    size_t element_bytes;
    fill(x);
    CHECK(ferry_checkpoint_write(x, path) == 0);
    CHECK(ferry_checkpoint_read(path, coarse) == 0);
    check_values(f, coarse);
    CHECK(ferry_checkpoint_read(path, fine) == 0);
    check_values(f, fine);
    ferry_xarray *many = make(f, 1, 0); /* more records than are held at a time */
    fill(many);
    CHECK(ferry_checkpoint_write(many, path) == 0);
    for (size_t i = 0; i < fine->local_count; i++)
        *(double *)fine->grids[i].data = -1;
    CHECK(ferry_checkpoint_read(path, fine) == 0);
    check_values(f, fine);
    ferry_xarray_destroy(many);
    CHECK(ferry_checkpoint_write(x, path) == 0);
    CHECK(ferry_checkpoint_plan(f, path, &blocks, &element_bytes) == 0);
    CHECK(blocks.count == x->blocks.count && element_bytes == sizeof(double));
    for (size_t i = 0; i < blocks.count; i++)
        CHECK(ferry_region_equal(blocks.blocks[i].region, x->blocks.blocks[i].region));
    ferry_floorplan_fini(&blocks);
    limited(f, x, path);
    CHECK(ferry_checkpoint_read("/nonexistent/file", x) == FERRY_ENOENT);
    CHECK(ferry_checkpoint_write(x, "/nonexistent/file") == FERRY_ESYSTEM);
    CHECK(strstr(ferry_error_message(f), ferry_rank(f) == 0 ? "cannot create /nonexistent/file"
                                                            : "on rank 0: FERRY_ESYSTEM") != NULL);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0) {
        damage(f, path, x);
        unlink(path);
    }
    ferry_xarray_destroy(x);
    ferry_xarray_destroy(coarse);
    ferry_xarray_destroy(fine);
}

static void pictures(ferry *f, const char *path)
{
    char name[600];
    ferry_xarray *x = make(f, 5, 1);
    ferry_vtk picture = FERRY_VTK_DEFAULTS;
    picture.name = "density";
    CHECK(ferry_vtk_write(x, path, &picture) == 0);
    picture.name = "a\"b";
    CHECK(ferry_vtk_write(x, path, &picture) == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), "the name is a\"b, expected none of") != NULL);
    CHECK(ferry_barrier(f) == 0);
    for (size_t i = 0; i < x->blocks.count && ferry_rank(f) == 0; i++) {
        struct stat status;
        uint64_t bytes = ferry_region_size(x->blocks.blocks[i].region) * sizeof(double);
        snprintf(name, sizeof name, "%s_%zu.vti", path, i);
        CHECK(stat(name, &status) == 0 && (uint64_t)status.st_size > bytes);
        CHECK((uint64_t)status.st_size < bytes + 1000);
        unlink(name);
    }
    snprintf(name, sizeof name, "%s.pvti", path);
    if (ferry_rank(f) == 0)
        CHECK(unlink(name) == 0);
    ferry_xarray_destroy(x);
}

/* The pictures that open_pictures.py opens; it knows their values. */
static void show(ferry *f, const char *folder, bool hdf5)
{
    char path[512];
    ferry_xarray *x = make_of(f, 5, 1, true);
    ferry_vtk picture = FERRY_VTK_DEFAULTS;
    picture.name = "density";
    for (int d = 0; d < 3; d++) {
        picture.origin[d] = d + 1;
        picture.spacing[d] = 0.25 * (d + 1);
    }
    fill(x);
    snprintf(path, sizeof path, "%s/shown", folder);
    CHECK(ferry_vtk_write(x, path, &picture) == 0);
    snprintf(path, sizeof path, "%s/shown.vtkhdf", folder);
    CHECK(!hdf5 || ferry_vtk_write(x, path, &picture) == 0);
    picture.points = true;
    snprintf(path, sizeof path, "%s/points.vtkhdf", folder);
    CHECK(!hdf5 || ferry_vtk_write(x, path, &picture) == 0);
    ferry_xarray_destroy(x);
}

/* A checkpoint for other jobs; `resume` is one, of another number of ranks. */
static void keep(ferry *f, const char *folder)
{
    char path[512];
    ferry_xarray *x = make(f, 5, 1);
    snprintf(path, sizeof path, "%s/kept", folder);
    fill(x);
    CHECK(ferry_checkpoint_write(x, path) == 0);
    ferry_xarray_destroy(x);
}

static void resume(ferry *f, const char *folder)
{
    char path[512];
    ferry_floorplan blocks;
    ferry_xarray *x;
    size_t element_bytes;
    snprintf(path, sizeof path, "%s/kept", folder);
    CHECK(ferry_checkpoint_plan(f, path, &blocks, &element_bytes) == 0);
    CHECK(element_bytes == sizeof(double));
    int most = 0;
    for (size_t i = 0; i < blocks.count; i++)
        most = blocks.blocks[i].owner > most ? blocks.blocks[i].owner : most;
    if (most >= ferry_ranks(f)) { /* owners of the other job */
        CHECK(ferry_xarray_create(f, &blocks, element_bytes, ferry_point_all(1), &x) ==
              FERRY_EINVAL);
        CHECK(strstr(ferry_error_message(f), "belongs to rank") != NULL);
    }
    CHECK(ferry_floorplan_map_curve(&blocks, ferry_ranks(f), NULL) == 0);
    CHECK(ferry_xarray_create(f, &blocks, element_bytes, ferry_point_all(1), &x) == 0);
    CHECK(ferry_checkpoint_read(path, x) == 0);
    check_values(f, x);
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&blocks);
}

/* Without the plug-in for HDF5 rank 0 says what is missing; all fail, and nothing is left. */
static void without_hdf5(ferry *f, const char *path)
{
    char name[600];
    ferry_xarray *x = make(f, 5, 1);
    bool first = ferry_rank(f) == 0;
    snprintf(name, sizeof name, "%s.vtkhdf", path);
    for (int i = 0; i < 2; i++) {
        int error = i == 0 ? ferry_dataset_write(x, path, NULL) : ferry_vtk_write(x, name, NULL);
        CHECK(error == FERRY_ENOTSUP);
        CHECK(!first || strstr(ferry_error_message(f), "ferry-hdf5.so") != NULL);
    }
    CHECK(ferry_dataset_read(path, NULL, x) == FERRY_ENOENT);
    CHECK(access(path, F_OK) != 0 && access(name, F_OK) != 0);
    ferry_xarray_destroy(x);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    char path[512];
    snprintf(path, sizeof path, "%s/mover_file_%s_%d", argc > 1 ? argv[1] : ".",
             argc > 2 ? argv[2] : "0", ferry_ranks(f));
    if (argc > 2 && strcmp(argv[2], "absent") == 0) {
        without_hdf5(f, path);
        return 0;
    }
    if (argc > 2 && (strcmp(argv[2], "keep") == 0 || strcmp(argv[2], "resume") == 0)) {
        (strcmp(argv[2], "keep") == 0 ? keep : resume)(f, argv[1]);
        return 0;
    }
    if (argc > 2 && strncmp(argv[2], "show", 4) == 0) {
        show(f, argv[1], strcmp(argv[2], "show-hdf5") == 0);
        return 0;
    }
    checkpoints(f, path);
    pictures(f, path);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
