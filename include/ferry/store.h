/* Store: objects on disk, so that a rank can have more data than memory.
 *
 * A store has a budget of bytes. While the objects of its types take more than the budget, it packs
 * objects that rest and frees their data. Its threads write them to a file, and read those whose
 * messages or tasks run next ahead of time. An object on disk keeps its name, gets messages,
 * migrates and counts for ferry_quiesce as any other. ferry_object_data returns NULL for it.
 * dmcs.txt 2.2, 5.2. */
#ifndef FERRY_STORE_H
#define FERRY_STORE_H

#include <ferry/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The store of one rank. Its file has no name, so nothing is left when the process dies. An image
 * of an object is its packed bytes, in the file or in memory. */
typedef struct ferry_store ferry_store;

/* Writes past the page cache, if the file system can: then objects on disk take no memory. */
#define FERRY_STORE_DIRECT 1u
/* Writes the objects used least recently, reads an object when it is used, and waits for both: for
 * comparisons. */
#define FERRY_STORE_BLIND 2u

/* How a store is opened. */
typedef struct ferry_store_options {
    size_t size;           /* sizeof(ferry_store_options) */
    uint64_t budget_bytes; /* of packed data in memory; FERRY_MEMORY_BUDGET overrides it */
    const char *folder;    /* of the file; NULL: that of the variable TMPDIR, else /var/tmp */
    uint32_t flags;        /* FERRY_STORE_DIRECT and the like */
} ferry_store_options;

#define FERRY_STORE_OPTIONS_DEFAULTS                                                               \
    {                                                                                              \
        sizeof(ferry_store_options), 0, NULL, 0                                                    \
    }

/* Opens the store of this rank. `options` is borrowed. Gives `*out`, closed by ferry_store_close or
 * ferry_close. FERRY_EINVAL: there is no budget, or the folder is "". FERRY_ESTATE: this rank has a
 * store, or a handler runs. FERRY_ESYSTEM: the folder takes no file. FERRY_ENOMEM. [app thread, not
 * in handlers | never blocks] dmcs.txt 5.2. */
FERRY_API FERRY_MUST_USE int ferry_store_open(ferry *f, const ferry_store_options *options,
                                              ferry_store **out);

/* Puts all objects of `type` on this rank, now and later, under the budget. Calls that poll,
 * ferry_object_install and ferry_object_uninstall then write and read objects. They wait for the
 * disk if an object is not read yet, or if memory is full of unwritten ones. For an object that
 * goes to disk they call `pack` and `destroy`, for one that comes back `unpack`. On disk it has its
 * last known load, granularity and priority. FERRY_EINVAL: no such type. FERRY_ENOTSUP: a
 * FERRY_OBJECT_SHARED type. FERRY_ENOMEM. [app thread, handlers | never blocks] dmcs.txt 5.2. */
FERRY_API FERRY_MUST_USE int ferry_store_add(ferry_store *store, ferry_object_type type);

/* Writes objects until the budget is met, as each poll does: for a program that creates many
 * objects between two polls. Pointers from ferry_object_data end, except that of the object whose
 * handler runs. [app thread, handlers | waits for the disk] dmcs.txt 5.2. */
FERRY_API void ferry_store_trim(ferry_store *store);

/* Counts of a store. The size of an object is its packed size, in memory too. */
typedef struct ferry_store_stats {
    size_t size; /* sizeof(ferry_store_stats) */
    uint64_t budget_bytes;
    uint64_t resident_bytes; /* of objects in memory now, as data or as images */
    uint64_t peak_bytes;     /* the most of them so far */
    uint64_t disk_bytes;     /* of objects on disk now, or being written */
    uint64_t objects;        /* under the budget, in memory or on disk */
    uint64_t disk_objects;   /* likewise */
    uint64_t writes, written_bytes;
    uint64_t reads, read_bytes;
    uint64_t write_errors; /* each time the object stayed in memory */
    uint64_t read_errors;  /* each time the object stayed on disk */
    uint64_t ahead_reads;  /* begun before the object was used */
    uint64_t wait_ns;      /* time that the rank has waited for the disk */
    uint64_t lent;         /* objects that left without their images: another rank reads these */
    uint64_t taken;        /* objects that came without their images */
} ferry_store_stats;

#define FERRY_STORE_STATS_DEFAULTS                                                                 \
    {                                                                                              \
        sizeof(ferry_store_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                  \
    }

/* Fills `*out`, which begins as FERRY_STORE_STATS_DEFAULTS. If its size is smaller than that of the
 * struct, the call writes only so many bytes. FERRY_EINVAL: `out` is NULL, or its size is not set;
 * nothing was written. [app thread, handlers | never blocks] dmcs.txt 5.2. */
FERRY_API FERRY_MUST_USE int ferry_store_stats_get(ferry_store *store, ferry_store_stats *out);

/* Reads all objects back and frees the store. NULL is ignored. After an error the store stays open,
 * and each object is where it was or in memory. FERRY_ESTATE: a handler runs, or percolation has
 * started (percolation.h). FERRY_EAGAIN: an object is leaving this rank; poll first. FERRY_ESYSTEM:
 * an object cannot be read back. FERRY_ENOMEM. ferry_close frees an open store without reading.
 * [app thread, not in handlers | waits for the disk] dmcs.txt 5.2. */
FERRY_API int ferry_store_close(ferry_store *store);

#ifdef __cplusplus
}
#endif
#endif
