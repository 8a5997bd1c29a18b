/* Datasets. In the file the elements of a block are rows along the last dimension; or longer rows,
 * if the block is as wide as the whole array. A block is packed in memory first, so that one call
 * transfers a row. */
#include "mover/io/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "mover/bind/link.h"
#include "mover/geometry/box.h"
#include "mover/geometry/fail.h"
#include "mover/io/disk.h"
#include "mover/kernels/move.h"
#include "port/plugin.h"

int fy_xarray_span(const ferry_xarray *x, ferry_region *hull)
{
    int64_t ends[2 * FERRY_DIMS_MAX]; /* the lowest of low, and of -high */
    for (int i = 0; i < 2 * FERRY_DIMS_MAX; i++)
        ends[i] = FERRY_COORDINATE_MAX;
    for (size_t i = 0; i < x->local_count; i++) {
        const ferry_region *r = &ferry_floorplan_block(&x->blocks, x->local[i])->region;
        for (int d = 0; d < x->blocks.dims; d++) {
            ends[2 * d] = fy_min(ends[2 * d], r->low.at[d]);
            ends[2 * d + 1] = fy_min(ends[2 * d + 1], -r->high.at[d]);
        }
    }
    int error =
        ferry_allreduce(x->f, FERRY_INT64, FERRY_MIN, ends, ends, sizeof ends / sizeof *ends);
    *hull = (ferry_region){.dims = x->blocks.dims};
    for (int d = 0; d < x->blocks.dims; d++) {
        hull->low.at[d] = ends[2 * d];
        hull->high.at[d] = -ends[2 * d + 1];
    }
    if (ferry_region_is_empty(*hull))
        *hull = ferry_region_make(x->blocks.dims, (int64_t[FERRY_DIMS_MAX]){0},
                                  (int64_t[FERRY_DIMS_MAX]){-1, -1, -1, -1, -1, -1});
    return error;
}

int fy_dataset_init(int error, fy_dataset *set, const ferry_xarray *x, const char *name,
                    ferry_type number, const char *who)
{
    size_t bytes = fy_number_bytes(number);
    *set = (fy_dataset){.name = name, .number = number};
    int spanned = fy_xarray_span(x, &set->hull);
    if (error || spanned)
        return error ? error : spanned;
    if (bytes == 0 || x->element_bytes % bytes != 0)
        return fy_mover_fail(x->f, FERRY_EINVAL,
                             "%s: elements of %zu bytes, type %d: they need to be whole values",
                             who, x->element_bytes, (int)number);
    if (name[0] == '\0')
        return fy_mover_fail(x->f, FERRY_EINVAL, "%s: the name of the values is empty", who);
    uint64_t size = ferry_region_size(set->hull);
    if (size == 0 || size > INT64_MAX / x->element_bytes)
        return fy_mover_fail(x->f, FERRY_EINVAL, "%s: the blocks span %s: nothing, or too much",
                             who, fy_region_show(&set->hull).text);
    for (int d = 0; d < set->hull.dims; d++)
        set->extent[set->dims++] = ferry_region_extent(set->hull, d);
    if (x->element_bytes != bytes)
        set->extent[set->dims++] = x->element_bytes / bytes;
    return 0;
}

/* The offset of the element at `p` in the file, from the first element. */
static uint64_t element_offset(const fy_dataset *set, ferry_point p, size_t element_bytes)
{
    uint64_t index = 0;
    for (int d = 0; d < set->hull.dims; d++)
        index =
            index * ferry_region_extent(set->hull, d) + (uint64_t)(p.at[d] - set->hull.low.at[d]);
    return index * element_bytes;
}

typedef int transfer_fn(int fd, char *row, size_t size_bytes, uint64_t offset);

static int write_row(int fd, char *row, size_t size_bytes, uint64_t offset)
{
    return fy_disk_write(fd, row, size_bytes, offset);
}

static int read_row(int fd, char *row, size_t size_bytes, uint64_t offset)
{
    return fy_disk_read(fd, row, size_bytes, offset);
}

