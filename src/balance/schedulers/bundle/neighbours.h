/* Neighbours: the few ranks that a policy asks at a time, among those that take objects now.
 *
 * They stand one behind the other on the ring of takers (ferry_scheduling_acceptor), from a
 * distance that differs from rank to rank; passing on to the next few reaches all in time. When
 * ranks come or go the same places are others'. */
#ifndef FY_NEIGHBOURS_H
#define FY_NEIGHBOURS_H

#include <ferry/scheduler.h>

enum { FY_NEIGHBOURS_MAX = 64 };

typedef struct fy_neighbours {
    int offset; /* of the first, behind the rank's own successor */
    int most;   /* parameter NEIGHBOURS */
} fy_neighbours;

void fy_neighbours_init(ferry_scheduling *s, fy_neighbours *n);

/* How many there are, and the rank of each, from 0. */
int fy_neighbours_count(const ferry_scheduling *s, const fy_neighbours *n);
int fy_neighbours_rank(const ferry_scheduling *s, const fy_neighbours *n, int index);

/* Takes the next ones. */
void fy_neighbours_pass(const ferry_scheduling *s, fy_neighbours *n);

#endif
