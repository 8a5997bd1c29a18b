/* Kinds: datasets and pictures of known numbers, which are made of coordinates, in HDF5 files. */
#ifndef FY_TEST_KINDS_H
#define FY_TEST_KINDS_H

#include <string.h>

#include <hdf5.h>

#include <ferry/mover_file.h>

#include "cells.h"
#include "shares.h"

typedef struct kind {
    const char *file, *name, *full; /* full: of the dataset in the file */
    ferry_type number;
    int components, dims;
    int64_t low[4], high[4];
} kind;

static inline bool is_picture(const kind *k)
{
    return strstr(k->file, ".vtkhdf") != NULL;
}

static inline bool has_points(const kind *k)
{
    return strstr(k->full, "PointData") != NULL;
}

/* VTK has three axes of cells in a picture. It has three axes of points, but none for a last axis
 * with one point. */
static inline int array_dims(const kind *k)
{
    if (has_points(k))
        return k->dims - (k->high[0] == k->low[0]);
    return is_picture(k) ? 3 : k->dims;
}

static inline size_t number_bytes(const kind *k)
{
    return k->number == FERRY_FLOAT || k->number == FERRY_INT32 ? 4 : 8;
}

static inline hid_t memory_type(const kind *k)
{
    return k->number == FERRY_DOUBLE  ? H5T_NATIVE_DOUBLE
           : k->number == FERRY_FLOAT ? H5T_NATIVE_FLOAT
           : k->number == FERRY_INT32 ? H5T_NATIVE_INT32
                                      : H5T_NATIVE_INT64;
}

static inline double number_at(const kind *k, const void *at, int component)
{
    switch (k->number) {
    case FERRY_DOUBLE:
        return ((const double *)at)[component];
    case FERRY_FLOAT:
        return (double)((const float *)at)[component];
    case FERRY_INT32:
        return ((const int32_t *)at)[component];
    default:
        return (double)((const int64_t *)at)[component];
    }
}

static inline void set_number(const kind *k, void *at, int component, double value)
{
    switch (k->number) {
    case FERRY_DOUBLE:
        ((double *)at)[component] = value;
        break;
    case FERRY_FLOAT:
        ((float *)at)[component] = (float)value;
        break;
    case FERRY_INT32:
        ((int32_t *)at)[component] = (int32_t)value;
        break;
    default:
        ((int64_t *)at)[component] = (int64_t)value;
    }
}

static inline double wanted_at(const kind *k, ferry_point p, int component)
{
    return value_of(p, k->dims, component + 1);
}

static inline ferry_region domain_of(const kind *k)
{
    return ferry_region_make(k->dims, k->low, k->high);
}

static inline ferry_xarray *make(ferry *f, const kind *k, int64_t extent, int ghosts)
{
    ferry_floorplan blocks;
    ferry_xarray *x;
    size_t bytes = number_bytes(k) * (size_t)k->components;
    CHECK(ferry_floorplan_tile(domain_of(k), ferry_point_all(extent), &blocks) == 0);
    CHECK(ferry_floorplan_map_cyclic(&blocks, ferry_ranks(f), 1) == 0);
    if ((k->dims + extent) % 2 != 0)
        blocks = only_own(f, &blocks);
    CHECK(ferry_xarray_create(f, &blocks, bytes, ferry_point_all(ghosts), &x) == 0);
    ferry_floorplan_fini(&blocks);
    return x;
}

/* Own cells as wanted; ghost cells, which no file may show, 99. */
static inline void give_numbers(const kind *k, ferry_xarray *x)
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

static inline void check_numbers(ferry *f, const kind *k, const ferry_xarray *x)
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

static inline const char *path_of(char path[600], const char *prefix, const char *file)
{
    if (snprintf(path, 600, "%s%s", prefix, file) >= 600)
        abort();
    return path;
}

static inline int write_kind(const kind *k, const ferry_xarray *x, const char *path,
                             const char *name)
{
    ferry_dataset dataset = FERRY_DATASET_DEFAULTS;
    ferry_vtk picture = FERRY_VTK_DEFAULTS;
    dataset.name = picture.name = name;
    dataset.type = picture.type = k->number;
    picture.points = has_points(k);
    for (int d = 0; d < 3; d++) {
        picture.origin[d] = d + 0.5;
        picture.spacing[d] = d == 1 ? 0 : d + 2.0;
    }
    return is_picture(k) ? ferry_vtk_write(x, path, &picture)
                         : ferry_dataset_write(x, path, &dataset);
}

static inline int read_kind(const kind *k, ferry_xarray *x, const char *path)
{
    ferry_dataset dataset = FERRY_DATASET_DEFAULTS;
    dataset.name = k->full;
    dataset.type = k->number;
    return ferry_dataset_read(path, &dataset, x);
}

#endif
