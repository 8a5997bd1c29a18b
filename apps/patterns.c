/* Patterns of dependences between the tasks of time steps, after the benchmark Task Bench.
 *
 *   FERRY_COMPUTE=spin ferry run -n 2 build/apps/patterns --pattern fft --imbalance 1
 *   ferry sim -n 64 build/apps/patterns --pattern stencil --metg
 *
 * A grid has `width` columns and `steps` rows of tasks. A column is an element of a collection, and
 * a task is a step of it. The task of step k in column i needs the values of some columns of step
 * k - 1: the pattern says which. A task makes a value from its place and from those that it gets.
 * In the end rank 0 computes all values anew and compares.
 *
 * A task takes `task-us` in the mean, and from 1 - imbalance to 1 + imbalance of that. With
 * --persistent a column takes the same in each step. --metg halves the length of tasks as long as
 * half of the ranks' time goes into tasks, and prints the least length with which it does. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/parameters.h"

enum { RADIX = 5, COLUMNS_MAX = 4096, TRIES = 30 };

typedef enum pattern {
    NO_COMM,
    STENCIL,
    PERIODIC,
    SWEEP,
    FFT,
    TREE,
    SPREAD,
    RANDOM,
    ALL,
} pattern;

typedef struct column {
    uint64_t value; /* of its last step */
} column;

typedef struct state {
    long width, steps;
    long bits; /* of the greatest power of 2 that is not above `width` */
    double task_us, imbalance;
    int pattern;
    bool persistent, metg, no_balance;
    ferry_index *from;     /* scratch */
    uint64_t work_ns, sum; /* of this rank's tasks; values of last steps */
} state;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * UINT64_C(0x9e3779b97f4a7c15) + b + 1;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Whether column `i` needs the value of another column `j` for step `k`, which is not the first. */
static bool needs(const state *s, long k, long i, long j)
{
    long width = s->width, apart = labs(i - j);
    switch ((pattern)s->pattern) {
    case NO_COMM:
        return false;
    case STENCIL:
        return apart == 1;
    case PERIODIC:
        return apart == 1 || apart == width - 1;
    case SWEEP:
        return j == i - 1;
    case FFT:
        return s->bits > 0 && apart == 1L << (k - 1) % s->bits;
    case TREE:
        return j == i / 2;
    case SPREAD:
        return ((j - i - k) % width + width) % width % ((width + RADIX - 1) / RADIX) == 0;
    case RANDOM:
        return apart <= RADIX / 2 && mix(mix((uint64_t)k, (uint64_t)i), (uint64_t)j) % 2 == 0;
    case ALL:
        break;
    }
    return true;
}

/* Columns, so that a task does not look at all of them. */
typedef struct range {
    long low, high, stride;
} range;

/* Columns among which are all that column `i` needs for step `k` or, if `to`, that need it. */
static range near(const state *s, long k, long i, bool to)
{
    const range all = {0, s->width - 1, 1};
    long apart = s->bits > 0 ? 1L << (k - 1) % s->bits : 1;
    switch ((pattern)s->pattern) {
    case NO_COMM:
        return (range){0, -1, 1};
    case STENCIL:
        return (range){i - 1, i + 1, 2};
    case PERIODIC:
        return i > 0 && i < s->width - 1 ? (range){i - 1, i + 1, 2} : all;
    case SWEEP:
        return to ? (range){i + 1, i + 1, 1} : (range){i - 1, i - 1, 1};
    case FFT:
        return (range){i - apart, i + apart, 2 * apart};
    case TREE:
        return to ? (range){2 * i, 2 * i + 1, 1} : (range){i / 2, i / 2, 1};
    case RANDOM:
        return (range){i - RADIX / 2, i + RADIX / 2, 1};
    case SPREAD:
    case ALL:
        break;
    }
    return all;
}

static uint64_t first_part(long k, long i)
{
    return mix((uint64_t)k, (uint64_t)i);
}

static double seconds(const state *s, long k, long i)
{
    uint64_t place = mix(s->persistent ? 0 : (uint64_t)k, ~(uint64_t)i);
    double chance = (double)(place >> 11) * 0x1p-53;
    return s->task_us * 1e-6 * (1 + s->imbalance * (2 * chance - 1));
}

/* Says what step `k` of column `i` needs. */
static void go_on(ferry *f, const state *s, ferry_element *e, long k)
{
    long i = (long)e->index.at[0];
    ferry_step step = FERRY_STEP_DEFAULTS;
    range from = k > 0 ? near(s, k, i, false) : (range){0, -1, 1};
    for (long j = from.low; j <= from.high; j += from.stride)
        if (j >= 0 && j < s->width && j != i && needs(s, k, i, j))
            s->from[step.messages++] = ferry_index_of(j, 0, 0);
    step.from = s->from;
    check(f, ferry_step_next(e, &step));
}

