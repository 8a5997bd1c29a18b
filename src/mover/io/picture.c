/* Pictures: files of VTK image data with appended raw values, and an index file that names them. In
 * VTK the first axis runs fastest, so the dimensions are written in reverse order. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/collective.h>
#include <ferry/mover_file.h>

#include "base/alloc.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"
#include "mover/io/dataset.h"
#include "mover/io/disk.h"
#include "mover/kernels/move.h"

static const char *const type_names[] = {"Float64", "Float32", "Int32", "Int64", "UInt64", "UInt8"};

/* Writes an extent. The cells of a block lie between its points low and high + 1. A missing
 * dimension is one cell thick. */
static void print_extent(FILE *out, const ferry_region *r)
{
    for (int axis = 0; axis < 3; axis++) {
        int d = r->dims - 1 - axis;
        int64_t low = d < 0 ? 0 : r->low.at[d], high = d < 0 ? 1 : r->high.at[d] + 1;
        fprintf(out, "%s%" PRId64 " %" PRId64, axis ? " " : "", low, high);
    }
}

static void print_triple(FILE *out, const double values[3], int dims, bool unit)
{
    for (int axis = 0; axis < 3; axis++) {
        int d = dims - 1 - axis;
        double value = d < 0 ? (unit ? 1 : 0) : values[d];
        fprintf(out, "%s%.17g", axis ? " " : "", unit && value == 0 ? 1 : value);
    }
}

/* Writes the opening tag of a file of either kind, with the extent of `r`. */
static void print_head(FILE *out, const char *type, const ferry_region *r, const ferry_vtk *picture)
{
    fprintf(out,
            "<?xml version=\"1.0\"?>\n<VTKFile type=\"%s\" version=\"1.0\" "
            "byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<%s WholeExtent=\"",
            type, type);
    print_extent(out, r);
    fprintf(out, "\" Origin=\"");
    print_triple(out, picture->origin, r->dims, false);
    fprintf(out, "\" Spacing=\"");
    print_triple(out, picture->spacing, r->dims, true);
    fprintf(out, "\"%s>\n", type[0] == 'P' ? " GhostLevel=\"0\"" : "");
}

static const char *picture_name(const ferry_vtk *picture)
{
    return picture->name != NULL ? picture->name : "value";
}

static void print_array(FILE *out, const ferry_xarray *x, const ferry_vtk *picture, const char *tag,
                        const char *rest)
{
    fprintf(out, "<%s type=\"%s\" Name=\"%s\" NumberOfComponents=\"%zu\"%s/>\n", tag,
            type_names[picture->type], picture_name(picture),
            x->element_bytes / fy_number_bytes(picture->type), rest);
}

static const ferry_region *region_of(const ferry_xarray *x, size_t i)
{
    return &ferry_floorplan_block(&x->blocks, x->local[i])->region;
}

/* Gives the values of a block, dense, freed with free(). NULL: no memory. */
static void *picture_pack(const ferry_xarray *x, size_t i, size_t *bytes)
{
    ferry_region r = *region_of(x, i);
    *bytes = (size_t)ferry_region_size(r) * x->element_bytes;
    void *dense = fy_malloc(*bytes);
    if (dense == NULL)
        return NULL;
    ferry_grid packed = ferry_grid_over(r, x->element_bytes, dense);
    if (fy_disk_copy(&packed, &x->grids[i], r) == 0)
        return dense;
    free(dense);
    return NULL;
}

static int close_file(ferry *f, FILE *out, const char *path)
{
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    if (!failed)
        return 0;
    return fy_mover_fail(f, FERRY_ESYSTEM, "vtk_write: cannot write %s: %s", path, strerror(errno));
}

