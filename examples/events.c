/* Events: what became of each message, in which words.
 *
 * Rank 0 starts three receives: one completes, one times out, one fails. The other ranks hand
 * themselves to a thread of Ferry's while they compute.
 *
 *     cc events.c $(pkg-config --cflags --libs ferry) -o events
 *     ferry run -n 4 ./events */
#include <stdio.h>
#include <string.h>

#include <ferry/ferry.h>

static void tell(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    static const char *const names[] = {"submitted", "completed", "timed out", "failed"};
    if (receipt->error == 0)
        printf("%s: %s, tag %d, %zu bytes\n", (const char *)arg, names[receipt->event],
               receipt->tag, receipt->size_bytes);
    else
        printf("%s: %s: %s\n", (const char *)arg, names[receipt->event], receipt->reason);
}

/* Computes, and calls nothing of Ferry's. */
static double compute(void)
{
    double sum = 0;
    for (int i = 1; i <= 1000000; i++)
        sum += 1.0 / i;
    return sum;
}

/* Nobody sends tag 2, and the message of tag 3 is too long. */
static int receive(ferry *f)
{
    char text[8];
    ferry_op op[3];
    for (int tag = 1; tag <= 3; tag++) {
        const ferry_track track = {.size = sizeof track,
                                   .completed = tell,
                                   .completed_arg = "receive",
                                   .failed = tell,
                                   .failed_arg = "receive",
                                   .timed_out = tell,
                                   .timed_out_arg = "receive",
                                   .timeout_ns = tag == 2 ? 20 * 1000 * 1000 : FERRY_FOREVER,
                                   .op = &op[tag - 1]};
        int error = ferry_receive(f, FERRY_ANY_RANK, tag, text, sizeof text, &track);
        if (error == 0)
            error = ferry_op_wait(f, &op[tag - 1]);
        if (error != 0 && error != FERRY_ETIMEDOUT && error != FERRY_ETOOLONG)
            return error;
    }
    return 0;
}

static int send(ferry *f)
{
    int error = ferry_send(f, 0, 1, "hello", 6, NULL);
    if (error == 0)
        error = ferry_send(f, 0, 3, "much too long", 14, NULL);
    if (error != 0)
        return error;
    error = ferry_background_begin(f); /* its thread does what others need of this rank */
    double sum = compute();
    if (error == 0)
        error = ferry_background_end(f);
    printf("rank %d has computed %.3f\n", ferry_rank(f), sum);
    return error == FERRY_ENOTSUP ? 0 : error; /* the simulator has no such thread */
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    int error = ferry_rank(f) == 0 ? receive(f) : send(f);
    if (error != 0)
        fprintf(stderr, "events: %s\n", ferry_error_message(f));
    return error != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
