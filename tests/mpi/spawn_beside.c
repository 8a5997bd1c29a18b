/* Goal: a program that uses MPI itself has ranks started. Method: it opens Ferry on a communicator;
 * what it starts does as it does, and finds that MPI is its own alone and Ferry's job the other's.
 * With the argument "several", where ranks share no memory: MPI is asked for all threads, and it is
 * the same; with "refused", for one, and nobody can be started, of which the error says why. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { MORE = 2 };

static int world_size(void)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/* MPI's own messages among those it knows. */
static void use_mpi(ferry *f)
{
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(f, sum == world_size(), "MPI_Allreduce counted wrong");
}

static void grow(ferry *f, bool several)
{
    bool comes = ferry_member_place(f, ferry_rank(f)) < 0;
    int64_t own = world_size(), sum = 0, ranks = ferry_ranks(f);
    int first;
    check(f, own == (comes ? 1 : ranks - MORE), "MPI's world has another size");
    if (!comes && several)
        check(f, ferry_spawn(f, 1, NULL, &first) == 0, "spawn");
    else if (ferry_rank(f) == 0)
        check(f, ferry_spawn(f, MORE, NULL, &first) == 0, "spawn");
    use_mpi(f);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, ferry_member_count(f) == ranks, "members are missing");
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &own, &sum, 1) == 0, "allreduce");
    check(f, sum == (ranks - MORE) * (ranks - MORE) + MORE, "allreduce counted wrong");
    use_mpi(f);
}

static void refuse(ferry *f)
{
    int first;
    check(f, ferry_spawn(f, 1, NULL, &first) == FERRY_ENOTSUP, "spawn between nodes");
    check(f, strstr(ferry_error_message(f), "MPI_THREAD_MULTIPLE") != NULL, "no reason is given");
    use_mpi(f);
}

int main(int argc, char **argv)
{
    int level;
    ferry *f;
    const char *way = argc > 1 ? argv[1] : "";
    bool several = strcmp(way, "several") == 0;
    MPI_Init_thread(&argc, &argv, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
    MPI_Comm world = MPI_COMM_WORLD;
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    options.communicator = &world;
    check(NULL, ferry_open(&options, &f) == 0, "open");
    if (strcmp(way, "refused") == 0)
        refuse(f);
    else
        grow(f, several);
    check(f, ferry_close(f) == 0, "close");
    MPI_Finalize();
    return 0;
}
