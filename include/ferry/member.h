/* Member: the ranks that a job has now, and how ranks join and leave.
 *
 * A rank keeps its number for the whole job. Numbers of ranks that have gone are not used again, so
 * the members need not be 0, 1, 2, ... Each rank learns at its own time that another rank has gone
 * (ferry_peer_watch). At the end of a ferry_quiesce all ranks agree on the members, and the
 * collectives that follow are among these. A member's place is its index in the order of numbers.
 * Gathers and scans go by places. cds.txt 6. */
#ifndef FERRY_MEMBER_H
#define FERRY_MEMBER_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Peers. */

/* A change of one rank: it has gone, or has joined. */
typedef struct ferry_peer_event {
    int rank;
    bool died;   /* it was killed or ended without ferry_close; else it closed, and others go on */
    bool joined; /* it has joined */
} ferry_peer_event;

/* Runs as a callback: once for each rank that joins, and once for each rank that goes. For a rank
 * that has gone, it runs after the handlers of all that arrived from it, and before the `failed` of
 * operations that name it. It may do what handlers may. */
typedef void ferry_peer_fn(ferry *f, void *arg, const ferry_peer_event *event);

/* Calls `fn`, in place of an earlier one, when another rank joins or goes. NULL ends the watch. If
 * every living rank watches, the job survives deaths: the launcher names the dead rank and goes on,
 * and its status does not count. Under mpirun and port loopback a death ends the job. Operations
 * that name a dead rank fail with FERRY_EPEER. So do collectives, until a ferry_quiesce has agreed
 * on the members (docs/messages.md). ferry_close waits for the living ranks, returns 0, and calls
 * `fn` no more. Keeps `arg` until then. [app thread, handlers | never blocks]
 * progressive-messages.txt 3.4, 4.2. */
FERRY_API int ferry_peer_watch(ferry *f, ferry_peer_fn *fn, void *arg);

/* Whether `rank` has gone, as far as this rank has been told. True also for a number that no rank
 * has yet. [app thread, handlers | never blocks] */
FERRY_API bool ferry_peer_is_gone(const ferry *f, int rank);

/* Joining and leaving. */

/* Starts `count` more ranks, which run `argv` (ended by NULL; `argv[0]` is sought in PATH). If
 * `argv` is NULL, they run this program with its arguments. Returns before they run; `*first`
 * is the number of the first. When a new rank opens Ferry, every rank learns of it
 * (ferry_peer_watch); docs/messages.md says when it becomes a member. FERRY_ENOMEM: no number is
 * left; over several nodes, none of this node's. FERRY_ENOTSUP: the job has no room for more ranks
 * (FERRY_RANKS_MAX), or cannot start any. FERRY_ESTATE: a collection exists. FERRY_EINVAL. [app
 * thread, handlers | never blocks] cds.txt 6. */
FERRY_API FERRY_MUST_USE int ferry_spawn(ferry *f, int count, char *const argv[], int *first);

/* Leaves the job; the other ranks stay. Moves this rank's objects to them, with their messages,
 * also objects of types that are not registered here. Names of objects that this rank created stay
 * valid. Then frees `f`. If ferry_main opened the rank, use `f` no more and return from rank_main.
 * docs/messages.md says how the others learn of it. Under mpirun the process sleeps until the
 * others close. FERRY_ENOTSUP: the port's ranks end together. FERRY_ENOMEM: the rank is still a
 * member. FERRY_ESTATE: in a handler, or a collection exists. [app thread, not in handlers | polls
 * | may block] cds.txt 6. */
FERRY_API int ferry_leave(ferry *f);

/* The members. */

/* How many members make the next collective call: at the start the ranks of the job, later the
 * members on which the last ferry_quiesce agreed. 0 on a rank that has joined, until its first
 * ferry_quiesce. [app thread, handlers | never blocks] */
FERRY_API int ferry_member_count(const ferry *f);

/* The rank at `place` among the members, from 0. -1: there is no such place. [app thread,
 * handlers | never blocks] */
FERRY_API int ferry_member_rank(const ferry *f, int place);

/* The place of `rank` among the members. -1: it is no member. [app thread, handlers |
 * never blocks] */
FERRY_API int ferry_member_place(const ferry *f, int rank);

#ifdef __cplusplus
}
#endif
#endif
