/* State: what a store knows of its objects, and where they are on disk.
 *
 * A managed object has a `fy_stored`, to which its record points. It has it from the time when its
 * data come to this rank until its record is freed. The object is *resident* (its data are in
 * memory) or *out*. If it is out, its data pointer leads to the `fy_stored`, and its type is a
 * shadow of the store's. An image of its data is then on disk, in memory, or both. The shadow's
 * pack copies the image. So an object that is out can migrate, on either thread, without being
 * unpacked.
 *
 * An object goes out by being packed into an image in memory. Threads of the disk write the image.
 * Until it is written, the object can come back from it. Images of objects with work soon are read
 * ahead. Another image is read by the thread that needs it.
 *
 * Threads: everything belongs to the application thread, with these exceptions.
 *
 * - A `fy_job`, and changes of `image`, are under the lock of the disk's crew.
 * - A thread of the disk has image, place and size while the job is BUSY.
 * - The thread that migrates an object which is out reads its image. Nobody else frees the image
 *   then, since it is lent.
 * - The atomic counters only count.
 *
 * Errors: an object that cannot be written keeps its image in memory, and for a while nothing is
 * written. If an object cannot be read, the message that needs it fails at its sender, the loss
 * fails the next ferry_quiesce, and the object stays out. */
#ifndef FY_STORE_STATE_H
#define FY_STORE_STATE_H

#include <sys/types.h>

#include <ferry/store.h>

#include "base/crew.h"
#include "base/list.h"
#include "object/object.h"
#include "object/store_calls.h"

/* A small image takes at most a part more than its data: one of this many (fy_image_is_small). */
enum { FY_WASTE_PART = 32 };

/* Alignment of a file that bypasses the page cache. */
enum { FY_DIRECT_BYTES = 4096 };

enum { FY_SIZE_CLASSES = 64, FY_DISK_THREADS = FY_CREW_MAX, FY_STORE_WHY_BYTES = 128 };

typedef enum fy_work { FY_WORK_NONE, FY_WORK_QUEUED, FY_WORK_BUSY } fy_work;

/* A read or write of an image. */
typedef struct fy_job {
    fy_link link; /* in a queue, or among the jobs that have ended */
    fy_work work;
    bool writes;
    bool valid;  /* the image has the object's present data */
    bool lent;   /* a thread that migrates the object reads the image, so it stays */
    bool orphan; /* the object is gone */
    int error;   /* errno of a write that has ended */
    struct fy_stored *item;
    uint64_t due_ns; /* of a simulated disk: when it ends */
} fy_job;

typedef struct fy_stored {
    fy_link link; /* in `resident`, `out` or, when the object is gone, `places` */
    fy_record *record;
    ferry_store *store;
    uint64_t object;             /* its name, kept when it is gone */
    uint64_t size_bytes;         /* packed size, when it was last measured, or of its image */
    _Atomic uint64_t told_bytes; /* the same, for schedulers on either thread */
    uint64_t offset;             /* of its place in the file */
    uint64_t sum;                /* checksum of the image on disk */
    unsigned size_class;         /* its place has 2^size_class bytes; 0: no place */
    bool untold;                 /* no log line says yet that it cannot be read */
    bool leaving;                /* its image is being written */
    bool kept;                   /* its image could not be written */
    bool ahead;                  /* its image is being read ahead, or was */
    bool returned;               /* it has gone back to the rank of `file` as a place */
    bool parked;                 /* its object is gone, and its place has a lease */
    struct fy_file *file;        /* another rank's, that has its place; NULL: the store's own */
    uint64_t lease; /* this rank's lease of a place in `file`, or `reader`'s of this place; or 0 */
    uint64_t due_bytes;   /* its part of the store's `due_bytes` */
    int reader;           /* under the crew's lock; so is `lease` if `file` is NULL */
    fy_link lent;         /* in `lent` of the store while `reader` has a lease */
    uint64_t image_bytes; /* bytes with which its image is counted; 0: none */
    uint64_t look;        /* its rank in the last look ahead, if above the `look` of the store */
    double load, granularity;
    void *image; /* NULL: not in memory */
    fy_job job;
} fy_stored;

/* A file and the threads that read and write it. `read` and `write` are as pread and pwrite; tests
 * replace them. */
