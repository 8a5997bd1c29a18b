/* Goal: an operation between two hosts takes as many messages as its algorithm needs, since each
 * costs some 10 us over TCP. Method: two ranks repeat operations, and each compares the messages
 * that it has sent, which counting.c counts. A rank that waits longer than a second may send a few
 * more.
 *
 * counts [MESSAGES]: a request with 64 KiB of data takes so many messages. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { REPEATS = 200, MORE_MAX = REPEATS / 10, DATA_BYTES = 64 << 10 };

/* Counted by the plug-in. */
__attribute__((visibility("default"))) extern unsigned mpi_counts_sent;
unsigned mpi_counts_sent;

static unsigned char data[DATA_BYTES];
static int handled;

static void check(int error)
{
    if (error < 0) {
        fprintf(stderr, "counts: %s\n", ferry_strerror(error));
        abort();
    }
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source;
    handled += message->size_bytes == DATA_BYTES;
}

/* The number of messages that `each` should take per repetition, on this rank. */
static int compare(const ferry *f, const char *what, unsigned before, unsigned each)
{
    unsigned took = mpi_counts_sent - before;
    bool right = took >= each * REPEATS && took <= each * REPEATS + MORE_MAX;
    printf("%srank %d: %d times %s: %u messages, expected %u\n",
           right ? "" : "FAILED: ", ferry_rank(f), REPEATS, what, took, each * REPEATS);
    return right ? 0 : 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int failures = 0, rank = ferry_rank(f);
    ferry_handler request;
    check(ferry_handler_register(f, "request", on_request, &request));
    check(ferry_quiesce(f));
    unsigned before = mpi_counts_sent;
    for (int i = 0; i < REPEATS; i++)
        check(ferry_barrier(f));
    failures += compare(f, "a barrier", before, 1);
    before = mpi_counts_sent;
    for (int i = 0; i < REPEATS; i++) {
        double in = 1, out = 0;
        check(ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &in, &out, 1));
    }
    failures += compare(f, "an allreduce", before, 1);
    before = mpi_counts_sent;
    /* Two waves and an announcement; and each wave's answer. */
    for (int i = 0; i < REPEATS; i++)
        check(ferry_quiesce(f));
    failures += compare(f, "a quiescence", before, rank == 0 ? 3 : 2);
    check(ferry_barrier(f));
    before = mpi_counts_sent;
    for (int i = 0; i < REPEATS && rank == 0; i++)
        check(ferry_request_send(
            f, 1, &(ferry_message){.handler = request, .data = data, .size_bytes = DATA_BYTES},
            NULL));
    while (rank == 1 && handled < REPEATS)
        check(ferry_wait(f, FERRY_FOREVER));
    if (rank == 0 && argc > 1)
        failures += compare(f, "a request", before, (unsigned)atoi(argv[1]));
    return failures;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
