/* Goal: ranks that name different roots of a collective are told so on every port, and none waits
 * forever. Method: rank r names root r % 2. A rank that waits is told after about 1 s, or 10 s
 * between machines. A rank may be through its part before that shows: then what follows fails. Each
 * rank ends with status 5 when it was told. Arguments: the kind; run, wait (started, then waited
 * for) or poll (started, then polled); members, or group for a group of the program. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../support/check.h"

enum { RANKS_MAX = 16, TOLD = 5 };

static ferry_collective_kind kind_of(const char *name)
{
    static const struct {
        const char *name;
        ferry_collective_kind kind;
    } kinds[] = {{"broadcast", FERRY_BROADCAST}, {"reduce", FERRY_REDUCE},
                 {"gather", FERRY_GATHER},       {"scatter", FERRY_SCATTER},
                 {"gatherv", FERRY_GATHERV},     {"scatterv", FERRY_SCATTERV}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return FERRY_BARRIER;
}

/* Carries out the call in one of the ways. */
static int carry_out(ferry *f, const ferry_collective *what, const char *way)
{
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    if (strcmp(way, "run") == 0)
        return ferry_collective_run(f, what);
    int error = ferry_collective_start(f, what, &track);
    if (error != 0 || strcmp(way, "wait") == 0)
        return error != 0 ? error : ferry_op_wait(f, &op);
    while ((error = ferry_op_test(f, &op)) == FERRY_EAGAIN) {
        check(f, ferry_poll(f) >= 0, "poll");
        ferry_compute(f, 1e-3);
    }
    return error;
}

static int call(ferry *f, ferry_collective_kind kind, const char *way, ferry_group *group)
{
    uint64_t in[RANKS_MAX] = {0}, out[RANKS_MAX] = {0};
    size_t counts[RANKS_MAX];
    for (int i = 0; i < RANKS_MAX; i++)
        counts[i] = 1;
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = kind,
                                   .root = ferry_rank(f) % 2,
                                   .in = in,
                                   .out = out,
                                   .count = 1,
                                   .type = FERRY_UINT64,
                                   .reduction = FERRY_SUM,
                                   .in_counts = counts,
                                   .out_counts = counts,
                                   .group = group};
    return carry_out(f, &what, way);
}

static int run(ferry *f, int argc, char **argv)
{
    ferry_group *group = NULL;
    check(f, argc == 4 && ferry_ranks(f) <= RANKS_MAX, "usage");
    if (strcmp(argv[3], "group") == 0)
        check(f, ferry_group_split(f, NULL, 0, 0, &group) == 0, "split");
    int error = call(f, kind_of(argv[1]), argv[2], group);
    if (error == 0)
        error = ferry_quiesce(f);
    check(f, error == FERRY_EINVAL || error == FERRY_EPEER, "another error");
    const char *text = ferry_error_message(f);
    check(f, error == FERRY_EPEER || strstr(text, "root ") != NULL, "no root");
    if (error == FERRY_EINVAL)
        fprintf(stderr, "told: %s\n", text);
    return TOLD;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
