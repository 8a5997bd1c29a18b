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
        if (ferry_receive(f, FERRY_ANY_RANK, tag, text, sizeof text, &track) != 0)
            return 1;
        int end = ferry_op_wait(f, &op[tag - 1]);
        if (end != 0 && end != FERRY_ETIMEDOUT && end != FERRY_ETOOLONG)
            return 1;
    }
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (ferry_rank(f) == 0)
        return receive(f);
    if (ferry_send(f, 0, 1, "hello", 6, NULL) != 0 ||
        ferry_send(f, 0, 3, "much too long", 14, NULL) != 0)
        return 1;
    int error = ferry_background_begin(f); /* its thread does what others need of this rank */
    double sum = compute();
    if (error == 0)
        error = ferry_background_end(f);
    if (error != 0 && error != FERRY_ENOTSUP) /* the simulator has no such thread */
        return 1;
    printf("rank %d has computed %.3f\n", ferry_rank(f), sum);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