static int write_piece(const ferry_xarray *x, const char *path, const ferry_vtk *picture, size_t i)
{
    size_t bytes;
    void *dense = picture_pack(x, i, &bytes);
    if (dense == NULL)
        return fy_mover_fail(x->f, FERRY_ENOMEM, "vtk_write: no memory for block %d", x->local[i]);
    FILE *out = fopen(path, "wb");
    if (out == NULL) {
        free(dense);
        return fy_mover_fail(x->f, FERRY_ESYSTEM, "vtk_write: cannot create %s: %s", path,
                             strerror(errno));
    }
    const ferry_region *r = region_of(x, i);
    uint64_t length = bytes;
    print_head(out, "ImageData", r, picture);
    fprintf(out, "<Piece Extent=\"");
    print_extent(out, r);
    fprintf(out, "\">\n<CellData Scalars=\"%s\">\n", picture_name(picture));
    print_array(out, x, picture, "DataArray", " format=\"appended\" offset=\"0\"");
    fprintf(out, "</CellData>\n</Piece>\n</ImageData>\n<AppendedData encoding=\"raw\">\n_");
    (void)fwrite(&length, sizeof length, 1, out);
    (void)fwrite(dense, 1, bytes, out);
    fprintf(out, "\n</AppendedData>\n</VTKFile>\n");
    free(dense);
    return close_file(x->f, out, path);
}

/* A rank's part of the index file: the lines of its pieces, from `offset` on. */
typedef struct part {
    char *text;
    size_t bytes;
    uint64_t offset;
} part;

/* Makes this rank's part of the index. That of the first member has the
 * head, that of the last one the end. */
static int print_part(const ferry_xarray *x, const char *path, const ferry_region *hull,
                      const ferry_vtk *picture, part *out)
{
    const char *slash = strrchr(path, '/');
    const int place = fy_mover_place(x->f);
    FILE *text = open_memstream(&out->text, &out->bytes);
    if (text == NULL)
        return fy_mover_fail(x->f, FERRY_ENOMEM, "vtk_write: no memory");
    if (place == 0) {
        print_head(text, "PImageData", hull, picture);
        fprintf(text, "<PCellData Scalars=\"%s\">\n", picture_name(picture));
        print_array(text, x, picture, "PDataArray", "");
        fprintf(text, "</PCellData>\n");
    }
    for (size_t i = 0; i < x->local_count; i++) {
        fprintf(text, "<Piece Extent=\"");
        print_extent(text, region_of(x, i));
        fprintf(text, "\" Source=\"%s_%" PRId32 ".vti\"/>\n", slash != NULL ? slash + 1 : path,
                x->local[i]);
    }
    if (place == ferry_member_count(x->f) - 1)
        fprintf(text, "</PImageData>\n</VTKFile>\n");
    const bool failed = ferror(text) != 0;
    return fclose(text) != 0 || failed
               ? fy_mover_fail(x->f, FERRY_ENOMEM, "vtk_write: no memory for %zu pieces",
                               x->local_count)
               : 0;
}

static int write_part(void *arg, int fd, const char *path, uint64_t number)
{
    const part *p = arg;
    (void)path;
    (void)number;
    return fy_disk_write(fd, p->text, p->bytes, p->offset);
}

/* Writes `index`, which names the pieces of all ranks. Each rank writes its own part. */
static int write_index(const ferry_xarray *x, const char *path, const char *index,
                       const ferry_vtk *picture)
{
    ferry_region hull;
    part own = {0};
    const fy_disk_writer writer = {.who = "vtk_write", .fill = write_part, .arg = &own};
    int error = fy_xarray_span(x, &hull);
    if (error == 0)
        error = print_part(x, path, &hull, picture, &own);
    uint64_t bytes = own.bytes;
    int failed = ferry_scan(x->f, FERRY_UINT64, FERRY_SUM, &bytes, &own.offset, 1);
    error = fy_disk_replace(x->f, error ? error : failed, index, &writer);
    free(own.text);
    return error;
}

static int read_picture(const ferry_xarray *x, const ferry_vtk *given, ferry_vtk *picture)
{
    int error = fy_mover_read(x->f, "vtk_write: ferry_vtk", given, picture, sizeof *picture);
    if (error != 0)
        return error;
    size_t bytes = fy_number_bytes(picture->type);
    if (x->blocks.dims > 3 || bytes == 0 || x->element_bytes % bytes != 0)
        return fy_mover_fail(
            x->f, FERRY_EINVAL,
            "vtk_write: %d dimensions and elements of %zu bytes, expected at most 3 "
            "dimensions and whole values of type %d",
            x->blocks.dims, x->element_bytes, (int)picture->type);
    if (strpbrk(picture_name(picture), "\"<>&") != NULL)
        return fy_mover_fail(x->f, FERRY_EINVAL,
                             "vtk_write: the name is %s, expected none of \" < > &",
                             picture_name(picture));
    return 0;
}

