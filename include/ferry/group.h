/* Group: a list of ranks that make collective calls together, as MPI's communicators.
 *
 * The ranks of a group never change. If one of them dies or leaves, later calls over the group fail
 * with FERRY_EPEER, even a call that the leaving rank has made. The other ranks can make a new
 * group. Groups without that rank go on (docs/messages.md: exceptions). A rank may be in any number
 * of groups. Each argument that is a group may be NULL: all members. `ferry_collective` takes a
 * group. Ranks keep their numbers: a root is a rank of the job. A rank's *place* is its index in
 * the group. */
#ifndef FERRY_GROUP_H
#define FERRY_GROUP_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ferry_group ferry_group;

/* The colour of a rank that is to be in no group. */
#define FERRY_NO_COLOUR (-1)

/* Divides the ranks of `parent` into groups. Ranks that pass the same `colour` (0 or above) are one
 * group, ordered by `key` and, for equal keys, as in `parent`. Gives `*out`, freed with
 * ferry_group_free; NULL for a rank that passes FERRY_NO_COLOUR. Every rank of `parent` calls it.
 * If the call fails on one rank of a new group, it fails on all ranks of that group. But if one of
 * them dies, others may have a group already, whose collectives fail. FERRY_EINVAL: another colour
 * below 0. Other errors as ferry_allreduce. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_group_split(ferry *f, ferry_group *parent, int colour, int key,
                                               ferry_group **out);

/* Makes the group of the `count` ranks at `ranks`, in that order. Every rank of `parent` calls it
 * with the same list; `*out` is NULL on ranks that are not in the list. Borrows `ranks`.
 * FERRY_EPEER: a listed rank has died or left. FERRY_EINVAL: a listed rank is not in `parent` or is
 * listed twice, or the lists differ. Other errors as ferry_group_split. [app thread, not in
 * handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_group_create(ferry *f, ferry_group *parent, const int *ranks,
                                                int count, ferry_group **out);

/* Frees `group` on this rank alone. Started calls over it go on. NULL is ignored. ferry_close frees
 * the groups that are left. [app thread, not in handlers | never blocks] */
FERRY_API void ferry_group_free(ferry *f, ferry_group *group);

/* How many ranks `group` has; the rank at `place`, from 0; the place of `rank`. -1: there is no
 * such place or rank. [app thread, handlers | never blocks] */
FERRY_API int ferry_group_count(const ferry *f, const ferry_group *group);
FERRY_API int ferry_group_rank(const ferry *f, const ferry_group *group, int place);
FERRY_API int ferry_group_place(const ferry *f, const ferry_group *group, int rank);

#ifdef __cplusplus
}
#endif
#endif
