/* Goal: if a rank of a group is killed or leaves while others are in collectives of the group,
 * these fail with FERRY_EPEER. Calls of a group without that rank go on. The ranks that are left
 * make a new group, which works. Method: all ranks repeat collectives of several kinds over a group
 * of all ranks. The last rank kills itself or leaves before a call, or in a handler while others
 * wait.
 *
 *      group_loss kill|handler|leave CALLS
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { LAST_CALL = 1000, RANKS_MAX = 16 };

typedef struct state {
    int gone; /* ranks of which this one was told */
    int64_t in[RANKS_MAX], out[RANKS_MAX];
} state;

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)event;
    ((state *)arg)->gone++;
}

static void on_end(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
    raise(SIGKILL);
}

/* Call `number` over `group`: its kind follows from the number, so all ranks choose the same. */
static int call(ferry *f, state *s, ferry_group *group, int number)
{
    static const ferry_collective_kind kinds[] = {FERRY_ALLREDUCE, FERRY_GATHER,    FERRY_BARRIER,
                                                  FERRY_ALLTOALL,  FERRY_ALLGATHER, FERRY_BROADCAST,
                                                  FERRY_SCATTER};
    ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
    c.kind = kinds[number % (int)(sizeof(kinds) / sizeof(kinds[0]))];
    c.group = group;
    c.root = ferry_group_rank(f, group, 0);
    c.in = s->in;
    c.out = s->out;
    c.count = 1;
    c.type = FERRY_INT64;
    c.reduction = FERRY_SUM;
    if (c.kind == FERRY_BROADCAST)
        c.in = NULL;
    return ferry_collective_run(f, &c);
}

/* Sums 1 over `group`, which must give its size. */
static void sum_works(ferry *f, ferry_group *group)
{
    int64_t one = 1, sum = 0;
    ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
    c.kind = FERRY_ALLREDUCE;
    c.group = group;
    c.in = &one;
    c.out = &sum;
    c.count = 1;
    c.type = FERRY_INT64;
    c.reduction = FERRY_SUM;
    check(f, ferry_collective_run(f, &c) == 0, "a sum over ranks that live");
    check(f, sum == ferry_group_count(f, group), "the sum is the count");
}

static void go(ferry *f, const char *how, ferry_handler end)
{
    const ferry_message message = {.handler = end};
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "leave") == 0)
        check(f, ferry_leave(f) == 0, "leave");
    else
        check(f, ferry_request_send(f, ferry_rank(f), &message, NULL) == 0, "send");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "kill";
    int calls = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10, error = 0, number = 0;
    int rank = ferry_rank(f), last = ferry_ranks(f) - 1;
    state s = {.gone = 0};
    ferry_handler end;
    ferry_group *all, *others, *left;
    check(f, last > 0 && last < RANKS_MAX, "2 to 16 ranks");
    check(f, ferry_peer_watch(f, on_peer, &s) == 0, "watch");
    check(f, ferry_handler_register(f, "end", on_end, &end) == 0, "register");
    check(f, ferry_group_split(f, NULL, 0, -rank, &all) == 0, "split");
    check(f, ferry_group_split(f, NULL, rank == last ? FERRY_NO_COLOUR : 0, 0, &others) == 0,
          "split without the last");
    error = ferry_barrier(f); /* all groups are made; the last rank may be dead already */
    check(f, error == 0 || error == FERRY_EPEER, "barrier");
    error = 0;
    for (; number < LAST_CALL && error == 0; number++) {
        if (rank == last && number == calls) {
            go(f, how, end);
            if (strcmp(how, "leave") == 0)
                return 0;
        }
        error = call(f, &s, all, number);
    }
    /* A death also fails the call that this rank is still in: the root of a broadcast, and nobody
     * else, can be one call ahead of others. */
    int least = strcmp(how, "leave") == 0 ? calls : calls - 1;
    check(f, error == FERRY_EPEER && number >= least, "a call over the group fails with EPEER");
    error = call(f, &s, all, number);
    check(f, error == FERRY_EPEER, "a later call fails too");
    sum_works(f, others);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, s.gone == 1, "the event came");
    check(f, ferry_group_split(f, NULL, 0, 0, &left) == 0, "a new group");
    check(f, ferry_group_count(f, left) == last && ferry_group_place(f, left, last) == -1, "count");
    sum_works(f, left);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
