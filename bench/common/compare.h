/* Compare: measures one case with ours and every peer that can, alternating in rounds.
 *
 * A sample counts when the hand-off of a cache line was the same before and after it; a round when
 * all its samples found the machine in the same state. Others are repeated, as often again as runs
 * were asked for; of two states, the more frequent one is reported. Samples are a few milliseconds
 * long and many, so that the median is not a mean of somebody else's work. A side for which one
 * operation takes that long gives at least three samples. Teams live on between cases of as many
 * ranks. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include "common/report.h"
#include "common/side.h"

enum { BENCH_SIDES_MAX = 8, BENCH_TARGETS_MAX = 6 };

/* The work of other programs while a case runs. */
typedef enum bench_beside {
    BENCH_ALONE,
    BENCH_BURSTS,       /* on each core a program computes for 1 ms of every 20 ms */
    BENCH_ONE_COMPUTES, /* one core has a program that computes */
    BENCH_ALL_COMPUTE   /* each core has one */
} bench_beside;

typedef enum bench_unit {
    BENCH_NS,   /* nanoseconds per operation */
    BENCH_US,   /* microseconds */
    BENCH_MPS,  /* million messages per second */
    BENCH_GBPS, /* gigabytes per second */
    BENCH_MS,   /* start and stop */
    BENCH_MIB,  /* memory */
    BENCH_KIB,  /* libraries */
    BENCH_PERCENT
} bench_unit;

/* A bound on ours, or on ours / theirs for `peer`; "*" is every peer but the reference. */
typedef struct bench_aim {
    const char *peer;
    bench_bound bound;
    double value;
} bench_aim;

/* Tables write the fields up to `parts` in this order, without names. */
typedef struct bench_case {
    const char *name;
    bench_kind kind;
    bench_unit unit;
    int ranks;
    size_t size_bytes;
    int parts;  /* operations that are timed as one: 2 for a round trip, else 1; 0: one per rank */
    bool start; /* start and stop of a program, not a job */
    bool use;   /* what it takes of the processors, in percent */
    bool high;  /* the 90th percentile counts, of at least 20 samples that contain some bursts */
    bench_beside beside;
    const char *against; /* name of the peer in reports, when it is not the side's own */
    bench_aim aims[BENCH_TARGETS_MAX];
} bench_case;

/* Cases and the sides that measure them, of which the first is Ferry. Neighbouring groups may share
 * their cases, to compare them with different peers. */
typedef struct bench_group {
    const bench_launcher *launchers;
    int launcher_count;
    const bench_case *cases;
    int case_count;
} bench_group;

#define BENCH_GROUP(sides, those)                                                                  \
    {                                                                                              \
        (sides), (int)(sizeof(sides) / sizeof *(sides)), (those),                                  \
            (int)(sizeof(those) / sizeof *(those))                                                 \
    }

/* The main() of a benchmark: reads the command line, measures the cases that it asks for, group by
 * group up to an empty one and from few ranks to many, and reports each. Returns the exit status.
 */
int bench_compare_main(int argc, char **argv, const char *bench, const bench_group *groups);

/* "near 61 ns", "far 275 ns" for a hand-off. */
void bench_state_name(double hand_off_ns, char *out, size_t size_bytes);

#endif
