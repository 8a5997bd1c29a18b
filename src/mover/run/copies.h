/* Copies: entries of a plan as a mover keeps them while it is bound, for the day when blocks change
 * owners. They stand entry after entry, each in some 20 bytes, as numbers of variable length. Those
 * of block and place are counted from the entry before. Extents and distances are as they are.
 * Axes, ratios and relation are there where they are not the plain ones. Read from the beginning
 * alone. */
#ifndef FY_MOVER_COPIES_H
#define FY_MOVER_COPIES_H

#include <ferry/mover_plan.h>

/* All zero is an empty list. */
typedef struct fy_copies {
    unsigned char *bytes;
    size_t size_bytes, count;
} fy_copies;

/* Makes the list, which is empty, of the `count` entries of `plan` in `which`. FERRY_ENOMEM. */
int fy_copies_make(fy_copies *list, const ferry_plan *plan, const uint32_t *which, size_t count);

void fy_copies_fini(fy_copies *list);

/* Where reading stands. Start with `list` set, the rest zero. */
typedef struct fy_copies_walk {
    const fy_copies *list;
    size_t at, index;
    ferry_plan_entry copy; /* the last one read */
} fy_copies_walk;

/* Reads the next entry into `walk->copy`; false after the last. */
bool fy_copies_next(fy_copies_walk *walk);

#endif
