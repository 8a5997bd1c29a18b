/* Places: images that another rank of the same host reads where they are.
 *
 * A store offers its file once to each rank to which an object on disk migrates. If that rank can
 * open the file, it accepts objects of the types in its own store. From then on, an object of these
 * types migrates as a *place*: where its image is, and the checksum. The rank that has sent it
 * keeps the place for a *lease*. The lease ends when the other rank has read the image, when the
 * place comes back, or when the other rank is gone.
 *
 * On the other rank the object is on disk as before, in a file of another rank. The threads of its
 * store read the image when it is needed. An object that goes back unread goes as its place. The
 * reader keeps the file open, so the image outlives the rank that has written it.
 *
 * Threads: leases and readers are under the lock of the disk's crew, since the thread that migrates
 * an object makes a lease. All else belongs to the application thread. */
#ifndef FY_STORE_PLACES_H
#define FY_STORE_PLACES_H

#include "core/layer.h"
#include "store/state.h"

enum {
    FY_KIND_STORE_OFFER = FY_KINDS_OF_STORE,
    FY_KIND_STORE_ACCEPT, /* an answer to an offer; the last one counts */
    FY_KIND_STORE_RELEASE /* a lease ends */
};

enum { FY_TYPE_WORDS = FY_TYPES_MAX / 64 };

/* A place, as it migrates. */
typedef struct fy_image_place {
    uint64_t number; /* of the file */
    uint64_t lease, offset, size_bytes, sum;
    double load, granularity;
    int64_t rank; /* that has written the image */
} fy_image_place;

/* A file of another rank's store, or of an earlier store of this rank. */
typedef struct fy_file {
    fy_link link;
    uint64_t number;
    size_t align_bytes;
    int rank, fd;
    uint32_t items;   /* objects of this rank whose images are in it */
    atomic_bool gone; /* its rank is dead or has left; both threads read this */
} fy_file;

static inline bool fy_file_is_gone(const fy_file *file)
{
    /* relaxed: nothing else of the file changes with it */
    return atomic_load_explicit(&file->gone, memory_order_relaxed);
}

/* Another rank, as a reader of this store's file. */
typedef struct fy_reader {
    bool wanted, told;             /* it is to get an offer; it has got one */
    uint64_t types[FY_TYPE_WORDS]; /* that it accepts as places */
} fy_reader;

/* Places, places.c. */

/* Writes the place of an object that leaves as a place. [either thread] */
void fy_place_write(const fy_stored *item, void *out);

/* The image is no longer needed in the file of another rank, or has gone back to it as a place. */
void fy_place_release(fy_stored *item);

/* Tells the ranks whose files are open here which types this rank accepts as places. */
void fy_places_accept(ferry_store *s);

/* Sends offers that are due, and ends the leases of ranks that are gone. */
void fy_places_progress(ferry_store *s);

/* The store closes. Its file stays open if a place in it may come back. */
void fy_places_end(ferry_store *s);

/* Leases, leases.c. */

/* Whether the object of `item`, which leaves, goes as a place. [either thread] */
bool fy_place_lend(fy_stored *item);

/* Whether a rank has a lease of the place of `item`, whose object is gone or has its data in
 * memory. If the object has not `left` as a place, the place could not be sent, and its lease ends.
 */
bool fy_place_is_leased(fy_stored *item, bool left);

/* A lease has ended at `reader`. False: there is no such lease. */
bool fy_lease_end(ferry_store *s, uint64_t lease, int reader);

/* The item of a lease whose place comes back with `object`. NULL: no object left this rank with
 * this lease, or another one did. */
fy_stored *fy_lease_return(ferry_store *s, uint64_t lease, ferry_object object);

/* The room that a data server needs soon: engines send back what they read. At most half of the
 * budget, or one object. */
uint64_t fy_leases_due(const ferry_store *s);

/* An object has come back, perhaps before its lease ends. */
void fy_leases_met(ferry_store *s, uint64_t object);

/* The types that `rank` accepts from now on. */
void fy_lease_accept(ferry_store *s, int rank, const uint64_t types[FY_TYPE_WORDS]);

/* Ends the leases of ranks that are gone. False: not yet, since a place that came back from one may
 * wait to be installed. */
bool fy_leases_sweep(ferry_store *s);

/* The store closes. Returns whether a place may come back. */
bool fy_leases_free(ferry_store *s);

#endif