typedef struct fy_disk {
    ssize_t (*read)(int fd, void *buffer, size_t size_bytes, off_t offset);
    ssize_t (*write)(int fd, const void *buffer, size_t size_bytes, off_t offset);
    int fd;
    size_t align_bytes;   /* alignment of addresses, offsets and lengths, a power of two */
    fy_port *simulator;   /* says how jobs end, which are done when they are begun; NULL: threads */
    int limit;            /* of threads */
    int untold;           /* queued jobs of which no thread was told; under the crew's lock */
    uint64_t usual_ns[2]; /* how long a read [0] or a write [1] takes; under the crew's lock */
    fy_crew crew;
    fy_link reads, writes; /* queued */
    fy_link later;         /* of a simulated disk: BUSY jobs that are done, by `due_ns` */
    fy_link done;          /* ended, and to be taken by fy_jobs_reap */
} fy_disk;

struct ferry_store {
    ferry *f;
    fy_objects *objects;
    fy_disk disk;
    bool blind;       /* FERRY_STORE_BLIND: writes the least recently used, reads nothing ahead */
    fy_link resident; /* least recently used first */
    fy_link out;
    fy_link buffers;                 /* free ones, the one freed last at the end */
    _Atomic uint64_t idle_bytes;     /* of these */
    ferry_object_ops flat;           /* those of flat types, before the store has replaced them */
    fy_link places[FY_SIZE_CLASSES]; /* free places, by size class */
    uint64_t end_bytes;              /* of the file's places */
    fy_stored *last;         /* the object that ran last and may have another size now; or NULL */
    uint64_t pause_ns;       /* no write begins before this time, since one has failed */
    bool told_full;          /* a log line says so */
    uint64_t leaving_bytes;  /* of images that are being written */
    uint64_t ahead_bytes;    /* of images that are read ahead and not used yet */
    uint32_t kept_count;     /* images that could not be written */
    uint64_t look;           /* of the last look ahead */
    ferry_store_stats stats; /* without the atomic counters */
    uint64_t number;         /* of its file, unlike those of all other stores */
    fy_link lent;            /* places with a lease; under the crew's lock, as the next three */
    _Atomic uint64_t due_bytes;  /* of their objects that have not come back */
    _Atomic uint64_t last_bytes; /* of the last one */
    uint64_t leases;             /* how many have begun */
    struct fy_reader *readers;   /* by rank; NULL: none */
    atomic_bool offers;          /* a reader is to get an offer */
    bool sweeps;                 /* a rank is gone, and its leases are to end */
    bool serves; /* this rank is a data server: it runs no tasks while there are engines */
    struct fy_percolation *percolation; /* stands on this store (ferry/percolation.h); or NULL */
    _Atomic uint64_t reads, read_bytes, read_errors;
    fy_type *shadows[FY_TYPES_MAX]; /* NULL: a type that was not given to the store */
};

static inline ferry_store *fy_store_of(const ferry *f)
{
    return fy_objects_of(f)->store_state;
}

/* Notes the packed size. */
static inline void fy_stored_measured(fy_stored *item, uint64_t size_bytes)
{
    item->size_bytes = size_bytes;
    /* relaxed: who reads it needs nothing else of the item */
    atomic_store_explicit(&item->told_bytes, size_bytes, memory_order_relaxed);
}

static inline fy_stored *fy_stored_at(fy_link *link)
{
    return (fy_stored *)(void *)link;
}

/* Buffers, buffers.c. */

/* Memory that is aligned for the disk; freed with fy_buffer_give or free. NULL: no memory. [any
 * thread, lock not held] */
void *fy_buffer_take(ferry_store *s, size_t size_bytes);

/* Keeps memory of malloc to be used again, or frees it. NULL is ignored. [any thread, lock held] */
void fy_buffer_give(ferry_store *s, void *buffer);

/* Frees buffers until they and the objects have at most the budget and one buffer. */
void fy_buffers_trim(ferry_store *s);

/* From now on the data of objects of a flat type are in buffers: replaces the type's `unpack` and
 * `destroy`. */
void fy_buffers_serve(ferry_store *s, fy_type *type);

/* Undoes that for all types, and frees the buffers that are kept. */
void fy_buffers_end(ferry_store *s);

/* Images, file.c. */

/* Opens a new file without a name. If `direct` and the file system allows it, the file bypasses the
 * page cache, and `*align_bytes` is the alignment that it then needs. -1: errno says why. */
int fy_store_file_open(const char *folder, bool direct, size_t *align_bytes);

/* The checksum of an image of this object. */
uint64_t fy_image_sum(const void *image, uint64_t object, uint64_t size_bytes);

/* Allocates an image of `data_bytes`, which begins with the data; freed with fy_buffer_give or
 * free. NULL: no memory. [any thread, lock not held] */
void *fy_image_create(ferry_store *s, size_t data_bytes);

/* Whether an image takes little more than its data. Then data of a flat type become their image,
 * and the image becomes the data, without a copy. */
bool fy_image_is_small(const ferry_store *s, size_t data_bytes);

