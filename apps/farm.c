/* Farm: tasks in a cell, taken by whoever has time. No rank assigns work to another: rank 0 adds
 * tasks until the cell is full and then works on them itself; the others take as fast as they can.
 * Here a task is to count the primes in a range.
 *
 *     ferry run -n 4 build/apps/farm [LIMIT] [--check]
 *
 * --check counts them once more with a sieve, and every task's range; the exit status is 1 if the
 * results differ. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/parameters.h"

enum { TASKS = 0, RESULTS = 1, RANGE = 2000, WAITING_MAX = 64 };

/* A task, and then its result; an empty range ends a worker. */
typedef struct task {
    int64_t first, end, primes;
    int32_t worker;
} task;

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
    check(f, ferry_parcel_modify(f, &parcel, &data));
    task *t = data;
    t->worker = ferry_rank(f);
    for (int64_t n = t->first; n < t->end; n++)
        t->primes += is_prime(n);
    check(f, ferry_cell_enqueue(f, (ferry_cell){0, RESULTS}, parcel, FERRY_GIVE, FERRY_FOREVER));
}

static void serve(ferry *f)
{
    for (;;) {
        ferry_parcel parcel;
        check(f, ferry_cell_dequeue(f, (ferry_cell){0, TASKS}, &parcel, FERRY_FOREVER));
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
        if (ferry_cell_dequeue(f, tasks, &parcel, 0) == 0)
            work(f, parcel);
    }
    check(f, error);
}

/* Room for a mark per number below `count`. Gives it, freed with free. */
static bool *make_marks(int64_t count)
{
    bool *marks = calloc((size_t)count, sizeof *marks);
    if (marks == NULL) {
        fprintf(stderr, "farm: no memory for %" PRId64 " marks\n", count);
        exit(1);
    }
    return marks;
}

/* Marks the numbers below `limit`, which is at least 2, that are not prime. */
static void sieve(bool *composite, int64_t limit)
{
    composite[0] = composite[1] = true;
    for (int64_t n = 2; n * n < limit; n++)
        for (int64_t m = n * n; !composite[n] && m < limit; m += n)
            composite[m] = true;
}

/* Whether a result has the primes of its range, which no result had before. */
static bool is_right(const task *t, bool *composite, bool *seen)
{
    int64_t primes = 0;
    for (int64_t n = t->first; n < t->end; n++)
        primes += !composite[n];
    bool right = primes == t->primes && !seen[t->first / RANGE];
    seen[t->first / RANGE] = true;
    return right;
}

/* Takes all results. Returns how many of them are wrong. */
static int64_t take_results(ferry *f, int64_t limit, bool checked)
{
    int64_t primes = 0, tasks = (limit + RANGE - 1) / RANGE, own = 0, wrong = 0;
    bool *composite = make_marks(checked ? limit : 2), *seen = make_marks(tasks);
    if (checked)
        sieve(composite, limit);
    for (int64_t i = 0; i < tasks; i++) {
        task t;
        size_t size = sizeof t;
        check(f, ferry_cell_receive(f, (ferry_cell){0, RESULTS}, &t, &size, NULL, FERRY_FOREVER));
        primes += t.primes;
        own += t.worker == 0;
        wrong += checked && !is_right(&t, composite, seen);
    }
    free(composite);
    free(seen);
    printf("%" PRId64 " primes below %" PRId64 ": %" PRId64 " task%s, %" PRId64
           " of them done by rank 0%s\n",
           primes, limit, tasks, tasks == 1 ? "" : "s", own,
           checked && wrong == 0 ? "; each as the sieve says" : "");
    if (wrong > 0)
        fprintf(stderr, "farm: %" PRId64 " of %" PRId64 " tasks have other primes than the sieve\n",
                wrong, tasks);
    return wrong;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long limit = 400000;
    bool checked = false;
    const parameter table[] = {{"LIMIT", "of the primes to count", 2, 1e9, .whole = &limit},
                               {"check", "counts once more with a sieve", .flag = &checked},
                               {0}};
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
    while (ferry_cell_dequeue(f, (ferry_cell){0, TASKS}, &parcel, 0) == 0)
        work(f, parcel);
    for (int rank = 1; rank < ferry_ranks(f); rank++)
        add(f, 0, 0);
    return take_results(f, limit, checked) != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
