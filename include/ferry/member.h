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

/* Calls `fn` when another rank joins or goes, and lets the job survive a death if every rank that
 * lives has registered one. Then the launcher names the dead rank and goes on, and its status does
 * not count. Operations that name a dead rank fail with FERRY_EPEER. So do collectives, until a
 * ferry_quiesce has agreed on the members (docs/messages.md). ferry_close waits for ranks that
 * live, returns 0, and calls `fn` no more. `fn` NULL: no longer. Keeps `arg` until then. [app
 * thread, handlers | never blocks] progressive-messages.txt 3.4, 4.2. */
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

/* Leaves the job while the others stay. Moves the objects here to them, with their messages, also
 * objects of types that are not registered here. Names that it gave stay valid. Then frees `f`; in
 * a program of ferry_main, which frees it, rank_main returns immediately. The others are told as of
 * a peer that closed; docs/messages.md says more. Under mpirun the process sleeps until the others
 * close. FERRY_ENOTSUP: the port's ranks end together. FERRY_ENOMEM: the rank is still a member.
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
