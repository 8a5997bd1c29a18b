/* Goal: what Ferry writes as HDF5 the HDF5 library reads, and so does Ferry on any decomposition
 * and number of ranks; .vtkhdf files have what VTK's documentation asks for; files and blocks that
 * do not fit are refused, with what was expected, and an earlier file stays. Method: a program of
 * any number of ranks that writes, or reads what it has written in another run, or makes bad files
 * with the HDF5 library; numbers made of coordinates. Arguments: write, read or bad, and where the
 * files are.
 */
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

#include <ferry/mover_file.h>

#include "cells.h"
#include "shares.h"

typedef struct kind {
    const char *file, *name, *full; /* full: of the dataset in the file */
    ferry_number number;
    int components, dims;
    int64_t low[4], high[4];
} kind;

static const kind kinds[] = {
    {"double.h5",
     "run/step 1/heat",
     "run/step 1/heat",
     FERRY_NUMBER_DOUBLE,
     1,
     3,
     {0, 0, 0, 0},
     {11, 9, 7, 0}},
    {"float.h5", "value", "value", FERRY_NUMBER_FLOAT, 3, 2, {-3, 5, 0, 0}, {5, 18, 0, 0}},
    {"int32.h5", "value", "value", FERRY_NUMBER_INT32, 1, 1, {2, 0, 0, 0}, {38, 0, 0, 0}},
    {"int64.h5", "value", "value", FERRY_NUMBER_INT64, 2, 4, {0, 1, 2, 3}, {3, 4, 6, 8}},
    {"double.vtkhdf",
     "heat",
     "VTKHDF/CellData/heat",
     FERRY_NUMBER_DOUBLE,
     1,
     3,
     {4, -2, 0, 0},
     {11, 9, 7, 0}},
    {"float.vtkhdf",
     "flow",
     "VTKHDF/CellData/flow",
     FERRY_NUMBER_FLOAT,
     3,
     2,
     {0, 0, 0, 0},
     {8, 20, 0, 0}},
    {"int32.vtkhdf",
     "value",
     "VTKHDF/CellData/value",
     FERRY_NUMBER_INT32,
     1,
     1,
     {0, 0, 0, 0},
     {40, 0, 0, 0}},
    {"points.vtkhdf",
     "heat",
     "VTKHDF/PointData/heat",
     FERRY_NUMBER_DOUBLE,
     1,
     3,
     {4, -2, 0, 0},
     {11, 9, 7, 0}},
    {"thin.vtkhdf",
     "heat",
     "VTKHDF/PointData/heat",
     FERRY_NUMBER_INT64,
     1,
     3,
     {3, 0, 1, 0},
     {3, 9, 7, 0}},
    {"plane.vtkhdf",
     "flow",
     "VTKHDF/PointData/flow",
     FERRY_NUMBER_FLOAT,
     3,
     2,
     {0, 3, 0, 0},
     {8, 20, 0, 0}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool is_picture(const kind *k)
{
    return strstr(k->file, ".vtkhdf") != NULL;
}

static bool has_points(const kind *k)
{
    return strstr(k->full, "PointData") != NULL;
}

/* Of cells VTK has three in a picture; of points, none for a last axis with one point. */
static int array_dims(const kind *k)
{
    if (has_points(k))
        return k->dims - (k->high[0] == k->low[0]);
    return is_picture(k) ? 3 : k->dims;
}

static size_t number_bytes(const kind *k)
{
    return k->number == FERRY_NUMBER_FLOAT || k->number == FERRY_NUMBER_INT32 ? 4 : 8;
}

static hid_t memory_type(const kind *k)
{
    return k->number == FERRY_NUMBER_DOUBLE  ? H5T_NATIVE_DOUBLE
           : k->number == FERRY_NUMBER_FLOAT ? H5T_NATIVE_FLOAT
           : k->number == FERRY_NUMBER_INT32 ? H5T_NATIVE_INT32
                                             : H5T_NATIVE_INT64;
}

static double number_at(const kind *k, const void *at, int component)
{
    switch (k->number) {
    case FERRY_NUMBER_DOUBLE:
        return ((const double *)at)[component];
    case FERRY_NUMBER_FLOAT:
        return (double)((const float *)at)[component];
    case FERRY_NUMBER_INT32:
        return ((const int32_t *)at)[component];
    default:
        return (double)((const int64_t *)at)[component];
    }
}

static void set_number(const kind *k, void *at, int component, double value)
{
    switch (k->number) {
    case FERRY_NUMBER_DOUBLE:
        ((double *)at)[component] = value;
        break;
    case FERRY_NUMBER_FLOAT:
        ((float *)at)[component] = (float)value;
        break;
    case FERRY_NUMBER_INT32:
        ((int32_t *)at)[component] = (int32_t)value;
        break;
    default:
        ((int64_t *)at)[component] = (int64_t)value;
    }
}

static double wanted_at(const kind *k, ferry_point p, int component)
{
    return value_of(p, k->dims, component + 1);
}

static ferry_region domain_of(const kind *k)
{
    return ferry_region_make(k->dims, k->low, k->high);
}

static ferry_xarray *make(ferry *f, const kind *k, int64_t extent, int ghosts)
{
    ferry_floorplan blocks;
    ferry_xarray *x;
    size_t bytes = number_bytes(k) * (size_t)k->components;
    CHECK(ferry_floorplan_tile(domain_of(k), ferry_point_all(extent), &blocks) == 0);
    CHECK(ferry_map_cyclic(&blocks, ferry_ranks(f), 1) == 0);
    if ((k->dims + extent) % 2 != 0)
        blocks = only_own(f, &blocks);
    CHECK(ferry_xarray_create(f, &blocks, bytes, ferry_point_all(ghosts), &x) == 0);
    ferry_floorplan_fini(&blocks);
    return x;
}

/* Own cells as wanted; ghost cells, which no file may show, 99. */
static void give_numbers(const kind *k, ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_region own = ferry_floorplan_block(&x->blocks, x->local[i])->region;
        ferry_point p = x->grids[i].region.low;
        do
            for (int c = 0; c < k->components; c++)
                set_number(k, ferry_grid_at(&x->grids[i], p), c,
                           ferry_region_contains_point(own, p) ? wanted_at(k, p, c) : 99);
        while (ferry_region_next(&x->grids[i].region, &p));
    }
}

static void check_numbers(ferry *f, const kind *k, const ferry_xarray *x)
{
    ferry_region domain = domain_of(k);
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_point p = x->grids[i].region.low;
        do
            for (int c = 0; c < k->components; c++) {
                double is = number_at(k, ferry_grid_at(&x->grids[i], p), c);
                CHECK(is == (ferry_region_contains_point(domain, p) ? wanted_at(k, p, c) : 0));
            }
        while (ferry_region_next(&x->grids[i].region, &p));
    }
}

