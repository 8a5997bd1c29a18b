/* Migration frame: an object on its way to another rank, as a block of bytes.
 *
 * - A header, and the words that its flags announce.
 * - The sequence numbers expected per source, and the affinity.
 * - The pending and the early queued messages: each a header, the words it has and its data padded
 * to 8 bytes.
 * - The packed data.
 *
 * Small objects travel much, so an object without anything special, known
 * to two ranks and with one task of one word, needs 88 bytes beside its data. One frame may have
 * several migration frames, one behind the other. Ranks of a job have one byte order. */
#ifndef FY_MIGRATION_H
#define FY_MIGRATION_H

#include "object/object.h"

/* The contents of the header. */
typedef struct fy_migration {
    uint64_t object;
    uint64_t address;  /* of data in the shared heap, handed over; else 0 */
    uint64_t left_ns;  /* when its packing began, if its rank counts costs; else 0 */
    size_t size_bytes; /* all of it; divisible by 8 */
    size_t head_bytes; /* what stands before the sources */
    unsigned data_pad; /* bytes behind the data, up to the end */
    uint32_t movement; /* after this move */
    uint32_t type;
    uint32_t source_count, pending_count, early_count;
    uint32_t priority_count, dependency_count;
    bool scheduled, has_affinity;
    bool bare; /* the program carries the data */
    double load;
} fy_migration;

/* Bytes of the migration frame of `record`, whose data packs to `data_bytes`; 0 when no size_t
 * holds them.
 */
size_t fy_migration_bytes(const fy_record *record, size_t data_bytes);

/* Writes all but the data, whose room it clears behind them; returns where they belong. The
 * migration frame has `size_bytes`, as fy_migration_bytes has said. `bare`: the program carries the
 * data, and `data_bytes` is 0. */
void *fy_migration_write(const fy_record *record, size_t size_bytes, size_t data_bytes, bool bare,
                         void *block);

/* Whether `address` is in an allocation of the shared heap, so that other ranks can use it as it
 * is. [either thread] */
bool fy_address_shared(const fy_objects *objects, fy_thread thread, const void *address);

/* Whether the object of `record` goes to other ranks by the address of its data. [either thread] */
bool fy_data_handed(const fy_objects *objects, fy_thread thread, const fy_record *record);

/* The data of an object that is here now, if it is a block of the shared heap, is released when
 * this rank dies. The store hears of it. */
void fy_data_keep(const fy_objects *objects, fy_record *record);

/* Whether a block of `size_bytes` seems to have more than one migration frame. */
bool fy_migration_has_next(const void *block, size_t size_bytes);

/* Reads and checks the header of the first migration frame in a block of `size_bytes`. */
bool fy_migration_read(const fy_objects *objects, const void *block, size_t size_bytes,
                       fy_migration *out);

/* Fills sources and queued messages of `record` from a block whose header was read. Gives the data.
 * FERRY_ENOMEM: called again with the same record it goes on behind the queued messages that are in
 * it by now. FERRY_EINVAL: the block is malformed. */
int fy_migration_unload(fy_objects *objects, const fy_migration *migration, const void *block,
                        fy_record *record, const void **data, size_t *data_bytes);

#endif
