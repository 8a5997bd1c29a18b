/* Events: what tracking costs, pending timeouts, progress in the background, and the ping tests of
 * progressive-messages.txt 6.2.4 beside MPI: latency over the size of the message, and what it
 * takes of the processors. docs/lab/events.md says what each case is. */
#include "common/compare.h"
#include "common/launchers.h"

#include <stdio.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20, CASES_MAX = 128, NAME_BYTES = 32 };

/* Ferry, what it is made of, and MPI as in messaging. */
static const bench_launcher launchers[] = {
    {.peer = "ferry", .program = "peers/events", .ranks_variable = "FERRY_RANKS"},
    {.peer = "reference",
     .program = "peers/events",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"BENCH_REFERENCE=1"}},
    {.peer = "openmpi",
     .program = "peers/openmpi",
     .prefix = BENCH_OPEN_MPI,
     .oversubscribed = {"--mca", "mpi_yield_when_idle", "1"}},
    {.peer = "mpich",
     .program = "peers/mpich",
     .prefix = BENCH_MPICH,
     .oversubscribed = {"-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"}},
};

static const bench_case cases[] = {
    {"pending-timeouts", BENCH_POLL, BENCH_NS, 1, 0, 1, .against = "none",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.05}}},
    {"tracked-8B", BENCH_TRACKED, BENCH_US, 2, 8, 1, .against = "requests",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.15}}},
    {"background-8B", BENCH_BACKGROUND, BENCH_US, 2, 8, 1, .against = "polls"},
};

static const struct test {
    const char *name;
    bench_kind kind;
    int parts;
    size_t size_min; /* of the message, bytes */
} tests[] = {
    {"pong-submit", BENCH_PONG_SUBMIT, 2, 0},        {"pong-complete", BENCH_PONG_COMPLETE, 2, 0},
    {"pong-shared", BENCH_PONG_SHARED, 2, 16 * KIB}, {"ping-submit", BENCH_PING_SUBMIT, 1, 0},
    {"ping-complete", BENCH_PING_COMPLETE, 1, 0},    {"put-submit", BENCH_PUT_SUBMIT, 1, 0},
    {"put-complete", BENCH_PUT_COMPLETE, 1, 0},      {"get-complete", BENCH_GET_COMPLETE, 1, 0},
};

static const struct size {
    const char *name;
    size_t bytes;
} sizes[] = {{"8B", 8},           {"64B", 64},         {"512B", 512},         {"4KiB", 4 * KIB},
             {"16KiB", 16 * KIB}, {"64KiB", 64 * KIB}, {"256KiB", 256 * KIB}, {"1MiB", 1 * MIB},
             {"4MiB", 4 * MIB}};

/* The cases of this benchmark: those above, and those that are made of tests and sizes. */
typedef struct list {
    bench_case cases[CASES_MAX];
    char names[CASES_MAX][NAME_BYTES];
    int count;
} list;

static bench_case *add(list *l, const char *before, const struct test *test,
                       const struct size *size)
{
    char *name = l->names[l->count];
    bench_case *which = &l->cases[l->count++];
    snprintf(name, NAME_BYTES, "%s%s-%s", before, test->name, size->name);
    *which = (bench_case){name,
                          test->kind,
                          BENCH_US,
                          2,
                          size->bytes,
                          test->parts,
                          .aims = {{"*", BENCH_RATIO_MAX, 1}}};
    return which;
}

static void add_use(list *l, const struct test *test, const struct size *size)
{
    bench_case *which = add(l, "use-", test, size);
    which->unit = BENCH_PERCENT;
    which->use = true;
}

static void fill(list *l)
{
    static const struct test late = {"pong-late", BENCH_PONG_LATE, 2, 0};
    l->count = (int)(sizeof cases / sizeof *cases);
    memcpy(l->cases, cases, sizeof cases);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            if (sizes[k].bytes >= tests[i].size_min)
                (void)add(l, "", &tests[i], &sizes[k]);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            if (sizes[k].bytes == MIB || (sizes[k].bytes == 8 && tests[i].size_min == 0))
                add_use(l, &tests[i], &sizes[k]);
    add_use(l, &late, &sizes[0]);
}

int main(int argc, char **argv)
{
    list all;
    fill(&all);
    const bench_group groups[] = {
        {launchers, (int)(sizeof launchers / sizeof *launchers), all.cases, all.count}, {0}};
    return bench_compare_main(argc, argv, "events", groups);
}
