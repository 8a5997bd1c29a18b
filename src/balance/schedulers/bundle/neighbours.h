/* Neighbours: the few ranks that a policy asks at a time.
 *
 * They are consecutive ranks on the ring of ranks that take objects (ferry_scheduling_acceptor).
 * The distance of the first neighbour is random, so that ranks begin with different neighbours.
 * fy_neighbours_pass goes on to the next few ranks, and so reaches all ranks in time. When ranks
 * join or leave, the same distances name other ranks. */
#ifndef FY_NEIGHBOURS_H
#define FY_NEIGHBOURS_H

#include <ferry/scheduler.h>

enum { FY_NEIGHBOURS_MAX = 64 };

typedef struct fy_neighbours {
    int offset; /* distance of the first neighbour, less 1 */
    int most;   /* parameter NEIGHBOURS */
} fy_neighbours;

/* The parameter NEIGHBOURS, as it is now. */
int fy_neighbours_most(ferry_scheduling *s);

void fy_neighbours_init(ferry_scheduling *s, fy_neighbours *n);

/* How many neighbours there are, and the rank of the one with this index, from 0. */
int fy_neighbours_count(const ferry_scheduling *s, const fy_neighbours *n);
int fy_neighbours_rank(const ferry_scheduling *s, const fy_neighbours *n, int index);

/* Makes the next ranks of the ring the neighbours. */
void fy_neighbours_pass(const ferry_scheduling *s, fy_neighbours *n);

#endif
