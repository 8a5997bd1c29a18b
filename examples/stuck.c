/* Stuck: rank 0 waits for a message that rank 1 never sends, and reports it.
 *
 * The wait ends after SECONDS (default 0.1), so that the program ends. With a longer time, look at
 * the job from another terminal: ferry why.
 *
 *     cc stuck.c $(pkg-config --cflags --libs ferry) -o stuck
 *     ferry run -n 4 ./stuck 30 */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

static int rank_main(ferry *f, int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.1;
    if (ferry_rank(f) == 0) {
        char text[16];
        ferry_op op;
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &op;
        track.timeout_ns = (uint64_t)(seconds * 1e9);
        int error = ferry_receive(f, 1 % ferry_ranks(f), 7, text, sizeof text, &track);
        if (error == 0)
            error = ferry_op_wait(f, &op);
        printf("receive: %s\n", ferry_strerror(error));
    }
    return ferry_barrier(f) == 0 ? 0 : 1; /* the other ranks wait here */
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
