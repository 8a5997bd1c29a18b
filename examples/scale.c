/* Scale: how long a time step takes on many simulated ranks.
 *
 * Each step computes for 1 ms and adds up a number over all ranks. ferry_compute stands for the
 * work: in the simulator it advances the rank's clock.
 *
 *     cc scale.c $(pkg-config --cflags --libs ferry) -o scale
 *     ferry sim -n 256 --net infiniband-hdr ./scale */
#include <stdio.h>

#include <ferry/ferry.h>

enum { STEPS = 20 };

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    double mine = ferry_rank(f), sum = 0;
    int error = ferry_barrier(f);
    uint64_t start = ferry_now(f);
    for (int i = 0; i < STEPS && error == 0; i++) {
        ferry_compute(f, 0.001);
        error = ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &mine, &sum, 1);
    }
    if (error != 0) {
        fprintf(stderr, "scale: %s\n", ferry_error_message(f));
        return 1;
    }
    double us = (double)(ferry_now(f) - start) / 1e3 / STEPS;
    if (ferry_rank(f) == 0)
        printf("%d ranks: %.1f us for each step of 1000 us\n", ferry_ranks(f), us);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
