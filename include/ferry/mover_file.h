/* Mover to and from disk: checkpoints that any number of ranks can read, datasets of HDF5 files,
 * and pictures for ParaView.
 *
 * A checkpoint holds an xarray's blocks without ghost cells, each with a checksum; its format is in
 * docs/reference/files.md. It appears under its name only when it is complete on disk, so a crash
 * while writing leaves the earlier one. kelp-data-mover.txt 5. */
#ifndef FERRY_MOVER_FILE_H
#define FERRY_MOVER_FILE_H

#include <ferry/mover.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes `x` to the file `path`, replacing it at the end. Collective: every rank calls it with its
 * part of the same xarray. Borrows all. FERRY_ESYSTEM: the system refused on some rank, see
 * ferry_error_message there; an earlier file of that name is as it was. FERRY_ENOMEM. [app thread,
 * not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_checkpoint_write(const ferry_xarray *x, const char *path);

/* Reads the decomposition of a checkpoint, with the owners of its time, and the size of its
 * elements. Gives `blocks`, freed with ferry_floorplan_fini. FERRY_ENOENT: no such file;
 * FERRY_EINVAL: it is no checkpoint, or damaged; FERRY_ESYSTEM, FERRY_ENOMEM. [app thread | may
 * block on the disk] */
FERRY_API FERRY_MUST_USE int ferry_checkpoint_plan(ferry *f, const char *path,
                                                   ferry_floorplan *blocks, size_t *element_bytes);

/* Fills the cells of `x` that the checkpoint has, ghost cells too, whatever the decomposition and
 * the number of ranks; other cells stay as they are. Each rank reads the blocks it needs and no
 * others; nothing is sent. FERRY_EINVAL: damaged (the message names the block), or elements or
 * dimensions of other size; cells may then have been filled in part. FERRY_ENOENT, FERRY_ESYSTEM,
 * FERRY_ENOMEM. [app thread | may block on the disk] */
FERRY_API FERRY_MUST_USE int ferry_checkpoint_read(const char *path, ferry_xarray *x);

/* How an HDF5 file describes an xarray's values. */
typedef struct ferry_dataset {
    size_t size;      /* sizeof(ferry_dataset) */
    const char *name; /* of the values, with '/' after each group; "value" by default */
    ferry_type type;  /* an element consists of one or more of them */
} ferry_dataset;

#define FERRY_DATASET_DEFAULTS                                                                     \
    {                                                                                              \
        sizeof(ferry_dataset), NULL, FERRY_DOUBLE                                                  \
    }

/* Writes `x` as one dataset of the new HDF5 file `path`, replacing an earlier file at the end. It
 * spans the blocks, which must cover what they span and not overlap; docs/reference/files.md has
 * the format. `dataset` NULL: the defaults. Collective; borrows all. Rank 0 alone calls the HDF5
 * library, all ranks write. FERRY_EINVAL: the blocks, elements that do not consist of the numbers,
 * or another rank failed; FERRY_ENOTSUP: there is no plug-in for HDF5, or it does not work;
 * FERRY_ESYSTEM, FERRY_ENOENT, FERRY_ENOMEM. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_dataset_write(const ferry_xarray *x, const char *path,
                                                 const ferry_dataset *dataset);

/* Fills the cells of `x`, ghost cells too, that lie inside what its blocks span, from a dataset of
 * that extent in the file `path`, of any program, for any number of ranks
 * (docs/reference/files.md). Collective; borrows all. FERRY_EINVAL: it is no HDF5 file, or damaged,
 * or the dataset is missing, of other numbers or extents, chunked or compressed. The message on
 * rank 0 says what was expected. Cells may have been filled in part. FERRY_ENOENT: no such file;
 * else as ferry_dataset_write. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_dataset_read(const char *path, const ferry_dataset *dataset,
                                                ferry_xarray *x);

/* How a picture describes its values. */
typedef struct ferry_vtk {
    size_t size;       /* sizeof(ferry_vtk) */
    const char *name;  /* of the values; "value" by default */
    ferry_type type;   /* an element consists of one or more of them */
    double origin[3];  /* of the corner of cell (0, 0, 0), in the order of the dimensions */
    double spacing[3]; /* of the cells; 0 counts as 1 */
    bool points;       /* in a .vtkhdf file: values at points in the middle of the cells */
} ferry_vtk;

#define FERRY_VTK_DEFAULTS                                                                         \
    {                                                                                              \
        sizeof(ferry_vtk), NULL, FERRY_DOUBLE, {0}, {0}, false                                     \
    }

/* Writes `x`, of 1 to 3 dimensions, as cell data of a VTK image: `path`.pvti, and one
 * `path`_BLOCK.vti per block from its owner. When `path` ends in ".vtkhdf" it writes that one file,
 * as ferry_dataset_write does, with the dataset VTKHDF/CellData/NAME or, with `points`,
 * VTKHDF/PointData/NAME. ParaView 5.11 reads only the latter. Collective; borrows all.
 * FERRY_EINVAL: dimensions, or elements that do not consist of the numbers; FERRY_ESYSTEM,
 * FERRY_ENOMEM. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_vtk_write(const ferry_xarray *x, const char *path,
                                             const ferry_vtk *picture);

#ifdef __cplusplus
}
#endif
#endif
