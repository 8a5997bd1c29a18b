/* Ladder: the waiting objects of a rank on rungs of like load, first come first on each rung.
 *
 * Rungs are half octaves of load. Everything takes constant time. The heaviest rung goes first, but
 * every so often another has its turn, so that nothing waits for ever. Invariants: an item is on
 * the ladder exactly when its `queued` is true; its `mark` is its load when it was put there, and
 * `load` is the sum of the marks. */
#ifndef FY_LADDER_H
#define FY_LADDER_H

#include <ferry/scheduler.h>

enum { FY_RUNGS = 128, FY_RUNG_WORDS = FY_RUNGS / 64 };

typedef struct fy_rung {
    ferry_schedulable *first, *last;
} fy_rung;

typedef struct fy_ladder {
    fy_rung rungs[FY_RUNGS];
    uint64_t used[FY_RUNG_WORDS]; /* a bit per rung that is not empty */
    uint32_t count;
    uint32_t loaded; /* of them, with a mark above 0 */
    uint32_t passed; /* pops in a row that took from the heaviest rung of several */
    uint32_t turn;   /* of the rungs, when so many were passed over */
    double load;
} fy_ladder;

/* Puts `item` on when it has tasks; one that is on it goes to the rung of its present load. Returns
 * whether it is new there. */
bool fy_ladder_add(fy_ladder *ladder, ferry_schedulable *item);

/* Takes `item` off when it is on. */
void fy_ladder_remove(fy_ladder *ladder, ferry_schedulable *item);

/* Of the heaviest rung the one that came first, or last; NULL when there is none. */
ferry_schedulable *fy_ladder_first(const fy_ladder *ladder);
ferry_schedulable *fy_ladder_last(const fy_ladder *ladder);

/* Takes off the first of the rung whose turn it is, as a rule the heaviest; NULL when there is
 * none.
 */
ferry_schedulable *fy_ladder_pop(fy_ladder *ladder);

#endif
