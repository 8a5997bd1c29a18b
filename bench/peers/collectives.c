/* Ferry's collectives, for build/bench/collectives. */
#include <ferry/ferry.h>

#include "peers/collectives_side.h"

#include <stdio.h>

static void check(collectives_side *s, int error)
{
    if (error >= 0)
        return;
    fprintf(stderr, "bench: %s: %s\n", ferry_strerror(error), ferry_error_message(s->library));
    exit(1);
}

static void broadcast(collectives_side *s, size_t size_bytes, int root)
{
    check(s, ferry_broadcast(s->library, root, s->in, size_bytes));
}

static void allreduce(collectives_side *s, size_t size_bytes, int root)
{
    (void)root;
    check(s, ferry_allreduce(s->library, FERRY_DOUBLE, FERRY_SUM, s->in, s->out,
                             size_bytes / sizeof(double)));
}

static void alltoall(collectives_side *s, size_t size_bytes, int root)
{
    (void)root;
    check(s, ferry_alltoall(s->library, s->in, size_bytes, s->out));
}

/* Pieces of odd ranks are half as long. */
static void gatherv(collectives_side *s, size_t size_bytes, int root)
{
    size_t sizes[RANKS_MAX];
    for (int i = 0; i < s->ranks; i++)
        sizes[i] = i % 2 == 1 ? size_bytes / 2 : size_bytes;
    check(s, ferry_gatherv(s->library, root, s->in, sizes[s->rank], s->out, sizes));
}

static void reduce_scatter(collectives_side *s, size_t size_bytes, int root)
{
    (void)root;
    check(s, ferry_reduce_scatter(s->library, FERRY_DOUBLE, FERRY_SUM, s->in, s->out,
                                  size_bytes / sizeof(double)));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    collectives_side s = {.library = f, .rank = ferry_rank(f), .ranks = ferry_ranks(f)};
    bench_board *board = bench_board_open();
    (void)argc;
    (void)argv;
    return board == NULL ? 1 : collectives_serve(&s, board);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