/* Packs an object that rests into `image`, which is new, and finds a place for it. Or ENOMEM. */
int fy_stored_pack(fy_stored *item);

/* Writes the image. Returns 0 or errno. [any thread] */
int fy_stored_put(fy_stored *item);

/* Reads the image and checks it, up to three times. Returns false if it fails; `why` has the
 * reason. [any thread] */
bool fy_stored_get(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* Jobs, jobs.c. */

/* FERRY_ENOMEM. Sets the error text. */
int fy_jobs_open(ferry_store *s, int threads);

/* Ends the threads. QUEUED jobs are dropped, BUSY ones end first. */
void fy_jobs_end(ferry_store *s);

/* Closes the file, after fy_jobs_end. */
void fy_jobs_close(ferry_store *s);

/* Begins to write the image. Returns whether the job was queued. A thread takes it after
 * fy_jobs_start at the latest. */
bool fy_job_write(fy_stored *item);

/* Begins to read the image, unless it is in memory or is being read. Returns false without memory
 * or threads. A thread takes the job as above. */
bool fy_job_read(fy_stored *item);

/* Wakes threads for the jobs that were queued, except for the job of `mine`, which this thread does
 * soon: to hand it over would take longer. NULL: for all. */
void fy_jobs_start(ferry_store *s, const fy_stored *mine);

/* Does a queued job, if all jobs in flight are small and threads were told of all but one: to hand
 * it over would take as long. */
void fy_jobs_serve(ferry_store *s);

/* Takes an item whose write has ended, or that an object which is gone has left. NULL: none. */
fy_stored *fy_jobs_reap(ferry_store *s);

/* Waits until fy_jobs_reap has something, while a write is in flight. */
void fy_jobs_wait(ferry_store *s);

/* Reads the image unless it is valid in memory already. It is then lent. Returns false if it cannot
 * be read; `why` has the reason. [either thread] */
bool fy_stored_read(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* Makes the valid image the data of its object. NULL: it is being written. */
void *fy_stored_adopt(fy_stored *item);

/* Frees the image, unless it is being written or, with `spare`, is lent. Returns whether it did. */
bool fy_stored_forget(fy_stored *item, bool spare);

/* The object is gone. If no job of its image is in flight, frees the image and returns true. Else
 * fy_jobs_reap returns the item later. */
bool fy_stored_abandon(fy_stored *item);

/* Shadows, shadow.c. */

/* The shadow for `type`; NULL: no memory. */
fy_type *fy_store_shadow_create(const fy_type *type);

/* Room, room.c. */

/* Packs objects and begins to write them, until what stays in memory and `more_bytes` are within
 * the budget. Waits for no write. */
void fy_store_evict(ferry_store *s, uint64_t more_bytes);

/* As fy_store_evict, and keeps room for objects that engines send back, and for one that was not
 * read ahead, if a sixteenth of the budget is enough for one. So its read waits for no write.
 * Images that are read ahead take that room. */
void fy_store_spare(ferry_store *s);

/* As fy_store_evict, and waits until that is so, or cannot be reached. */
void fy_store_make_room(ferry_store *s, uint64_t more_bytes);

/* Handles the writes that have ended. */
void fy_store_reap(ferry_store *s);

/* Begins to read the objects that run next, and makes room for them. Returns the first of all if it
 * has begun to read that. */
fy_stored *fy_store_read_ahead(ferry_store *s);

/* Counts bytes that have come into memory, and bytes that have left it. */
void fy_store_count(ferry_store *s, uint64_t more_bytes, uint64_t less_bytes);

/* The image has left memory, or its object is gone: it is no longer counted. */
void fy_stored_uncount(fy_stored *item);

/* Gives the place of an object that is gone to the free places, when no rank reads it. */
void fy_stored_recycle(fy_stored *item);

/* Logs that an object is larger than the budget. */
void fy_stored_say_large(const fy_stored *item);

/* Residence, residence.c. */

extern const fy_object_store fy_store_hooks;

static inline unsigned long long fy_stored_name(const fy_stored *item)
{
    return (unsigned long long)item->record->object.word;
}

/* Makes a new item, without a record. NULL: no memory. */
fy_stored *fy_stored_create(ferry_store *s, ferry_object object);

/* Whether rank `rank` reads images of this store where they are. */
bool fy_store_is_read_by(ferry_store *s, int rank);

/* Begins to manage the object of `record`. Without memory for that the object does not count in the
 * budget. */
void fy_store_keep(ferry *f, fy_record *record);

/* Brings an object that nobody uses into memory. Returns false if that fails; `why` has the reason,
 * which is logged. */
bool fy_stored_load(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* Frees the store and its items. */
void fy_store_destroy(ferry_store *s);

#endif
