/* Goal: a program that survives deaths may use groups in any way. No call hangs, none fails with
 * FERRY_EINVAL, and none takes a value of another call. Method: all ranks make the same random
 * calls, over all ranks and over random groups, some started and waited for later, with random
 * pauses. Each value names its step. After FERRY_EPEER a rank calls ferry_quiesce, before that it
 * sometimes frees a group. Then all agree on the step to go on from. Groups without a dead rank are
 * used again. The simulator lets ranks die.
 *
 *      group_deaths STEPS [RANK MICROSECONDS]     RANK kills itself after that time
 *      group_deaths STEPS leave                   ranks leave, at steps that the seed chooses
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/check.h"
#include "../support/survive.h"

/* No rank leaves in the last steps, which all end together. */
enum { RANKS_MAX = 32, GROUPS = 4, LAST_STEPS = 20 };

typedef struct state {
    uint64_t own;  /* this rank's random numbers, for pauses */
    uint64_t seed; /* 0: no rank leaves */
    int step, steps;
    bool left;
    ferry_group *groups[GROUPS];
    int members[GROUPS][RANKS_MAX], counts[GROUPS];
    ferry_op op; /* of a started call */
    bool started;
    int64_t in, outs[RANKS_MAX];
} state;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The same on all ranks. */
static uint64_t shared(const state *s, int what)
{
    return mix((uint64_t)s->step * 8 + (uint64_t)what + s->seed * UINT64_C(7919000001) +
               UINT64_C(0x9e3779b97f4a7c15));
}

static void pause_randomly(ferry *f, state *s)
{
    s->own = mix(s->own + UINT64_C(0x9e3779b97f4a7c15));
    if (s->own % 4 == 0)
        ferry_compute(f, (double)(s->own >> 8 & 255) * 1e-6);
    if (s->own % 64 == 1)
        ferry_compute(f, (double)(s->own >> 8 & 255) * 1e-4);
}

/* As far as all ranks have agreed. */
static bool lives(ferry *f, const state *s, int g)
{
    for (int i = 0; i < s->counts[g]; i++)
        if (ferry_member_place(f, s->members[g][i]) < 0)
            return false;
    return true;
}

/* A new group in place of group `g`. */
static int make(ferry *f, state *s, int g)
{
    int colour = (int)(mix(shared(s, 1) + (uint64_t)ferry_rank(f)) % 2);
    ferry_group_free(f, s->groups[g]);
    s->groups[g] = NULL;
    int error = ferry_group_split(f, NULL, colour, 0, &s->groups[g]);
    s->counts[g] = error == 0 ? ferry_group_count(f, s->groups[g]) : 0;
    for (int i = 0; i < s->counts[g]; i++)
        s->members[g][i] = ferry_group_rank(f, s->groups[g], i);
    return error;
}

static void check_values(ferry *f, const state *s, ferry_collective_kind kind, int64_t step,
                         int count)
{
    if (kind == FERRY_ALLREDUCE)
        check(f, s->outs[0] == step, "the greatest value is of this step");
    if (kind == FERRY_BROADCAST)
        check(f, s->outs[0] == step, "the root's value is of this step");
    for (int i = 0; i < count && kind == FERRY_ALLGATHER; i++)
        check(f, s->outs[i] == step, "each value is of this step");
}

static int end_started(ferry *f, state *s)
{
    int error = s->started ? ferry_op_wait(f, &s->op) : 0;
    s->started = false;
    return error;
}

/* One call over `group`; NULL: all ranks. */
static int call(ferry *f, state *s, ferry_group *group)
{
    static const ferry_collective_kind kinds[] = {FERRY_BARRIER, FERRY_ALLREDUCE, FERRY_BROADCAST,
                                                  FERRY_ALLGATHER};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
    int count = ferry_group_count(f, group);
    c.kind = kinds[shared(s, 2) % 4];
    c.group = group;
    c.root = ferry_group_rank(f, group, (int)(shared(s, 3) % (uint64_t)count));
    s->in = s->step;
    s->outs[0] = s->step;
    c.in = &s->in;
    c.out = s->outs;
    c.count = 1;
    c.type = FERRY_INT64;
    c.reduction = FERRY_MAX;
    if (c.kind == FERRY_BROADCAST) {
        c.in = NULL;
        if (ferry_rank(f) != c.root)
            s->outs[0] = -1;
    }
    int error;
    if (c.kind == FERRY_BARRIER && shared(s, 4) % 2 == 0) {
        track.op = &s->op;
        error = end_started(f, s);
        if (error == 0)
            error = ferry_collective_start(f, &c, &track);
        s->started = error == 0;
        return error;
    }
    error = ferry_collective_run(f, &c);
    if (error == 0)
        check_values(f, s, c.kind, s->step, count);
    return error;
}

