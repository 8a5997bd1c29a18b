/* Checkpoint: the format of files, which docs/mover.md describes for other programs.
 *
 * All numbers are little-endian. A file has a header, a table with one record per block, then the
 * blocks' elements. Each block is dense with the last dimension fastest, and begins at a multiple
 * of FY_CHECKPOINT_ALIGN. A record has the checksums of its block's data and of itself. */
#ifndef FY_CHECKPOINT_H
#define FY_CHECKPOINT_H

#include <stdint.h>

#include <ferry/mover_region.h>

#define FY_CHECKPOINT_MAGIC "ferrychk"
#define FY_CHECKPOINT_VERSION 1
#define FY_CHECKPOINT_ALIGN 4096

typedef struct fy_checkpoint_header {
    char magic[8];
    uint32_t version, dims;
    uint64_t element_bytes, block_count;
    uint64_t file_bytes;
    uint64_t check; /* of all before */
} fy_checkpoint_header;

typedef struct fy_checkpoint_record {
    int64_t low[FERRY_DIMS_MAX], high[FERRY_DIMS_MAX];
    uint64_t owner;
    uint64_t offset; /* of the data in the file */
    uint64_t data_check;
    uint64_t check; /* of all before */
} fy_checkpoint_record;

/* A checksum of 64 bits over words of 8 bytes. It detects every change within one word, and of
 * other changes all but one in 2^64. */
uint64_t fy_checksum(const void *data, size_t size_bytes);

#endif
