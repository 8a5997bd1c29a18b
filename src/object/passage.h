/* Passage: an object on its way to another rank, as one block of bytes.
 *
 * A header; the sequence numbers expected per source; the affinity; the pending and the early
 * letters, each a header and its data padded to 8 bytes; the packed data. Ranks of a job have one
 * byte order. */
#ifndef FY_PASSAGE_H
#define FY_PASSAGE_H

#include "object/object.h"

typedef struct fy_passage {
    uint64_t object;
    uint32_t movement; /* after this move */
    uint32_t type;
    uint32_t scheduled;
    uint32_t source_count;
    uint32_t pending_count;
    uint32_t early_count;
    uint32_t has_affinity, priority_count, dependency_count;
    uint32_t bare;       /* the program carries the data */
    uint64_t address;    /* of data in the shared heap, handed over; else 0 */
    uint64_t left_ns;    /* when its packing began, if its rank counts costs; else 0 */
    uint64_t data_bytes; /* the last bytes of the block, padded to 8 */
    double load;
} fy_passage;

/* Bytes of the passage of `record`, whose data packs to `data_bytes`; 0 when no size_t holds them.
 */
size_t fy_passage_bytes(const fy_record *record, size_t data_bytes);

/* Writes all but the data; returns where that belongs. */
void *fy_passage_write(const fy_record *record, size_t data_bytes, void *block);

/* Whether `address` is in an allocation of the shared heap, so that other ranks can use it as it
 * is. [either thread] */
bool fy_address_shared(const fy_objects *objects, fy_thread thread, const void *address);

/* Reads and checks the header of a block of `size_bytes`. */
bool fy_passage_read(const fy_objects *objects, const void *block, size_t size_bytes,
                     fy_passage *out);

/* Fills sources and letters of `record` from a block whose header was read. Gives where the data
 * stands. FERRY_ENOMEM; FERRY_EINVAL: the block is malformed. Either leaves some letters in the
 * record. */
int fy_passage_unload(fy_objects *objects, const fy_passage *passage, const void *block,
                      size_t size_bytes, fy_record *record, const void **data);

#endif
