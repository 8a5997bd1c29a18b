/* Mover to and from disk: checkpoints that any number of ranks can read, and pictures for ParaView.
 *
 * A checkpoint holds an xarray's blocks without ghost cells, each with a checksum; its format is in
 * docs/mover.md. It appears under its name only when it is complete on disk, so a crash while
 * writing leaves the earlier one. kelp-data-mover.txt 5. */
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

/* What a picture says of its values. */
typedef struct ferry_picture {
    size_t size;         /* sizeof(ferry_picture) */
    const char *name;    /* of the values; "value" by default */
    ferry_number number; /* an element consists of one or more of them */
    double origin[3];    /* of the corner of cell (0, 0, 0), in the order of the dimensions */
    double spacing[3];   /* of the cells; 0 counts as 1 */
} ferry_picture;

#define FERRY_PICTURE_DEFAULTS                                                                     \
    {                                                                                              \
        .size = sizeof(ferry_picture)                                                              \
    }

/* Writes `x`, of 1 to 3 dimensions, as cell data of a VTK image: `path`.pvti, and one
 * `path`_BLOCK.vti per block from its owner. Collective; borrows all. FERRY_EINVAL: dimensions, or
 * elements that do not consist of the numbers; FERRY_ESYSTEM, FERRY_ENOMEM. [app thread, not in
 * handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_picture_write(const ferry_xarray *x, const char *path,
                                                 const ferry_picture *picture);

#ifdef __cplusplus
}
#endif
#endif
