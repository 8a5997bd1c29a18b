/* Migration frame: an object in flight to another rank, as a block of bytes. It has these parts:
 *
 * - A header, and the words that its flags announce.
 * - The sequence numbers expected per source, and the affinity.
 * - The pending and the early queued messages: each is a header, its words, and its data padded to
 *   8 bytes.
 * - The packed data.
 *
 * Small objects travel often. So an object without special parts, known to two ranks and with one
 * task of one word, needs 88 bytes beside its data. One frame may have several migration frames,
 * one after the other. Ranks of a job have one byte order. */
#ifndef FY_MIGRATION_FRAME_H
#define FY_MIGRATION_FRAME_H

#include "object/object.h"

/* The contents of the header. */
typedef struct fy_migration {
    uint64_t object;
    uint64_t address;  /* of data in the shared heap that are handed over; else 0 */
    uint64_t left_ns;  /* when its packing began, if its rank counts costs; else 0 */
    size_t size_bytes; /* all of it; divisible by 8 */
    size_t head_bytes; /* the parts before the sources */
    unsigned data_pad; /* bytes after the data, up to the end */
    uint32_t movement; /* after this move */
    uint32_t type;
    uint32_t source_count, pending_count, early_count;
    uint32_t priority_count, dependency_count;
    bool scheduled, has_affinity;
    bool bare;   /* the program carries the data */
    bool placed; /* the data are the place of an image (store_calls.h) */
    double load;
} fy_migration;

/* The size of the migration frame of `record`, whose data packs to `data_bytes`; 0 if no size_t
 * holds it. */
size_t fy_migration_bytes(const fy_record *record, size_t data_bytes);

/* Writes all parts but the data, and clears the padding after the data. Returns where the data
 * belong. The migration frame has `size_bytes`, as fy_migration_bytes returned. `bare`: the program
 * carries the data, and `data_bytes` is 0. */
void *fy_migration_write(const fy_record *record, size_t size_bytes, size_t data_bytes, bool bare,
                         void *block);

/* Whether `address` is in an allocation of the shared heap, so that other ranks can use it
 * directly. [either thread] */
FY_SHARED bool fy_address_shared(const fy_objects *objects, fy_thread thread, const void *address);

/* The object of `record` leaves: whether it moves by the address of its data. Else they are to be
 * packed. [either thread] */
bool fy_data_leaves(const fy_objects *objects, fy_thread thread, const fy_record *record);

/* Called when an object is here. If its data are a block of the shared heap, the block is released
 * when this rank dies. Also tells the store. */
void fy_data_keep(const fy_objects *objects, fy_record *record);

/* Whether a block of `size_bytes` seems to have more than one migration frame. */
bool fy_migration_has_next(const void *block, size_t size_bytes);

/* Reads and checks the header of the first migration frame in a block of `size_bytes`. */
bool fy_migration_read(const fy_objects *objects, const void *block, size_t size_bytes,
                       fy_migration *out);

/* Fills sources and queued messages of `record` from a block whose header was read. Gives the data.
 * FERRY_ENOMEM: if called again with the same record, it continues after the queued messages that
 * the record already has. FERRY_EINVAL: the block is malformed. */
int fy_migration_unload(fy_objects *objects, const fy_migration *migration, const void *block,
                        fy_record *record, const void **data, size_t *data_bytes);

#endif
