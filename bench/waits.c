/* Waits: a ring and a barrier of more ranks than cores, beside the same with flags in shared memory
 * and a simple way to wait (bench/peers/flags.c). Three conditions: alone, beside bursts of other
 * programs, and beside a program that computes. The best simple way is the measure. */
#include "common/compare.h"

#define FLAGS(way)                                                                                 \
    {                                                                                              \
        .peer = (way), .program = "peers/flags", .ranks_variable = "BENCH_RANKS",                  \
        .environment = {"BENCH_WAY=" way},                                                         \
    }

static const bench_launcher sides[] = {
    {.peer = "ferry", .program = "peers/ferry", .ranks_variable = "FERRY_RANKS"},
    FLAGS("spin"),
    FLAGS("yield"),
    FLAGS("futex"),
    FLAGS("both"),
};

#define CASE(called, which, count, per, condition)                                                 \
    {                                                                                              \
        .name = called, .kind = (which), .unit = BENCH_US, .ranks = (count), .size_bytes = 8,      \
        .parts = (per), .high = true, .beside = (condition),                                       \
        .aims = {{"*", BENCH_RATIO_MAX, 1.3}},                                                     \
    }

#define CONDITIONS(called, which, count, per)                                                      \
    CASE(called "-alone", which, count, per, BENCH_ALONE),                                         \
        CASE(called "-bursts", which, count, per, BENCH_BURSTS),                                   \
        CASE(called "-busy", which, count, per, BENCH_ONE_COMPUTES)

/* The time of a ring is that of one hop. */
static const bench_case cases[] = {
    CONDITIONS("ring-4", BENCH_RING, 4, 0),       CONDITIONS("ring-8", BENCH_RING, 8, 0),
    CONDITIONS("ring-16", BENCH_RING, 16, 0),     CONDITIONS("barrier-4", BENCH_BARRIER, 4, 1),
    CONDITIONS("barrier-8", BENCH_BARRIER, 8, 1), CONDITIONS("barrier-16", BENCH_BARRIER, 16, 1),
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(sides, cases), {0}};
    return bench_compare_main(argc, argv, "waits", groups);
}
