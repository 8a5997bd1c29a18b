/* Group: some ranks of the job, in an order, that make collective calls together.
 *
 * A group has its ranks for as long as it lives: one that dies or leaves is not replaced, and from
 * then on calls over the group fail with FERRY_EPEER. The ranks that are left make a new group. A
 * rank may be in any number of groups. NULL stands for all members (member.h), wherever a group is
 * taken. `ferry_collective` (collective.h) takes a group. Ranks keep their numbers: a root is a
 * rank of the job. */
#ifndef FERRY_GROUP_H
#define FERRY_GROUP_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ferry_group ferry_group;

/* The colour of a rank that is to be in no group. */
#define FERRY_NO_COLOUR (-1)

/* Makes groups of the ranks of `parent`: one for each `colour`, from 0, of the ranks that pass it,
 * ordered by `key`, and for equal keys as in `parent`. Gives `*out`, freed with ferry_group_free;
 * NULL for a rank that passes FERRY_NO_COLOUR. Every rank of `parent` calls it. When it fails on
 * one rank of a new group, that group fails on all of them. FERRY_EINVAL: another colour below 0.
 * Other errors as ferry_allreduce. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_group_split(ferry *f, ferry_group *parent, int colour, int key,
                                               ferry_group **out);

/* Makes the group of the `count` ranks at `ranks`, in that order. Every rank of `parent` calls it
 * with the same list; `*out` is NULL for those that are not in it. Borrows `ranks`. FERRY_EPEER: a
 * listed rank has died or left. FERRY_EINVAL: a rank that is not in `parent` or is listed twice, or
 * lists that differ. Other errors as ferry_group_split. [app thread, not in handlers | polls | may
 * block] */
FERRY_API FERRY_MUST_USE int ferry_group_create(ferry *f, ferry_group *parent, const int *ranks,
                                                int count, ferry_group **out);

/* Frees `group`, on this rank alone. Started calls over it go on. NULL is left in peace. Groups
 * that are left at ferry_close are freed there. [app thread, not in handlers | never blocks] */
FERRY_API void ferry_group_free(ferry *f, ferry_group *group);

/* How many ranks `group` has; the rank whose place is `place`, from 0; the place of `rank`. -1:
 * there is none. [app thread | never blocks] */
FERRY_API int ferry_group_count(const ferry *f, const ferry_group *group);
FERRY_API int ferry_group_rank(const ferry *f, const ferry_group *group, int place);
FERRY_API int ferry_group_place(const ferry *f, const ferry_group *group, int rank);

#ifdef __cplusplus
}
#endif
#endif