/* Whether this rank is the one that leaves in this step. */
static bool is_to_leave(ferry *f, const state *s)
{
    uint64_t random = shared(s, 7);
    int count = ferry_member_count(f);
    return s->seed != 0 && random % 40 == 0 && count > 2 && s->step < s->steps - LAST_STEPS &&
           ferry_member_rank(f, (int)(mix(random) % (uint64_t)count)) == ferry_rank(f);
}

static int leave(ferry *f, state *s)
{
    (void)end_started(f, s);
    for (int g = 0; g < GROUPS; g++)
        ferry_group_free(f, s->groups[g]);
    s->left = true;
    return ferry_leave(f);
}

static int step(ferry *f, state *s)
{
    int g = (int)(shared(s, 0) % (GROUPS + 2)), error;
    pause_randomly(f, s);
    if (is_to_leave(f, s))
        return leave(f, s);
    if (g >= GROUPS)
        error = call(f, s, NULL);
    else if (s->groups[g] == NULL || shared(s, 5) % 8 == 0)
        error = 0; /* groups are made by `remake`, which all ranks call */
    else
        error = call(f, s, s->groups[g]);
    if (error == 0 && shared(s, 6) % 2 == 0)
        error = end_started(f, s);
    return error;
}

/* All agree on the step, and make the groups anew that have lost a rank on any of them. */
static int recover(ferry *f, state *s)
{
    int error;
    int64_t own[1 + GROUPS] = {s->step + 1}, greatest[1 + GROUPS];
    error = survive_quiesce(f);
    (void)end_started(f, s); /* others may never have made this call: then it has failed */
    for (int g = 0; g < GROUPS; g++)
        own[1 + g] = s->groups[g] == NULL || !lives(f, s, g);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_INT64, FERRY_MAX, own, greatest, 1 + GROUPS);
    if (error != 0)
        return error;
    s->step = (int)greatest[0];
    for (int g = 0; g < GROUPS && error == 0; g++)
        if (greatest[1 + g] != 0)
            error = make(f, s, g);
    return error;
}

/* Returns when all ranks that are left have made the last step. */
static int run_steps(ferry *f, state *s)
{
    int error = recover(f, s);
    while (!s->left && (error == FERRY_EPEER || s->step < s->steps)) {
        if (error == 0)
            error = step(f, s);
        if (error == 0 && s->seed != 0 && s->step == s->steps - 1 && !s->left)
            error = ferry_barrier(f);
        if (error == 0) {
            s->step++;
            continue;
        }
        check(f, error == FERRY_EPEER, ferry_error_message(f));
        if (s->own % 2 == 0)
            (void)end_started(f, s);
        if (s->own % 8 == 0) {
            ferry_group_free(f, s->groups[0]);
            s->groups[0] = NULL;
        }
        error = recover(f, s);
    }
    return error;
}

static int run(ferry *f, int argc, char **argv)
{
    const char *seed = getenv("FERRY_SIM_SEED");
    state s = {.own = mix((uint64_t)ferry_rank(f) + 1),
               .steps = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 100};
    check(f, ferry_ranks(f) <= RANKS_MAX, "at most 32 ranks");
    check(f, survive_deaths(f) == 0, "watch");
    if (argc > 2 && strcmp(argv[2], "leave") == 0)
        s.seed = seed != NULL ? strtoull(seed, NULL, 10) + 1 : 1;
    s.own += s.seed * 1000;
    if (argc > 3 && ferry_rank(f) == (int)strtol(argv[2], NULL, 10) && fork() == 0) {
        (void)usleep((useconds_t)strtol(argv[3], NULL, 10));
        (void)kill(getppid(), SIGKILL);
        _exit(0);
    }
    int error = run_steps(f, &s);
    check(f, error == 0, ferry_error_message(f));
    if (s.left)
        return 0;
    error = end_started(f, &s);
    check(f, error == 0 || error == FERRY_EPEER, ferry_error_message(f));
    error = survive_quiesce(f);
    check(f, error == 0, ferry_error_message(f));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
