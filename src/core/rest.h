/* Rest: the board on which ranks that share memory write that they have no work (rest.c). */
#ifndef FY_REST_H
#define FY_REST_H

#include "core/head.h"

/* The rank opens, and there are boards. */
void fy_rest_init(ferry *f);

/* Whether the quiescence that begins may end by the board: all members of the group, and no other
 * ranks, are present and share memory. */
bool fy_rest_fits(const ferry *f);

/* Writes that this rank is at rest, if the board does not say so yet, and looks at the others.
 * Returns whether the epoch has ended. `*wrote`: the board has changed. [app thread, with the
 * control lock] */
bool fy_rest_look(ferry *f, bool *wrote);

/* For a rank at rest that waits: the wait is over when the epoch has ended. If the rank sleeps by
 * then, it is woken. `is_over` is fy_rest_is_over. [app thread] */
typedef struct fy_rest_lookout {
    fy_lookout lookout;
    ferry *f;
} fy_rest_lookout;
bool fy_rest_is_over(fy_lookout *lookout, bool sleeps);

/* Counts `count` units of work that are about to be sent. False: there is no board. [either thread]
 */
bool fy_rest_shipped(ferry *f, uint64_t count);

/* Units of work that fy_rest_shipped has counted. */
uint64_t fy_rest_shipments(const ferry *f);

#endif
