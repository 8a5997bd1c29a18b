/* Member: the ranks that a job has now, how they come and go, and how they agree upon it.
 *
 * A rank's number is its own for the whole job: those of ranks that have gone are not used again,
 * so the members need not be 0, 1, 2, ... Each rank learns in its own time that another has gone
 * (ferry_peer_watch). All agree where a ferry_quiesce ends: collectives that follow it are
 * those of the members it ended among, whose places are their order by number. Gathers and scans go
 * by places. cds.txt 6. */
#ifndef FERRY_MEMBER_H
#define FERRY_MEMBER_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Peers. */

/* A rank that is gone, or has joined. */
typedef struct ferry_peer_event {
    int rank;
    bool died;   /* it was killed or ended without ferry_close; else it closed while others go on */
    bool joined; /* it has come (member.h) */
} ferry_peer_event;

/* Runs as a callback, once for each rank that joins, and once for each that goes, behind everything
 * that rank sent which is still handled, and before the `failed` of the operations that name it.
 * May do what handlers may. */
typedef void ferry_peer_fn(ferry *f, void *arg, const ferry_peer_event *event);

/* Calls `fn` when another rank goes, and lets the job survive it: when every rank that lives has
 * registered one, the launcher says which rank died and goes on, and its status does not count. A
 * job of which any rank has registered none ends with a line that says why, as always, and on ranks
 * that have registered none every collective fails from then on (core.h). On the others
 * every operation that names a rank that is gone fails with FERRY_EPEER; so do collectives, until a
 * ferry_quiesce has counted it out: those that follow are of the members that are left (member.h).
 * ferry_close waits for those that live and returns 0; it calls `fn` no more, as what `arg` stands
 * on may be gone. `fn` NULL: no longer. `arg` is kept until then. [app thread, handlers | never
 * blocks] progressive-messages.txt 3.4, 4.2. */
FERRY_API int ferry_peer_watch(ferry *f, ferry_peer_fn *fn, void *arg);

/* Whether `rank` has gone, as far as this rank has been told. [app thread | never blocks] */
FERRY_API bool ferry_peer_is_gone(const ferry *f, int rank);

/* Joining and leaving. */

/* Starts `count` more ranks, which run `argv` (ended by NULL; `argv[0]` is looked up in PATH) or,
 * when it is NULL, the same program with the same arguments. Returns before they run; `*first` is
 * the number of the first. When a new rank opens Ferry, every rank learns of it (ferry_peer_watch);
 * docs/messages.md says when it becomes a member. FERRY_ENOMEM: no numbers are left; over several
 * nodes, none of this node's. FERRY_ENOTSUP: no room was asked for (FERRY_RANKS_MAX), or this job
 * cannot start ranks; the message says why. FERRY_EINVAL. [app thread, handlers | never blocks]
 * cds.txt 6. */
FERRY_API FERRY_MUST_USE int ferry_spawn(ferry *f, int count, char *const argv[], int *first);

/* Leaves the job while the others stay: moves the objects that are here to them, with the messages
 * that wait for them (also those of kinds that are not registered here), handles what has been sent
 * here, and gives what this rank knows of other objects, its own creations among them, to one that
 * stays; names stay valid. Then frees `f`, as ferry_close does; in a program of ferry_main, which
 * frees it, rank_main is to return at once. The others are told as of a peer that closed
 * (ferry_peer_watch), and their next ferry_quiesce ends without it. Operations on this rank (not on
 * objects) that they begin meanwhile fail with FERRY_EPEER. Tasks of the objects that are moved run
 * elsewhere; balancing ends here. MPI ends for all processes at once: under mpirun the one that has
 * left sleeps until the others close, in this call or, in a program of ferry_main, at its end.
 * FERRY_ENOTSUP: the port's ranks end together. FERRY_ENOMEM: the rank is still a member.
 * FERRY_ESTATE: in a handler. [app thread, not in handlers | polls | may block] cds.txt 6. */
FERRY_API int ferry_leave(ferry *f);

/* The members. */

/* How many members make the next collective call. At the start the ranks that the job begins with,
 * after a ferry_quiesce those that it ended among; 0 for one that has joined, before its first.
 * [app thread | never blocks] */
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
