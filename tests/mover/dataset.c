/* Goal: what Ferry writes as HDF5 the HDF5 library reads, and so does Ferry on any decomposition
 * and number of ranks; .vtkhdf files have what VTK's documentation asks for. Method: a program of
 * any number of ranks that writes, or reads what it has written in another run. Arguments: write or
 * read, and where the files are.
 */
#include <string.h>
#include <unistd.h>

#include "kinds.h"

static const kind kinds[] = {
    {"double.h5",
     "run/step 1/heat",
     "run/step 1/heat",
     FERRY_DOUBLE,
     1,
     3,
     {0, 0, 0, 0},
     {11, 9, 7, 0}},
    {"float.h5", "value", "value", FERRY_FLOAT, 3, 2, {-3, 5, 0, 0}, {5, 18, 0, 0}},
    {"int32.h5", "value", "value", FERRY_INT32, 1, 1, {2, 0, 0, 0}, {38, 0, 0, 0}},
    {"int64.h5", "value", "value", FERRY_INT64, 2, 4, {0, 1, 2, 3}, {3, 4, 6, 8}},
    {"double.vtkhdf",
     "heat",
     "VTKHDF/CellData/heat",
     FERRY_DOUBLE,
     1,
     3,
     {4, -2, 0, 0},
     {11, 9, 7, 0}},
    {"float.vtkhdf",
     "flow",
     "VTKHDF/CellData/flow",
     FERRY_FLOAT,
     3,
     2,
     {0, 0, 0, 0},
     {8, 20, 0, 0}},
    {"int32.vtkhdf",
     "value",
     "VTKHDF/CellData/value",
     FERRY_INT32,
     1,
     1,
     {0, 0, 0, 0},
     {40, 0, 0, 0}},
    {"points.vtkhdf",
     "heat",
     "VTKHDF/PointData/heat",
     FERRY_DOUBLE,
     1,
     3,
     {4, -2, 0, 0},
     {11, 9, 7, 0}},
    {"thin.vtkhdf", "heat", "VTKHDF/PointData/heat", FERRY_INT64, 1, 3, {3, 0, 1, 0}, {3, 9, 7, 0}},
    {"plane.vtkhdf",
     "flow",
     "VTKHDF/PointData/flow",
     FERRY_FLOAT,
     3,
     2,
     {0, 3, 0, 0},
     {8, 20, 0, 0}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

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

static int rank_main(ferry *f, int argc, char **argv)
{
    CHECK(argc > 2);
    if (ferry_rank(f) == 0) /* the library may not be thread-safe, and only rank 0 calls it */
        (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (strcmp(argv[1], "write") == 0)
        write_kinds(f, argv[2]);
    else
        read_kinds(f, argv[2]);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