/* Transfers the rows of `packed`, which lies inside the hull, to or from the file. */
static int each_row(int fd, const fy_dataset *set, const ferry_grid *packed, uint64_t start,
                    transfer_fn *transfer)
{
    ferry_region heads = packed->region; /* where rows begin */
    size_t bytes = packed->element_bytes;
    char *row = packed->data;
    int d = heads.dims - 1;
    for (bool whole = true; d >= 0 && whole; d--) {
        whole = ferry_region_extent(heads, d) == ferry_region_extent(set->hull, d);
        bytes *= (size_t)ferry_region_extent(heads, d);
        heads.high.at[d] = heads.low.at[d];
    }
    ferry_point p = heads.low;
    int error = 0;
    do {
        uint64_t offset = start + element_offset(set, p, packed->element_bytes);
        error = transfer(fd, row, bytes, offset);
        row += bytes;
    } while (error == 0 && ferry_region_next(&heads, &p));
    return error;
}

/* Makes a grid with memory of its own. free() its data. */
static int make_packed(ferry *f, ferry_region region, size_t element_bytes, const char *who,
                       ferry_grid *out)
{
    void *data = fy_malloc((size_t)ferry_region_size(region) * element_bytes);
    if (data == NULL)
        return fy_mover_fail(f, FERRY_ENOMEM, "%s: no memory for %s", who,
                             fy_region_show(&region).text);
    *out = ferry_grid_over(region, element_bytes, data);
    return 0;
}

static int find_plugin(ferry *f, const char *who, const fy_hdf5_table **out)
{
    const void *table;
    int error = fy_plugin_open("hdf5", FY_HDF5_SYMBOL, FY_HDF5_VERSION, false, &table);
    if (error)
        return fy_mover_fail(f, error, "%s: %s", who, ferry_error_message(NULL));
    *out = table;
    return 0;
}

typedef struct writing {
    const ferry_xarray *x;
    const fy_dataset *set;
    const fy_image *image;
    const char *who;
} writing;

static int dataset_create(void *arg, const char *path, uint64_t *offset)
{
    const writing *w = arg;
    const fy_hdf5_table *hdf5;
    char text[FY_HDF5_TEXT];
    int error = find_plugin(w->x->f, w->who, &hdf5);
    if (error)
        return error;
    error = hdf5->create(path, w->set, w->image, offset, text);
    return error ? fy_mover_fail(w->x->f, error, "%s: %s: %s", w->who, path, text) : 0;
}

static int dataset_fill(void *arg, int fd, const char *path, uint64_t offset)
{
    const writing *w = arg;
    int error = 0;
    for (size_t i = 0; i < w->x->local_count && error == 0; i++) {
        ferry_region region = ferry_floorplan_block(&w->x->blocks, w->x->local[i])->region;
        ferry_grid packed = {0};
        error = make_packed(w->x->f, region, w->x->element_bytes, w->who, &packed);
        if (error == 0)
            error = fy_disk_copy(&packed, &w->x->grids[i], region);
        if (error == 0)
            error = each_row(fd, w->set, &packed, offset, write_row);
        if (error == FERRY_ESYSTEM)
            (void)fy_disk_refused(w->x->f, w->who, "write", path);
        free(packed.data);
    }
    return error;
}

/* Checks that the blocks cover `hull` and do not overlap. With shares each rank checks a part of
 * the hull, of which it learns all blocks. */
static int check_cover(const ferry_xarray *x, ferry_region hull)
{
    const int rules = FERRY_FLOORPLAN_DISJOINT | FERRY_FLOORPLAN_COVER;
    const int ranks = ferry_ranks(x->f);
    if (x->blocks.numbers == NULL)
        return ferry_floorplan_check(x->f, &x->blocks, ranks, hull, rules);
    ferry_region part = ferry_floorplan_part(
        hull, ferry_floorplan_parts(hull, ferry_member_count(x->f)), fy_mover_place(x->f));
    const ferry_regions near = {.items = &part, .count = !ferry_region_is_empty(part)};
    ferry_floorplan known;
    int error = ferry_floorplan_share(x->f, &x->blocks, &near, &known);
    if (error)
        return error;
    error = ferry_floorplan_check(x->f, &known, ranks, part, rules);
    ferry_floorplan_fini(&known);
    return error;
}

