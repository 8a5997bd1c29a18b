/* Priority buckets: the waiting objects of a rank, in buckets of similar load. In each bucket the
 * first object to come goes first.
 *
 * A bucket holds half an octave of load. Every operation takes constant time. The heaviest bucket
 * goes first, but from time to time another one has its turn, so that no object waits forever.
 *
 * Invariants: An item is in a bucket exactly if its `queued` is true, and `place` says in which.
 * Its `mark` is its load when it was last added, or 0 if that was not above `floor`. `load` is the
 * sum of the marks. */
#ifndef FY_BUCKETS_H
#define FY_BUCKETS_H

#include <ferry/scheduler.h>

enum { FY_BUCKETS = 128, FY_BUCKET_WORDS = FY_BUCKETS / 64 };

typedef struct fy_bucket {
    ferry_schedulable *first, *last;
} fy_bucket;

typedef struct fy_buckets {
    fy_bucket buckets[FY_BUCKETS];
    uint64_t used[FY_BUCKET_WORDS]; /* a bit per bucket that is not empty */
    uint32_t count;
    uint32_t loaded; /* of them, with a mark above 0 */
    uint32_t passed; /* pops in a row that took from the heaviest bucket of several */
    uint32_t turn;   /* the bucket whose turn is next, once `passed` is large enough */
    double load;
    double floor; /* with `in_order`: a load up to here counts as none; else 0 */
    bool
        in_order; /* all items are in one bucket: the first to come goes first, whatever its load */
} fy_buckets;

/* Puts `item` into a bucket if it has tasks. If it is in one already, it goes to the bucket of its
 * present load. Returns whether it is new. */
bool fy_buckets_add(fy_buckets *buckets, ferry_schedulable *item);

/* Takes `item` out of its bucket, if it is in one. */
void fy_buckets_remove(fy_buckets *buckets, ferry_schedulable *item);

/* Sets `in_order`. Takes time in proportion to the items. */
void fy_buckets_set_order(fy_buckets *buckets, bool in_order);

/* The object of the heaviest bucket that came first, or last; NULL if there is none. With
 * `in_order`: the last of the heaviest objects, after a look at each. */
ferry_schedulable *fy_buckets_first(const fy_buckets *buckets);
ferry_schedulable *fy_buckets_last(const fy_buckets *buckets);

/* The object that follows `after`, which is in a bucket. If `after` is NULL: the first of the
 * heaviest bucket. NULL if there is none. Objects go in this order, except for the turns of other
 * buckets. */
ferry_schedulable *fy_buckets_ahead(const fy_buckets *buckets, const ferry_schedulable *after);

/* Takes out the first object of the bucket whose turn it is, as a rule the heaviest. NULL if there
 * is none. */
ferry_schedulable *fy_buckets_pop(fy_buckets *buckets);

#endif
