/* Waiting: which ranks wait for which, as they answer a status query (core/why.h), and whether
 * there is a deadlock. Each rank tells of a moment of its own, and the moments differ: ranks that
 * wait for each other in two answers, one after the other, are in a deadlock. For a process that
 * has heard several ranks: the launcher, a node, the simulator. */
#ifndef FY_WAITING_H
#define FY_WAITING_H

#include "base/shared.h"
#include "port/port.h"

enum { FY_AWAITED_MAX = 8 };

/* The answer of a rank. */
typedef struct fy_waiting {
    int rank; /* its number in the job */
    bool lives, answered;
    uint8_t count; /* of `awaited` */
    uint32_t doing;
    int32_t awaited[FY_AWAITED_MAX]; /* ranks that it has said it waits for */
    double quiet_s;                  /* how long it has had nothing to do; 0: not known */
} fy_waiting;

/* Notes what a line of its answer says: ">N words" is that it waits for rank N. Gives N, and where
 * the words begin; -1: it says something else, as how long it has had nothing to do. " N words" is
 * of rank N, which it does not need now.
 * Writes "any tag" for FERRY_ANY_TAG. A rank that waits for itself waits for a handler, so that is
 * no deadlock. */
FY_SHARED int fy_waiting_read(fy_waiting *waiting, char *line, char **words);

/* Whether a rank in a call of all waits for another, which is not in it. */
bool fy_waiting_misses(const fy_waiting *waiting, const fy_waiting *other);

/* Writes a shortest deadlock that `all[start]` is in: "rank 0 waits for rank 2, which waits for
 * rank 0". Returns the lowest rank in it, or -1 when there is none. */
FY_SHARED int fy_waiting_deadlock(const fy_waiting *all, uint32_t count, uint32_t start, char *out,
                                  size_t size);

/* Writes one, wherever it is. False: there is none. */
FY_SHARED bool fy_waiting_any_deadlock(const fy_waiting *all, uint32_t count, char *out,
                                       size_t size);

#endif