int fy_dataset_write(int error, const ferry_xarray *x, const char *path, const fy_dataset *set,
                     const fy_image *image, const char *who)
{
    writing w = {.x = x, .set = set, .image = image, .who = who};
    const fy_disk_writer writer = {
        .who = who, .create = dataset_create, .fill = dataset_fill, .arg = &w};
    error = fy_mover_agree(x->f, error);
    if (error == 0)
        error = check_cover(x, set->hull);
    return fy_disk_replace(x->f, error, path, &writer);
}

static const char *dataset_name(const ferry_dataset *dataset)
{
    return dataset->name != NULL ? dataset->name : "value";
}

static int init(fy_dataset *set, const ferry_xarray *x, const ferry_dataset *given)
{
    ferry_dataset dataset = FERRY_DATASET_DEFAULTS;
    int error = fy_mover_read(x->f, "dataset: ferry_dataset", given, &dataset, sizeof dataset);
    return fy_dataset_init(error, set, x, dataset_name(&dataset), dataset.type, "dataset");
}

int ferry_dataset_write(const ferry_xarray *x, const char *path, const ferry_dataset *dataset)
{
    fy_dataset set;
    int error = init(&set, x, dataset);
    return fy_dataset_write(error, x, path, &set, NULL, "dataset");
}

/* On the first member: finds the place of the array in the file. */
static int dataset_find(ferry *f, int fd, const char *path, const fy_dataset *set,
                        size_t element_bytes, uint64_t *offset)
{
    const fy_hdf5_table *hdf5;
    struct stat status;
    char text[FY_HDF5_TEXT];
    int error = find_plugin(f, "dataset", &hdf5);
    if (error)
        return error;
    error = hdf5->find(path, set, offset, text);
    if (error)
        return fy_mover_fail(f, error, "dataset: %s: %s", path, text);
    uint64_t bytes = ferry_region_size(set->hull) * element_bytes;
    if (fstat(fd, &status) != 0)
        return fy_disk_refused(f, "dataset", "read", path);
    if ((uint64_t)status.st_size < bytes || (uint64_t)status.st_size - bytes < *offset)
        return fy_mover_fail(f, FERRY_EINVAL, "dataset: %s is cut short", path);
    return 0;
}

/* Reads this rank's grids: of each the elements that the file has. */
static int read_part(int fd, const char *path, const fy_dataset *set, ferry_xarray *x,
                     uint64_t offset)
{
    int error = 0;
    for (size_t i = 0; i < x->local_count && error == 0; i++) {
        ferry_region region = ferry_region_intersect(x->grids[i].region, set->hull);
        ferry_grid packed = {0};
        error = make_packed(x->f, region, x->element_bytes, "dataset", &packed);
        if (error == 0)
            error = each_row(fd, set, &packed, offset, read_row);
        if (error == FERRY_ESYSTEM)
            (void)fy_disk_refused(x->f, "dataset", "read", path);
        else if (error == FERRY_EINVAL)
            (void)fy_mover_fail(x->f, error, "dataset: %s is cut short", path);
        if (error == 0)
            error = fy_disk_copy(&x->grids[i], &packed, region);
        free(packed.data);
    }
    return error;
}

int ferry_dataset_read(const char *path, const ferry_dataset *dataset, ferry_xarray *x)
{
    fy_dataset set;
    uint64_t offset = 0;
    int fd = -1;
    const int root = ferry_member_rank(x->f, 0);
    int error = init(&set, x, dataset);
    if (error == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        error = fy_disk_refused(x->f, "dataset", "open", path);
    if (error == 0 && ferry_rank(x->f) == root)
        error = dataset_find(x->f, fd, path, &set, x->element_bytes, &offset);
    error = fy_mover_agree(x->f, error);
    if (error == 0)
        error = ferry_broadcast(x->f, root, &offset, sizeof offset);
    if (error == 0)
        error = fy_mover_agree(x->f, read_part(fd, path, &set, x, offset));
    if (fd >= 0)
        close(fd);
    return error;
}
