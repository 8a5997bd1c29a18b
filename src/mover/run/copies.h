/* Copies: a compact list of plan entries. A bound mover keeps its entries in it, in case that
 * blocks change owners. An entry takes some 20 bytes, as numbers of variable length:
 *
 * - block numbers and corners, relative to the entry before
 * - extents, and distances from `to` to `from`
 * - axes, ratios and relation, if the entry is not plain
 *
 * So a list can be read only from its beginning. */
#ifndef FY_MOVER_COPIES_H
#define FY_MOVER_COPIES_H

#include <ferry/mover_plan.h>

/* All zero is an empty list. */
typedef struct fy_copies {
    unsigned char *bytes;
    size_t size_bytes, count;
} fy_copies;

/* Fills an empty list with the `count` entries of `plan` whose indices are in `which`.
 * FERRY_ENOMEM. */
int fy_copies_make(fy_copies *list, const ferry_plan *plan, const uint32_t *which, size_t count);

void fy_copies_fini(fy_copies *list);

/* The state of reading. Start with `list` set and all else zero. */
typedef struct fy_copies_walk {
    const fy_copies *list;
    size_t at, index;
    ferry_plan_entry copy; /* the last one read */
} fy_copies_walk;

/* Reads the next entry into `walk->copy`; false after the last. */
bool fy_copies_next(fy_copies_walk *walk);

#endif
