/* Convert: copies of records between data formats, by a descriptor of their fields. cds.txt 4. */
#ifndef FERRY_CONVERT_H
#define FERRY_CONVERT_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a copy converts: the sum of the constants that apply. 0: both sides are little-endian with
 * longs of 8 bytes. */
typedef enum ferry_conversion {
    FERRY_CONVERT_FROM_BIG = 1,   /* the source is big-endian */
    FERRY_CONVERT_TO_BIG = 2,     /* the target is big-endian */
    FERRY_CONVERT_FROM_LONG4 = 4, /* the source's longs have 4 bytes */
    FERRY_CONVERT_TO_LONG4 = 8,   /* the target's longs have 4 bytes */
} ferry_conversion;

/* One side of a copy. */
typedef struct ferry_extent {
    void *data;
    size_t size_bytes;
} ferry_extent;

/* Copies the fields that `descriptor`, an array of `length` integers, names from `source` to
 * `target`, which do not overlap, converting each as `conversion` says. A descriptor is
 *
 *     field count; for each field: count, type, source displacement, target displacement.
 *     For FERRY_STRUCT these four are followed by: source stride, target stride, and the
 *     descriptor of the structure, with displacements from where each one begins,
 *
 * in bytes; elements of a field follow each other without gaps. FERRY_EINVAL: the descriptor is
 * malformed, nested deeper than 16, names bytes outside source or target, or has structures that
 * overlap in the target; nothing was copied.
 * FERRY_ERANGE: a long does not fit into 4 bytes; the target is undefined. [app thread, handlers |
 * never blocks] cds.txt 4 (copy). */
FERRY_API FERRY_MUST_USE int ferry_fields_copy(ferry *f, ferry_extent target, ferry_extent source,
                                               const int *descriptor, size_t length,
                                               int conversion);

/* Sets `*conversion` to the conversion from the data format of rank `from` to that of rank `to`.
 * All ranks of a job have one format today, since Ferry does not convert its own frames: the
 * conversion is 0. Others are for data that come from elsewhere. FERRY_EAGAIN: the format of a rank
 * on another node is not known yet and was asked for; poll and call again. FERRY_EPEER: that rank
 * has gone before it answered. [app thread, handlers | never blocks] cds.txt 4 (transtab). */
FERRY_API FERRY_MUST_USE int ferry_conversion_find(ferry *f, int from, int to, int *conversion);

#ifdef __cplusplus
}
#endif
#endif