/* Describes the image, with the axes in VTK's order. A missing dimension is one cell thick. Readers
 * use the extent as indices of the array too. So it begins at 0, and the origin is moved
 * instead. */
static fy_image image_of(const ferry_region *hull, const ferry_vtk *picture)
{
    fy_image image = {.group = picture->points ? "PointData" : "CellData",
                      .scalars = picture_name(picture)};
    for (int axis = 0; axis < 3; axis++) {
        int d = hull->dims - 1 - axis;
        int64_t cells = d < 0 ? 1 : (int64_t)ferry_region_extent(*hull, d);
        double spacing = d < 0 || picture->spacing[d] == 0 ? 1 : picture->spacing[d];
        double low = d < 0 ? 0 : picture->origin[d] + (double)hull->low.at[d] * spacing;
        image.extent[2 * axis + 1] = picture->points ? cells - 1 : cells;
        image.origin[axis] = picture->points ? low + spacing / 2 : low;
        image.spacing[axis] = spacing;
    }
    return image;
}

/* Changes the dimensions of the array to those that VTK's readers expect: three, and one for
 * components. For points, the last axes of VTK are left out if they have one point. */
static void fit_dimensions(fy_dataset *set, bool points)
{
    int more = 3 - set->hull.dims, less = 0;
    while (points && less < set->hull.dims - 1 && set->extent[less] == 1)
        less++;
    if (points)
        more = -less;
    memmove(set->extent + (more > 0 ? more : 0), set->extent + less,
            (size_t)(set->dims - less) * sizeof *set->extent);
    for (int d = 0; d < more; d++)
        set->extent[d] = 1;
    set->dims += more;
}

/* Writes an HDF5 file. The name of the values becomes the name of a dataset, so it must not have a
 * '/', which would name a group. */
static int write_image(const ferry_xarray *x, const char *path, const ferry_vtk *picture, int error)
{
    static const char longest[] = "/VTKHDF/PointData/";
    const char *name = picture_name(picture);
    fy_dataset set = {0};
    fy_image image = {0};
    if (error == 0 && (name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0))
        error = fy_mover_fail(x->f, FERRY_EINVAL,
                              "vtk_write: \"%s\" cannot be a name in a .vtkhdf file", name);
    char *full = fy_malloc(sizeof longest + strlen(name));
    if (error == 0 && full == NULL)
        error = fy_mover_fail(x->f, FERRY_ENOMEM, "vtk_write: no memory");
    if (full != NULL)
        sprintf(full, "/VTKHDF/%s/%s", picture->points ? "PointData" : "CellData", name);
    error = fy_dataset_init(error, &set, x, full, picture->type, "vtk_write");
    if (error == 0) {
        image = image_of(&set.hull, picture);
        fit_dimensions(&set, picture->points);
    }
    error = fy_dataset_write(error, x, path, &set, &image, "vtk_write");
    free(full);
    return error;
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t length = strlen(path), tail = strlen(suffix);
    return length >= tail && strcmp(path + length - tail, suffix) == 0;
}

int ferry_vtk_write(const ferry_xarray *x, const char *path, const ferry_vtk *given)
{
    ferry_vtk known = FERRY_VTK_DEFAULTS;
    const ferry_vtk *picture = &known;
    int error = read_picture(x, given, &known);
    if (ends_in(path, ".vtkhdf"))
        return write_image(x, path, picture, error);
    char *name = fy_malloc(strlen(path) + 32);
    if (error == 0 && name == NULL)
        error = fy_mover_fail(x->f, FERRY_ENOMEM, "vtk_write: no memory");
    for (size_t i = 0; i < x->local_count && error == 0; i++) {
        sprintf(name, "%s_%" PRId32 ".vti", path, x->local[i]);
        error = write_piece(x, name, picture, i);
    }
    if (error == 0)
        sprintf(name, "%s.pvti", path);
    error = fy_mover_agree(x->f, error);
    if (error == 0)
        error = write_index(x, path, name, picture);
    free(name);
    return error;
}
