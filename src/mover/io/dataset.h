/* Dataset: an xarray's values as one array in an HDF5 file.
 *
 * The plug-in "hdf5" (port/plugin.h) uses the HDF5 library, and the first member alone calls it. It
 * makes a file with room for the values, or finds their place in a file. The values are contiguous
 * there. So every rank reads and writes its part without the library. */
#ifndef FY_MOVER_DATASET_H
#define FY_MOVER_DATASET_H

#include <ferry/mover_file.h>

typedef struct fy_dataset {
    const char *name; /* with its groups */
    ferry_type number;
    ferry_region hull; /* of the blocks */
    int dims;          /* of the array; the last one is for the numbers of an element, if several */
    uint64_t extent[FERRY_DIMS_MAX + 1];
} fy_dataset;

/* The attributes that make a file a VTK image, in VTK's order of axes. */
typedef struct fy_image {
    const char *group;   /* of the values */
    const char *scalars; /* name of the values that viewers show first */
    int64_t extent[6];
    double origin[3], spacing[3];
} fy_image;

enum { FY_HDF5_VERSION = 2, FY_HDF5_TEXT = 320 };
#define FY_HDF5_SYMBOL "fy_hdf5_functions"

/* The plug-in. On an error `text` gets at most FY_HDF5_TEXT bytes. Thread-safe only if the HDF5
 * library is. */
typedef struct fy_hdf5_table {
    uint32_t version; /* FY_HDF5_VERSION */
    /* Makes the file `path` with an array, whose elements are contiguous from `offset` on. `image`
     * NULL: not a VTK image. FERRY_ESYSTEM. */
    int (*create)(const char *path, const fy_dataset *set, const fy_image *image, uint64_t *offset,
                  char *text);
    /* Finds the array in the file. FERRY_EINVAL: it differs from `set`, or is not contiguous. */
    int (*find)(const char *path, const fy_dataset *set, uint64_t *offset, char *text);
} fy_hdf5_table;

/* The region that the blocks of all ranks span. Collective; errors as ferry_allreduce. */
int fy_xarray_span(const ferry_xarray *x, ferry_region *hull);

/* Describes the array of `x`. Error messages begin with `who`. Collective: a rank that has an
 * `error` already takes part too, and gets it back. FERRY_EINVAL. */
int fy_dataset_init(int error, fy_dataset *set, const ferry_xarray *x, const char *name,
                    ferry_type number, const char *who);

/* Writes a file. `error`: this rank's so far. Collective: if one rank has an error, all return one.
 * FERRY_ENOTSUP: there is no plug-in. */
int fy_dataset_write(int error, const ferry_xarray *x, const char *path, const fy_dataset *set,
                     const fy_image *image, const char *who);

#endif