/* Sends the value of column `i` to those that need it for step `k`. */
static void send_value(ferry *f, const state *s, const ferry_element *e, long k)
{
    const column *c = e->data;
    const ferry_message message = {.word_count = 1, .words = {c->value}};
    long i = (long)e->index.at[0];
    range to = near(s, k, i, true);
    for (long j = to.low; j <= to.high; j += to.stride)
        if (j >= 0 && j < s->width && j != i && needs(s, k, j, i))
            check(f, ferry_step_send(e->collection, e, ferry_index_of(j, 0, 0), (uint64_t)k,
                                     &message, NULL));
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    state *s = ferry_user_data(f);
    column *c = e->data;
    long k = (long)in->step, i = (long)e->index.at[0];
    uint64_t begin_ns = ferry_now(f);
    c->value = k == 0 ? first_part(k, i) : c->value + first_part(k, i);
    for (size_t n = 0; n < in->count; n++)
        c->value += in->inputs[n].message->words[0];
    ferry_compute(f, seconds(s, k, i));
    s->work_ns += ferry_now(f) - begin_ns;
    if (k + 1 == s->steps) {
        s->sum += mix(c->value, (uint64_t)i);
        return;
    }
    send_value(f, s, e, k + 1);
    go_on(f, s, e, k + 1);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size)
{
    (void)arg, (void)bytes, (void)size;
    go_on(f, ferry_user_data(f), e, 0);
    return calloc(1, sizeof(column));
}

/* The sum of the values of the last step, without tasks. */
static uint64_t expected_sum(ferry *f, const state *s)
{
    uint64_t sum = 0, *now = calloc(2 * (size_t)s->width, sizeof *now), *then = now + s->width;
    check(f, now != NULL ? 0 : FERRY_ENOMEM);
    for (long k = 0; k < s->steps; k++) {
        for (long i = 0; i < s->width; i++) {
            then[i] = now[i] + first_part(k, i);
            for (long j = 0; j < s->width && k > 0; j++)
                then[i] += j != i && needs(s, k, i, j) ? now[j] : 0;
        }
        for (long i = 0; i < s->width; i++)
            now[i] = then[i];
    }
    for (long i = 0; i < s->width; i++)
        sum += mix(now[i], (uint64_t)i);
    free(now);
    return sum;
}

/* Runs the grid once. `*efficiency`: the part of the ranks' time that went into tasks. Whether all
 * values are right. */
static bool run(ferry *f, state *s, uint64_t expected, double *efficiency)
{
    ferry_collection *c;
    ferry_object_ops columns = FERRY_OBJECT_OPS_DEFAULTS;
    columns.flat_bytes = sizeof(column);
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.extents[0] = s->width;
    options.ops = &columns;
    options.make = make;
    options.step = step;
    options.fixed = s->no_balance;
    s->work_ns = s->sum = 0;
    check(f, ferry_barrier(f));
    uint64_t begin_ns = ferry_now(f);
    check(f, ferry_collection_create(f, &options, &c));
    check(f, ferry_quiesce(f));
    uint64_t took_ns = ferry_now(f) - begin_ns;
    check(f, ferry_collection_check(c));
    check(f, ferry_collection_destroy(c));
    uint64_t sums[] = {s->work_ns, s->sum, took_ns};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 3));
    *efficiency = (double)sums[0] / (double)sums[2];
    if (ferry_rank(f) == 0)
        printf("tasks of %.3f us: %.3f ms, efficiency %.3f, %s\n", s->task_us,
               (double)took_ns / 1e6, *efficiency, sums[1] == expected ? "right" : "WRONG");
    return sums[1] == expected;
}

static int run_all(ferry *f, state *s)
{
    uint64_t expected = expected_sum(f, s);
    double efficiency = 1, least_us = 0;
    bool right = true;
    check(f, ferry_balance_enable(f, true));
    for (int i = 0; right && efficiency >= 0.5 && i < (s->metg ? TRIES : 1); i++) {
        right = run(f, s, expected, &efficiency);
        least_us = efficiency >= 0.5 ? s->task_us : least_us;
        s->task_us /= 2;
    }
    if (s->metg && ferry_rank(f) == 0 && least_us > 0)
        printf("least task with half of the time in tasks: %.3f us\n", least_us);
    else if (s->metg && ferry_rank(f) == 0)
        printf("tasks have less than half of the time: begin with longer ones\n");
    return right ? 0 : 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const char *const patterns[] = {"no_comm", "stencil", "periodic", "sweep", "fft",
                                           "tree",    "spread",  "random",   "all",   NULL};
    state s = {.width = 64, .steps = 100, .task_us = 100};
    const parameter table[] = {
        {"pattern", "which columns a task needs", .choice = &s.pattern, .of = patterns},
        {"width", "columns", 1, COLUMNS_MAX, .whole = &s.width},
        {"steps", "tasks of a column", 1, 1e6, .whole = &s.steps},
        {"task-us", "of a task in the mean", 0, 1e6, .real = &s.task_us},
        {"imbalance", "0: tasks are alike; 1: from nothing to twice the mean", 0, 1,
         .real = &s.imbalance},
        {"persistent", "a column takes the same in each step", .flag = &s.persistent},
        {"metg", "halves tasks down to half of the time", .flag = &s.metg},
        {"no-balance", "every column where it was made", .flag = &s.no_balance},
        {0},
    };
    ferry_user_data_set(f, &s);
    int status = parameters_read(f, argc, argv, "Patterns of tasks that need others.", table);
    if (status >= 0)
        return status;
    while (2L << s.bits <= s.width)
        s.bits++;
    s.from = calloc((size_t)s.width, sizeof *s.from);
    check(f, s.from != NULL ? 0 : FERRY_ENOMEM);
    status = run_all(f, &s);
    free(s.from);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
