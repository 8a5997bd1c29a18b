/* Files of movers: checkpoints that any number of ranks can read, HDF5 datasets, and pictures for
 * ParaView.
 *
 * A checkpoint holds an xarray's blocks without ghost cells, each with a checksum; its format is in
 * docs/reference/files.md. It gets its name only when it is complete on disk, so a crash while
 * writing leaves the earlier file. kelp-data-mover.txt 5. */
#ifndef FERRY_MOVER_FILE_H
#define FERRY_MOVER_FILE_H

#include <ferry/mover.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes `x` to the file `path`, which is replaced at the end. Collective: every rank calls it with
 * its part of the same xarray. Borrows all. FERRY_ESYSTEM: the system refused on some rank, for
 * example because there is no such folder (see ferry_error_message there). An earlier file of that
 * name is unchanged. FERRY_ENOMEM. An error on one rank is one on all. [app thread, not in handlers
 * | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_checkpoint_write(const ferry_xarray *x, const char *path);

/* Reads the decomposition of a checkpoint, with the owners when it was written, and the size of its
 * elements. Gives `blocks`, freed with ferry_floorplan_fini. FERRY_ENOENT: no such file.
 * FERRY_EINVAL: it is no checkpoint, or is damaged. FERRY_ESYSTEM, FERRY_ENOMEM. [app thread |
 * waits for the disk] */
FERRY_API FERRY_MUST_USE int ferry_checkpoint_plan(ferry *f, const char *path,
                                                   ferry_floorplan *blocks, size_t *element_bytes);

/* Fills the cells of `x` that the checkpoint contains, ghost cells too. Decomposition and number of
 * ranks may differ from those of the writer. Other cells do not change. Each rank reads only the
 * blocks it needs; nothing is sent. FERRY_EINVAL: the file is damaged (the message names the
 * block), or its elements or dimensions have another size; some cells may be filled. FERRY_ENOENT,
 * FERRY_ESYSTEM, FERRY_ENOMEM. [app thread | waits for the disk] */
FERRY_API FERRY_MUST_USE int ferry_checkpoint_read(const char *path, ferry_xarray *x);

/* How an HDF5 file describes an xarray's values. */
typedef struct ferry_dataset {
    size_t size;      /* sizeof(ferry_dataset) */
    const char *name; /* name of the values, with '/' after each group; NULL: "value" */
    ferry_type type;  /* an element consists of one or more values of this type */
} ferry_dataset;

#define FERRY_DATASET_DEFAULTS                                                                     \
    {                                                                                              \
        sizeof(ferry_dataset), NULL, FERRY_DOUBLE                                                  \
    }

/* Writes `x` as one dataset of a new HDF5 file `path`, which replaces an earlier file at the end.
 * The dataset is the box that spans the blocks; they must cover this box and not overlap.
 * docs/reference/files.md has the format. `dataset` NULL: defaults. Collective; borrows all. Only
 * the first member calls the HDF5 library; all ranks write. FERRY_EINVAL: blocks or elements do not
 * fit. FERRY_ENOTSUP: the plug-in for HDF5 is missing or does not work. FERRY_ESYSTEM and
 * FERRY_ENOMEM as ferry_checkpoint_write. An error on one rank is one on all. [app thread, not in
 * handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_dataset_write(const ferry_xarray *x, const char *path,
                                                 const ferry_dataset *dataset);

/* Fills the cells of `x`, ghost cells too, from a dataset in the file `path`, which any program may
 * have written (docs/reference/files.md). The dataset has the extents of the box that spans the
 * blocks of `x`; cells outside it do not change. Collective; borrows all. FERRY_EINVAL: the file is
 * no HDF5 file or damaged, or the dataset is missing, chunked, compressed, or of another type or
 * extent. The message on the first member says what was expected. Some cells may be filled.
 * FERRY_ENOENT: no such file. Other errors as ferry_dataset_write. [app thread, not in handlers |
 * polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_dataset_read(const char *path, const ferry_dataset *dataset,
                                                ferry_xarray *x);

/* How a picture describes its values. */
typedef struct ferry_vtk {
    size_t size;       /* sizeof(ferry_vtk) */
    const char *name;  /* name of the values; NULL: "value" */
    ferry_type type;   /* an element consists of one or more of them */
    double origin[3];  /* of the corner of cell (0, 0, 0), in the order of the dimensions */
    double spacing[3]; /* of the cells; 0 counts as 1 */
    bool points;       /* in a .vtkhdf file: values at points in the middle of the cells */
} ferry_vtk;

#define FERRY_VTK_DEFAULTS                                                                         \
    {                                                                                              \
        sizeof(ferry_vtk), NULL, FERRY_DOUBLE, {0}, {0}, false                                     \
    }

/* Writes `x`, of 1 to 3 dimensions, as cell data of a VTK image: `path`.pvti, and `path`_BLOCK.vti
 * for each block, written by its owner. If `path` ends in ".vtkhdf", it writes that one file, as
 * ferry_dataset_write does, with the dataset VTKHDF/CellData/NAME or, with `points`,
 * VTKHDF/PointData/NAME. ParaView 5.11 reads only the latter. Collective; borrows all.
 * FERRY_EINVAL: too many dimensions, or elements that do not fit `type`. FERRY_ESYSTEM,
 * FERRY_ENOMEM. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_vtk_write(const ferry_xarray *x, const char *path,
                                             const ferry_vtk *picture);

#ifdef __cplusplus
}
#endif
#endif
