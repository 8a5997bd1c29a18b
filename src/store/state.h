/* State: what a store knows of its objects, and where they are on disk.
 *
 * A managed object has a `fy_stored`, which its record points to, from when its data comes to this
 * rank until its record is freed. It is resident, or it is out. Then its data are that `fy_stored`,
 * and its type is a shadow of the store's. It has an image of its data on disk, in memory, or both.
 * The shadow's pack copies the image, so an object that is out migrates on either thread without
 * being made again.
 *
 * An object goes out by being packed into an image in memory, which the disk's threads write. Until
 * they have, it comes back from that image. The image of an object whose work is near is read
 * ahead; another is read by its user.
 *
 * Threads: all belongs to the application thread, with these exceptions.
 *
 * - A `fy_job`, and changes of `image`, are under the lock of the disk's crew.
 * - A thread of the disk has image, place and size while the job is BUSY.
 * - The thread that migrates an object which is out reads its image. Nobody else frees the image
 *   then, since it is lent.
 * - The atomic counters only count.
 *
 * Errors: an object that cannot be written keeps its image in memory, and for a while nothing is
 * written. If an object cannot be read, the message that needs it fails at its sender, the job
 * knows of a loss, and the object stays out. */
#ifndef FY_STORE_STATE_H
#define FY_STORE_STATE_H

#include <sys/types.h>

#include <ferry/store.h>

#include "base/crew.h"
#include "base/list.h"
#include "object/object.h"

enum { FY_SIZE_CLASSES = 64, FY_DISK_THREADS = FY_CREW_MAX, FY_STORE_WHY_BYTES = 128 };

typedef enum fy_work { FY_WORK_NONE, FY_WORK_QUEUED, FY_WORK_BUSY } fy_work;

/* A read or write of an image. */
typedef struct fy_job {
    fy_link link; /* of a queue, or of those that have ended */
    fy_work work;
    bool writes;
    bool valid;  /* the image has what the object's data are */
    bool lent;   /* who migrates the object reads the image: it stays */
    bool orphan; /* the object is gone */
    int error;   /* errno of a write that has ended */
    struct fy_stored *item;
} fy_job;

typedef struct fy_stored {
    fy_link link; /* `resident`, `out`, or `places` when no object has it */
    fy_record *record;
    ferry_store *store;
    uint64_t object;      /* its name, also when it is gone */
    uint64_t size_bytes;  /* packed: when it was last looked at, or in its image */
    uint64_t offset;      /* of its place in the file */
    unsigned size_class;  /* its place has 2^size_class bytes; 0: it has none */
    bool untold;          /* nobody has logged yet that it cannot be read */
    bool leaving;         /* its image is being written */
    bool kept;            /* its image could not be written */
    bool ahead;           /* its image is being read ahead, or was */
    uint64_t image_bytes; /* as which its image counts; 0: it does not */
    uint64_t look; /* when it runs, if above the `look` of the store: in its last look ahead */
    double load, granularity;
    void *image; /* NULL: there is none in memory */
    fy_job job;
} fy_stored;

/* A file and the threads that read and write it. `read` and `write` are as pread and pwrite; tests
 * replace them. */
typedef struct fy_disk {
    ssize_t (*read)(int fd, void *buffer, size_t size_bytes, off_t offset);
    ssize_t (*write)(int fd, const void *buffer, size_t size_bytes, off_t offset);
    int fd;
    size_t align_bytes; /* of addresses, offsets and lengths, a power of two */
    bool simulated;     /* no threads: a job is done when it is begun, in no time */
    int limit;          /* of threads */
    fy_crew crew;
    fy_link reads, writes; /* queued */
    fy_link done;          /* ended, and to be taken by fy_jobs_reap */
} fy_disk;

struct ferry_store {
    ferry *f;
    fy_objects *objects;
    fy_disk disk;
    bool blind;       /* least recently used, and no reading ahead: to compare with */
    fy_link resident; /* least recently used first */
    fy_link out;
    fy_link places[FY_SIZE_CLASSES]; /* of objects that are gone, by size class */
    uint64_t end_bytes;              /* of the file's places */
    fy_stored *last;                 /* ran last, and may have another size now; or NULL */
    uint64_t pause_ns;               /* nothing is written before, since a write has failed */
    bool told_full;                  /* such failures were logged */
    uint64_t leaving_bytes;          /* of images that are being written */
    uint64_t ahead_bytes;            /* of images that are read ahead and not used yet */
    uint32_t kept_count;             /* images that could not be written */
    uint64_t look;                   /* of the last look ahead */
    ferry_store_stats stats;         /* without what is atomic */
    _Atomic uint64_t reads, read_bytes, read_errors;
    fy_type *shadows[FY_TYPES_MAX]; /* NULL: a type that is not the store's */
};

