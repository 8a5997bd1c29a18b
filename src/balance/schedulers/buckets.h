/* Priority buckets: the waiting objects of a rank on buckets of like load, first come first on each
 * bucket.
 *
 * Buckets are half octaves of load. Everything takes constant time. The heaviest bucket goes first,
 * but every so often another has its turn, so that nothing waits for ever. Invariants: An item is
 * on the priority buckets exactly when its `queued` is true. Its `mark` is its load when it was put
 * there, or 0 if that was not above `floor`. `load` is the sum of the marks. */
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
    uint32_t turn;   /* of the buckets, when so many were passed over */
    double load;
    double floor;  /* with `in_order`: a load up to here counts as none; else 0 */
    bool in_order; /* all are on one bucket: first come first, whatever the load */
} fy_buckets;

/* Puts `item` on when it has tasks; one that is on it goes to the bucket of its present load.
 * Returns whether it is new there. */
bool fy_buckets_add(fy_buckets *buckets, ferry_schedulable *item);

/* Takes `item` off when it is on. */
void fy_buckets_remove(fy_buckets *buckets, ferry_schedulable *item);

/* Whether first come goes first from now on: see `in_order`. Takes time for each that is on. */
void fy_buckets_set_order(fy_buckets *buckets, bool in_order);

/* The object of the heaviest bucket that came first, or last; NULL when there is none. With
 * `in_order` the last of the heaviest, after a look at each. */
ferry_schedulable *fy_buckets_first(const fy_buckets *buckets);
ferry_schedulable *fy_buckets_last(const fy_buckets *buckets);

/* The object that follows `after`, which is on. If `after` is NULL: the first of the heaviest
 * bucket. NULL when there is none. They go in this order, but for the turns of other buckets. */
ferry_schedulable *fy_buckets_ahead(const fy_buckets *buckets, const ferry_schedulable *after);

/* Takes off the first of the bucket whose turn it is, as a rule the heaviest; NULL when there is
 * none.
 */
ferry_schedulable *fy_buckets_pop(fy_buckets *buckets);

#endif
