/* Farm: tasks in a cell, taken by whoever has time. No rank assigns work to another: rank 0 adds
 * tasks until the cell is full and then works on them itself; the others take as fast as they can.
 * Here a task is to count the primes in a range.
 *
 *     ferry run -n 4 build/examples/farm [LIMIT]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

enum { TASKS = 0, RESULTS = 1, RANGE = 2000, WAITING_MAX = 64 };

/* A task, and then its result; an empty range ends a worker. */
typedef struct task {
    int64_t first, end, primes;
    int32_t worker;
} task;

static void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "farm: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
    exit(1);
}

static bool is_prime(int64_t n)
{
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return false;
    return n > 1;
}

/* Turns a task that this rank has taken into its result. */
static void work(ferry *f, ferry_parcel parcel)
{
    void *data;
    check(f, ferry_parcel_mod(f, &parcel, &data));
    task *t = data;
    t->worker = ferry_rank(f);
    for (int64_t n = t->first; n < t->end; n++)
        t->primes += is_prime(n);
    check(f, ferry_cell_enq(f, (ferry_cell){0, RESULTS}, parcel, FERRY_GIVE, FERRY_FOREVER));
}

static void serve(ferry *f)
{
    for (;;) {
        ferry_parcel parcel;
        check(f, ferry_cell_deq(f, (ferry_cell){0, TASKS}, &parcel, FERRY_FOREVER));
        const task *t = ferry_parcel_data(f, parcel, NULL);
        if (t->first == t->end) {
            check(f, ferry_parcel_release(f, parcel));
            return;
        }
        work(f, parcel);
    }
}

/* Adds a task; when there is no room, does one first. */
static void add(ferry *f, int64_t first, int64_t end)
{
    const task t = {.first = first, .end = end};
    const ferry_cell tasks = {0, TASKS};
    int error;
    while ((error = ferry_cell_send(f, tasks, &t, sizeof t, NULL, 0)) == FERRY_EAGAIN) {
        ferry_parcel parcel;
        if (ferry_cell_deq(f, tasks, &parcel, 0) == 0)
            work(f, parcel);
    }
    check(f, error);
}

static void print_results(ferry *f, int64_t limit)
{
    int64_t primes = 0, tasks = 0, own = 0;
    for (int64_t left = (limit + RANGE - 1) / RANGE; left > 0; left--, tasks++) {
        task t;
        size_t size = sizeof t;
        check(f, ferry_cell_recv(f, (ferry_cell){0, RESULTS}, &t, &size, NULL, FERRY_FOREVER));
        primes += t.primes;
        own += t.worker == 0;
    }
    printf("%" PRId64 " primes below %" PRId64 ": %" PRId64 " tasks, %" PRId64
           " of them done by rank 0\n",
           primes, limit, tasks, own);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long limit = 400000;
    const parameter table[] = {{"LIMIT", "of the primes to count", 2, 1e9, .whole = &limit}, {0}};
    int status = parameters_read(f, argc, argv, "Counts primes in tasks from one cell.", table);
    if (status >= 0)
        return status;
    if (ferry_rank(f) == 0)
        check(f, ferry_cell_limit_set(f, TASKS, WAITING_MAX));
    check(f, ferry_barrier(f));
    if (ferry_rank(f) != 0) {
        serve(f);
        return 0;
    }
    for (int64_t first = 0; first < limit; first += RANGE)
        add(f, first, first + RANGE < limit ? first + RANGE : limit);
    ferry_parcel parcel;
    while (ferry_cell_deq(f, (ferry_cell){0, TASKS}, &parcel, 0) == 0)
        work(f, parcel);
    for (int rank = 1; rank < ferry_ranks(f); rank++)
        add(f, 0, 0);
    print_results(f, limit);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
