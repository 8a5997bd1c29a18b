/* Affinity: what ties an object to ranks. It has the static priorities of the object, and the
 * places of the objects on which it depends.
 *
 * Most objects have none. The application thread makes it. That thread also updates the places when
 * the object comes to rest, because only that thread may use the directory. A scheduler reads it on
 * either thread, with the lock. It travels with its object. */
#ifndef FY_AFFINITY_H
#define FY_AFFINITY_H

#include <stddef.h>
#include <stdint.h>

#include <ferry/object.h>

/* How many of the dependencies are on a rank, as far as this rank knows. */
typedef struct fy_place {
    int32_t rank;
    uint32_t count;
} fy_place;

typedef struct fy_affinity {
    double granularity;
    uint32_t priority_count; /* 0, or one per rank */
    uint32_t dependency_count;
    uint32_t place_count;
    double *priorities;
    uint64_t *dependencies; /* names of objects */
    fy_place *places;       /* room for one per dependency */
} fy_affinity;

/* Makes one with room for so many, in one block that is freed with free. NULL without memory. */
fy_affinity *fy_affinity_create(uint32_t priority_count, uint32_t dependency_count);

/* Its bytes in a migration frame; 0 for NULL. */
size_t fy_affinity_bytes(const fy_affinity *affinity);
unsigned char *fy_affinity_write(const fy_affinity *affinity, unsigned char *at);

/* Reads from `*at`, which it advances, what fy_affinity_write wrote with the same counts.
 * FERRY_EINVAL: there are fewer bytes before `end`, or it is malformed; FERRY_ENOMEM. */
int fy_affinity_read(const unsigned char **at, const unsigned char *end, uint32_t priority_count,
                     uint32_t dependency_count, fy_affinity **out);

/* Looks up the dependencies with `locate`, which gives a rank or -1. */
void fy_affinity_place(fy_affinity *affinity, int (*locate)(const void *context, uint64_t object),
                       const void *context);

/* Dependencies on `rank`; 0 for NULL. */
uint32_t fy_affinity_there(const fy_affinity *affinity, int rank);

#endif