static const char *path_of(char path[600], const char *prefix, const char *file)
{
    if (snprintf(path, 600, "%s%s", prefix, file) >= 600)
        abort();
    return path;
}

static int write_kind(const kind *k, const ferry_xarray *x, const char *path, const char *name)
{
    ferry_dataset dataset = FERRY_DATASET_DEFAULTS;
    ferry_picture picture = FERRY_PICTURE_DEFAULTS;
    dataset.name = picture.name = name;
    dataset.number = picture.number = k->number;
    picture.points = has_points(k);
    for (int d = 0; d < 3; d++) {
        picture.origin[d] = d + 0.5;
        picture.spacing[d] = d == 1 ? 0 : d + 2.0;
    }
    return is_picture(k) ? ferry_picture_write(x, path, &picture)
                         : ferry_dataset_write(x, path, &dataset);
}

static int read_kind(const kind *k, ferry_xarray *x, const char *path)
{
    ferry_dataset dataset = FERRY_DATASET_DEFAULTS;
    dataset.name = k->full;
    dataset.number = k->number;
    return ferry_dataset_read(path, &dataset, x);
}

static void check_numbers_in_file(ferry *f, const kind *k, const char *path)
{
    ferry_region domain = domain_of(k);
    size_t bytes = number_bytes(k), count = (size_t)ferry_region_size(domain);
    char *values = calloc(count * (size_t)k->components, bytes);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t array = H5Dopen2(file, k->full, H5P_DEFAULT), space = H5Dget_space(array);
    int dims = array_dims(k) + (k->components > 1);
    CHECK(values != NULL && H5Sget_simple_extent_ndims(space) == dims);
    CHECK(H5Sget_simple_extent_npoints(space) == (hssize_t)count * k->components);
    CHECK(H5Dread(array, memory_type(k), H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    ferry_grid grid = ferry_grid_over(domain, bytes * (size_t)k->components, values);
    ferry_point p = domain.low;
    do
        for (int c = 0; c < k->components; c++)
            CHECK(number_at(k, ferry_grid_at(&grid, p), c) == wanted_at(k, p, c));
    while (ferry_region_next(&domain, &p));
    CHECK(H5Sclose(space) >= 0 && H5Dclose(array) >= 0 && H5Fclose(file) >= 0);
    free(values);
}

static void read_attribute(ferry *f, hid_t file, const char *where, const char *name, hid_t type,
                           hssize_t count, void *out)
{
    hid_t attribute = H5Aopen_by_name(file, where, name, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Aget_space(attribute);
    CHECK(H5Sget_simple_extent_npoints(space) == count && H5Aread(attribute, type, out) >= 0);
    CHECK(H5Sclose(space) >= 0 && H5Aclose(attribute) >= 0);
}

static void check_text(ferry *f, hid_t file, const char *where, const char *name,
                       const char *wanted)
{
    char text[64] = {0};
    hid_t attribute = H5Aopen_by_name(file, where, name, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute);
    CHECK(H5Tget_class(type) == H5T_STRING && H5Tget_cset(type) == H5T_CSET_ASCII);
    CHECK(H5Tis_variable_str(type) == 0 && H5Tget_size(type) == strlen(wanted));
    CHECK(H5Aread(attribute, type, text) >= 0 && strcmp(text, wanted) == 0);
    CHECK(H5Tclose(type) >= 0 && H5Aclose(attribute) >= 0);
}

/* VTK's axes are Ferry's in reverse. */
static void check_image(ferry *f, const kind *k, const char *path)
{
    int extent[6], version[2], points = has_points(k);
    double origin[3], spacing[3], direction[9];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(file >= 0);
    read_attribute(f, file, "VTKHDF", "Version", H5T_NATIVE_INT, 2, version);
    read_attribute(f, file, "VTKHDF", "WholeExtent", H5T_NATIVE_INT, 6, extent);
    read_attribute(f, file, "VTKHDF", "Origin", H5T_NATIVE_DOUBLE, 3, origin);
    read_attribute(f, file, "VTKHDF", "Spacing", H5T_NATIVE_DOUBLE, 3, spacing);
    read_attribute(f, file, "VTKHDF", "Direction", H5T_NATIVE_DOUBLE, 9, direction);
    check_text(f, file, "VTKHDF", "Type", "ImageData");
    check_text(f, file, points ? "VTKHDF/PointData" : "VTKHDF/CellData", "Scalars", k->name);
    CHECK(version[0] == 1 && version[1] == 0);
    for (int i = 0; i < 9; i++)
        CHECK(direction[i] == (i % 4 == 0));
    for (int axis = 0; axis < 3; axis++) {
        int d = k->dims - 1 - axis;
        double step = d < 0 || d == 1 ? 1 : d + 2.0;
        double first = d < 0 ? 0 : d + 0.5 + (double)k->low[d] * step;
        int cells = d < 0 ? 1 : (int)(k->high[d] - k->low[d]) + 1;
        CHECK(spacing[axis] == step && extent[2 * axis] == 0);
        CHECK(extent[2 * axis + 1] == cells - points);
        CHECK(origin[axis] == first + (points ? step / 2 : 0));
    }
    CHECK(H5Fclose(file) >= 0);
}

static void write_kinds(ferry *f, const char *prefix)
{
    char path[600];
    for (int i = 0; i < KINDS; i++) {
        const kind *k = &kinds[i];
        ferry_xarray *x = make(f, k, 4, i % 2);
        give_numbers(k, x);
        CHECK(write_kind(k, x, path_of(path, prefix, k->file), k->name) == 0);
        if (ferry_rank(f) == 0)
            check_numbers_in_file(f, k, path);
        if (ferry_rank(f) == 0 && is_picture(k))
            check_image(f, k, path);
        ferry_xarray_destroy(x);
    }
}

static void read_kinds(ferry *f, const char *prefix)
{
    char path[600];
    for (int i = 0; i < KINDS; i++)
        for (int extent = 3; extent <= 60; extent += 57) {
            ferry_xarray *x = make(f, &kinds[i], extent, extent % 2 + 1);
            CHECK(read_kind(&kinds[i], x, path_of(path, prefix, kinds[i].file)) == 0);
            check_numbers(f, &kinds[i], x);
            ferry_xarray_destroy(x);
        }
}

/* How a dataset of another program differs from what is expected. */
typedef struct foreign {
    const char *says; /* in rank 0's message; NULL: it is read */
    int layout;       /* H5D_layout_t, or -1: late */
    int dims;
    hsize_t extent[3];
} foreign;

static hid_t foreign_type(size_t i)
{
    return i == 0   ? H5T_IEEE_F64BE
           : i == 1 ? H5T_IEEE_F32LE
           : i == 2 ? H5T_STD_U64LE
                    : H5T_IEEE_F64LE;
}

static const foreign foreigners[] = {
    {"big-endian floats of 64 bits, expected little-endian float64", H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {"floats of 32 bits, expected little-endian float64", H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {"unsigned integers of 64 bits, expected", H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {"extents 5 x 6, expected 6 x 5", H5D_CONTIGUOUS, 2, {5, 6, 0}},
    {"extents 6 x 5 x 1, expected 6 x 5", H5D_CONTIGUOUS, 3, {6, 5, 1}},
    {"extents 30, expected 6 x 5", H5D_CONTIGUOUS, 1, {30, 0, 0}},
    {"is chunked or compressed, expected a contiguous one", H5D_CHUNKED, 2, {6, 5, 0}},
    {"is compact, expected a contiguous one", H5D_COMPACT, 2, {6, 5, 0}},
    {"has never been written", -1, 2, {6, 5, 0}},
    {NULL, H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {NULL, H5D_CONTIGUOUS, 3, {1, 6, 5}},
};

static void make_foreign(ferry *f, const char *path, const kind *k, size_t i)
{
    const foreign *g = &foreigners[i];
    double values[30];
    ferry_region domain = domain_of(k);
    ferry_point p = domain.low;
    int n = 0;
    do
        values[n++] = wanted_at(k, p, 0);
    while (ferry_region_next(&domain, &p));
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(g->dims, g->extent, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_layout(how, g->layout < 0 ? H5D_CONTIGUOUS : (H5D_layout_t)g->layout) >= 0);
    CHECK(g->layout != H5D_CHUNKED || H5Pset_chunk(how, g->dims, g->extent) >= 0);
    hid_t array = H5Dcreate2(file, "value", foreign_type(i), space, H5P_DEFAULT, how, H5P_DEFAULT);
    CHECK(array >= 0);
    CHECK(g->layout < 0 ||
          H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    CHECK(H5Dclose(array) >= 0 && H5Pclose(how) >= 0 && H5Sclose(space) >= 0);
    CHECK(H5Fclose(file) >= 0);
}

static bool refused(ferry *f, int error, const char *says)
{
    bool first = ferry_rank(f) == 0;
    return error == FERRY_EINVAL && (!first || strstr(ferry_error_message(f), says) != NULL);
}

static const kind small = {"bad.h5", "value", "value",      FERRY_NUMBER_DOUBLE,
                           1,        2,       {0, 0, 0, 0}, {5, 4, 0, 0}};

static void read_foreign(ferry *f, const char *path)
{
    ferry_xarray *x = make(f, &small, 2, 1);
    for (size_t i = 0; i < sizeof foreigners / sizeof *foreigners; i++) {
        if (ferry_rank(f) == 0)
            make_foreign(f, path, &small, i);
        CHECK(ferry_barrier(f) == 0);
        int error = read_kind(&small, x, path);
        if (foreigners[i].says != NULL)
            CHECK(refused(f, error, foreigners[i].says));
        else
            CHECK(error == 0);
        if (error == 0)
            check_numbers(f, &small, x);
        CHECK(ferry_barrier(f) == 0);
    }
    ferry_xarray_destroy(x);
}

/* A file that lost its end, at every length; and no HDF5 file, no such dataset, no file. */
static void read_damaged(ferry *f, const char *path)
{
    ferry_xarray *x = make(f, &small, 2, 0);
    kind other = small;
    other.full = "nothing";
    give_numbers(&small, x);
    CHECK(write_kind(&small, x, path, small.name) == 0);
    CHECK(refused(f, read_kind(&other, x, path), "nothing"));
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    long length = ftell(file);
    (void)fclose(file);
    for (long left = length - 1; left >= 0; left = left > 100 ? left - 97 : left - 50) {
        if (ferry_rank(f) == 0)
            CHECK(truncate(path, left) == 0);
        CHECK(ferry_barrier(f) == 0);
        CHECK(refused(f, read_kind(&small, x, path), path));
    }
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0)
        CHECK(unlink(path) == 0);
    CHECK(ferry_barrier(f) == 0);
    CHECK(read_kind(&small, x, path) == FERRY_ENOENT);
    ferry_xarray_destroy(x);
}

/* Block 0 is a row higher or lower than it should be; the rank in whose part of the whole that is
 * says so. */
static void write_bad_shares(ferry *f, const char *path)
{
    ferry_xarray *x = make(f, &small, 3, 0);
    CHECK(x->blocks.numbers != NULL);
    for (int change = -1; change <= 1; change += 2) {
        ferry_block *first = ferry_rank(f) == 0 ? &x->blocks.blocks[0] : NULL;
        if (first != NULL)
            first->region.high.at[0] += change;
        uint64_t told;
        CHECK(write_kind(&small, x, path, "value") == FERRY_EINVAL);
        const char *says = ferry_error_message(f);
        told = strstr(says, change > 0 ? "overlaps block" : "no block has [") != NULL;
        CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &told, &told, 1) == 0 && told > 0);
        if (first != NULL)
            first->region.high.at[0] -= change;
    }
    ferry_xarray_destroy(x);
}

/* What cannot be written leaves the earlier file, and no other. */
static void write_badly(ferry *f, const char *path)
{
    char other[600];
    ferry_xarray *x = make(f, &small, 2, 0);
    kind picture = small, odd = small;
    picture.file = "bad.vtkhdf";
    odd.number = (ferry_number)4;
    give_numbers(&small, x);
    CHECK(write_kind(&small, x, path, small.name) == 0);
    CHECK(refused(f, write_kind(&odd, x, path, "value"), "numbers 4"));
    CHECK(refused(f, write_kind(&small, x, path, ""), "name"));
    CHECK(refused(f, write_kind(&picture, x, path_of(other, path, ".vtkhdf"), "a/b"), "a/b"));
    CHECK(write_kind(&small, x, path, "/") < 0);
    CHECK(write_kind(&small, x, "/nonexistent/file.h5", "value") < 0);
    write_bad_shares(f, path);
    ferry_region region = x->blocks.blocks[0].region;
    x->blocks.blocks[0].region.high.at[0]++;
    CHECK(refused(f, write_kind(&small, x, path, "value"), "block 0"));
    x->blocks.blocks[0].region = region;
    x->blocks.blocks[0].region.high.at[0]--;
    CHECK(refused(f, write_kind(&small, x, path, "value"), "[1:1,0:1]"));
    x->blocks.blocks[0].region = region;
    CHECK(access(path_of(other, path, ".new"), F_OK) != 0);
    CHECK(read_kind(&small, x, path) == 0);
    check_numbers(f, &small, x);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0)
        CHECK(unlink(path) == 0);
    ferry_xarray_destroy(x);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    char path[600];
    CHECK(argc > 2);
    if (ferry_rank(f) == 0) /* the library may not be thread-safe, and only rank 0 calls it */
        (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (strcmp(argv[1], "write") == 0) {
        write_kinds(f, argv[2]);
    } else if (strcmp(argv[1], "read") == 0) {
        read_kinds(f, argv[2]);
    } else {
        read_foreign(f, path_of(path, argv[2], small.file));
        read_damaged(f, path);
        write_badly(f, path);
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
