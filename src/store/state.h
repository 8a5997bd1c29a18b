/* State: what a store knows of its objects, and where they are on disk.
 *
 * A managed object has a `fy_stored`, which its record points to, from when its data comes to this
 * rank until its record is freed. While the object is out, its data are that `fy_stored`, and its
 * type is a shadow of the store's. The shadow's pack copies the image from disk, so an object that
 * is out migrates on either thread without being made again. The shadow has no unpack: this tells
 * an object that is out.
 *
 * Threads: all belongs to the application thread, but that the thread that migrates an object which
 * is out uses its `image` and `untold`, while the record is MIGRATING, and the atomic counters.
 *
 * Errors: an object that cannot be written stays in memory, and for a while nothing is written. If
 * an object cannot be read, the message that needs it fails at its sender, the job knows of a loss,
 * and the object stays out. */
#ifndef FY_STORE_STATE_H
#define FY_STORE_STATE_H

#include <sys/types.h>

#include <ferry/store.h>

#include "base/list.h"
#include "object/object.h"

/* How bytes get to a file and back: as pread and pwrite. Tests replace it. */
typedef struct fy_store_disk {
    ssize_t (*read)(int fd, void *buffer, size_t size_bytes, off_t offset);
    ssize_t (*write)(int fd, const void *buffer, size_t size_bytes, off_t offset);
} fy_store_disk;

typedef struct fy_stored {
    fy_link link; /* `resident`, `out`, or `places` when no object has it */
    fy_record *record;
    ferry_store *store;
    uint64_t size_bytes; /* packed: when it was last looked at, or on disk */
    uint64_t offset;     /* of its place in the file */
    unsigned size_class; /* its place has 2^size_class bytes; 0: it has none */
    bool out;
    bool untold; /* nobody has logged yet that it cannot be read */
    void *image; /* what was read of it, before it is used; or NULL */
    double load, granularity;
} fy_stored;

enum { FY_SIZE_CLASSES = 64 };

struct ferry_store {
    ferry *f;
    fy_objects *objects;
    int fd;
    fy_store_disk disk;
    fy_link resident; /* least recently used first */
    fy_link out;
    fy_link places[FY_SIZE_CLASSES]; /* of objects that are gone, by size class */
    uint64_t end_bytes;              /* of the file's places */
    fy_stored *last;                 /* ran last, and may have another size now; or NULL */
    uint64_t pause_ns;               /* nothing is written before, since a write has failed */
    bool told_full;                  /* such failures were logged */
    ferry_store_stats stats;         /* without what is atomic */
    _Atomic uint64_t reads, read_bytes, read_errors;
    fy_type *shadows[FY_TYPES_MAX]; /* NULL: a type that is not the store's */
};

static inline ferry_store *fy_store_of(const ferry *f)
{
    return fy_objects_of(f)->store_state;
}

/* Files, file.c. */

enum { FY_STORE_WHY_BYTES = 128 };

/* A new file without a name. -1: errno says why. */
int fy_store_file_open(const char *folder);

/* Writes an object that rests. 0, or the errno of its failure. */
int fy_stored_write(fy_stored *item);

/* Reads and checks what was written, unless that was done; it stands behind `fy_stored_packed`
 * then. False: `why` says why not. [either thread] */
bool fy_stored_read(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* The packed data in an image. */
const void *fy_stored_packed(const fy_stored *item);

/* Residence, residence.c. */

extern const fy_object_store fy_store_hooks;

/* Begins to manage the object of `record`. Without memory it stays outside the budget. */
void fy_store_keep(ferry *f, fy_record *record);

/* Writes objects until those in memory, and `more_bytes`, are within the budget. */
void fy_store_make_room(ferry_store *s, uint64_t more_bytes);

/* Makes an object that nothing else uses resident. False: it cannot be, for the reason `why`, which
 * is logged. */
bool fy_stored_load(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* The shadow for `type`; NULL: no memory. */
fy_type *fy_store_shadow_create(const fy_type *type);

/* Frees the store and what it knows. */
void fy_store_destroy(ferry_store *s);

#endif
