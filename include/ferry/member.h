/* Member: the ranks that a job has now, and how they agree upon it.
 *
 * A rank's number is its own for the whole job: those of ranks that have gone are not used again,
 * so the members need not be 0, 1, 2, ... Each rank learns in its own time that another has gone
 * (ferry_on_peer, event.h). All agree where a ferry_quiesce ends: collectives that follow it are
 * those of the members it ended among, whose places are their order by number. Gathers and scans go
 * by places. cds.txt 6. */
#ifndef FERRY_MEMBER_H
#define FERRY_MEMBER_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many members make the next collective call. At the start all ranks; after a ferry_quiesce
 * those that it ended among. [app thread | never blocks] */
FERRY_API int ferry_member_count(const ferry *f);

/* The rank whose place among the members is `place`, from 0; -1: there is none. [app thread | never
 * blocks] */
FERRY_API int ferry_member_rank(const ferry *f, int place);

/* The place of `rank` among the members; -1: it is none. [app thread | never blocks] */
FERRY_API int ferry_member_place(const ferry *f, int rank);

#ifdef __cplusplus
}
#endif
#endif