static inline ferry_store *fy_store_of(const ferry *f)
{
    return fy_objects_of(f)->store_state;
}

static inline fy_stored *fy_stored_at(fy_link *link)
{
    return (fy_stored *)(void *)link;
}

/* Images, file.c. */

/* A new file without a name, which passes by the page cache if `direct` and the file system can;
 * `*align_bytes` says what it needs then. -1: errno says why. */
int fy_store_file_open(const char *folder, bool direct, size_t *align_bytes);

/* Room for an image of `data_bytes`, which begins with the data, freed with free; NULL: no memory.
 */
void *fy_image_create(const ferry_store *s, size_t data_bytes);

/* Whether an image takes little more than its data. Data of a plain type become their image then,
 * and the image becomes the data, without a copy. */
bool fy_image_is_small(const ferry_store *s, size_t data_bytes);

/* Packs an object that rests into `image`, which is new, and finds a place for it. ENOMEM. */
int fy_stored_pack(fy_stored *item);

/* Writes the image. 0, or the errno of its failure. [any thread] */
int fy_stored_put(fy_stored *item);

/* Reads the image and checks it; tries thrice. False: `why` says why not. [any thread] */
bool fy_stored_get(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* Jobs, jobs.c. */

/* FERRY_ENOMEM. */
int fy_jobs_open(ferry_store *s, int threads);

/* Ends the threads. Jobs that are queued are dropped, BUSY ones end. */
void fy_jobs_end(ferry_store *s);

/* After that: closes the file. */
void fy_jobs_close(ferry_store *s);

/* Begins to write the image. */
void fy_job_write(fy_stored *item);

/* Begins to read the image, unless it is there or somebody does. False: no memory, or so. */
bool fy_job_read(fy_stored *item);

/* Takes a write that has ended, or what an object that is gone has left; NULL: there is none. */
fy_stored *fy_jobs_reap(ferry_store *s);

/* Waits until fy_jobs_reap has something, while a write is in flight. */
void fy_jobs_wait(ferry_store *s);

/* Makes the image valid in memory: reads it unless it is there. False: `why`. It is lent then.
 * [either thread] */
bool fy_stored_read(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* Takes the image, which is valid, as the data of its object; NULL: it is being written. */
void *fy_stored_adopt(fy_stored *item);

/* Frees the image unless it is being written, or, with `spare`, lent. Whether it did. */
bool fy_stored_forget(fy_stored *item, bool spare);

/* The object is gone: whether nothing is in flight for its image, which is freed then. Else
 * fy_jobs_reap gives it. */
bool fy_stored_abandon(fy_stored *item);

/* Shadows, shadow.c. */

/* The shadow for `type`; NULL: no memory. */
fy_type *fy_store_shadow_create(const fy_type *type);

/* Room, room.c. */

/* Packs objects, and has them written, until what stays in memory is within the budget with
 * `more_bytes`. Waits for no write. */
void fy_store_evict(ferry_store *s, uint64_t more_bytes);

/* Does that and waits until all is within the budget, as far as it can be. */
void fy_store_make_room(ferry_store *s, uint64_t more_bytes);

/* Takes the writes that have ended. */
void fy_store_reap(ferry_store *s);

/* Begins to read what runs next, and makes room for it. */
void fy_store_read_ahead(ferry_store *s);

/* Counts bytes that have come to memory, and that have gone. */
void fy_store_count(ferry_store *s, uint64_t more_bytes, uint64_t less_bytes);

/* The image is in memory no more, or nobody's: it does not count. */
void fy_stored_uncount(fy_stored *item);

/* An object that is gone leaves its place to another one. */
void fy_stored_recycle(fy_stored *item);

/* Logs that an object is larger than the budget. */
void fy_stored_say_large(const fy_stored *item);

/* Residence, residence.c. */

extern const fy_object_store fy_store_hooks;

static inline unsigned long long fy_stored_name(const fy_stored *item)
{
    return (unsigned long long)item->record->object.word;
}

/* Begins to manage the object of `record`. Without memory it stays outside the budget. */
void fy_store_keep(ferry *f, fy_record *record);

/* Makes an object that nothing else uses resident. False: it cannot be, for the reason `why`, which
 * is logged. */
bool fy_stored_load(fy_stored *item, char why[FY_STORE_WHY_BYTES]);

/* Frees the store and what it knows. */
void fy_store_destroy(ferry_store *s);

#endif
