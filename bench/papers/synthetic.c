/* Synthetic: the benchmark of prema.txt 7.1. Tasks of two kinds, heavy and light, unknown to the
 * balancer beforehand; the heavy ones all begin on the first ranks. With `--shape linear` the tests
 * linear-2 and linear-4 of 6.4: times fall from the first task to the last.
 *
 *     ferry run -n 8 build/bench/papers/synthetic --tasks 16 --heavy 25 --light 20 --factor 2
 *     ferry sim -n 64 build/bench/papers/synthetic
 *
 * Rank 0 prints the makespan, the bound (what a balancer without knowledge of costs can reach when
 * an idle rank takes a waiting task at once), and what each rank did. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

typedef enum work { COMPUTE, SLEEP, SPIN } work;
typedef enum shape { STEP, LINEAR } shape;

typedef struct options {
    long tasks; /* per rank */
    double heavy_percent;
    double light_ms;
    double factor;
    long bytes; /* of data per object */
    work work;
    shape shape;
    bool balance;
    const char *scheduler; /* NULL: the default */
    bool loads;            /* tell the balancer what tasks cost */
} options;

typedef struct state {
    options options;
    uint64_t done;
    double busy_ms;
    ferry_stats before, after; /* the run */
} state;

/* An object: one task of a known length, and ballast. */
typedef struct unit {
    double ms;
    size_t size_bytes;
    unsigned char ballast[];
} unit;

static size_t unit_packed_size(ferry *f, const void *data)
{
    (void)f;
    return sizeof(unit) + ((const unit *)data)->size_bytes;
}

static double unit_load(ferry *f, const void *data, const ferry_message *message)
{
    (void)message;
    const state *s = ferry_user_data(f);
    return s->options.loads ? ((const unit *)data)->ms : 1;
}

static void work_for(ferry *f, work how, double ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1e3),
                            .tv_nsec = (long)((ms - 1e3 * (double)(time_t)(ms / 1e3)) * 1e6)};
    uint64_t end_ns = ferry_now(f) + (uint64_t)(ms * 1e6);
    switch (how) {
    case COMPUTE:
        ferry_compute(f, ms / 1e3);
        break;
    case SLEEP:
        while (nanosleep(&time, &time) != 0 && errno == EINTR)
            continue;
        break;
    case SPIN:
        while (ferry_now(f) < end_ns)
            continue;
        break;
    }
}

static void run_unit(ferry *f, ferry_object object, void *data, int source,
                     const ferry_message *message)
{
    state *s = ferry_user_data(f);
    const unit *u = data;
    (void)object;
    (void)source;
    (void)message;
    work_for(f, s->options.work, u->ms);
    s->done++;
    s->busy_ms += u->ms;
}

/* The time of the task of that number, of all. */
static double task_ms(const options *o, long number, long total)
{
    if (o->shape == LINEAR) {
        double place = total > 1 ? (double)number / (double)(total - 1) : 0;
        return o->light_ms * (o->factor - (o->factor - 1) * place);
    }
    long heavy = (long)((double)total * o->heavy_percent / 100 + 0.5);
    return number < heavy ? o->light_ms * o->factor : o->light_ms;
}

/* When the last task ends if no rank is ever idle while a task waits anywhere: each takes its own
 * tasks first, then one of whoever has most left. */
static double bound_ms(const options *o, int ranks)
{
    long total = o->tasks * ranks;
    double *free_at = calloc((size_t)ranks, sizeof *free_at);
    long *left = malloc((size_t)ranks * sizeof *left);
    double makespan = 0;
    if (free_at == NULL || left == NULL)
        goto done;
    for (int i = 0; i < ranks; i++)
        left[i] = o->tasks;
    for (long taken = 0; taken < total; taken++) {
        int rank = 0;
        for (int i = 1; i < ranks; i++)
            if (free_at[i] < free_at[rank])
                rank = i;
        int owner = rank;
        for (int i = 0; left[rank] == 0 && i < ranks; i++)
            owner = left[i] > left[owner] ? i : owner;
        long number = owner * o->tasks + o->tasks - left[owner]--;
        free_at[rank] += task_ms(o, number, total);
        makespan = free_at[rank] > makespan ? free_at[rank] : makespan;
    }
done:
    free(free_at);
    free(left);
    return makespan;
}

static int create_units(ferry *f, const options *o, ferry_object_type type, ferry_object *objects)
{
    int rank = ferry_rank(f);
    long total = o->tasks * ferry_ranks(f);
    for (long i = 0; i < o->tasks; i++) {
        unit *u = calloc(1, sizeof *u + (size_t)o->bytes);
        if (u == NULL)
            return FERRY_ENOMEM;
        u->ms = task_ms(o, rank * o->tasks + i, total);
        u->size_bytes = (size_t)o->bytes;
        int error = ferry_object_create(f, type, u, &objects[i]);
        if (error != 0) {
            free(u);
            return error;
        }
        error = ferry_balance_add(f, objects[i], NULL);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Sends each unit its message and returns when all have run everywhere. */
static int run_units(ferry *f, const options *o, ferry_handler handler, const ferry_object *objects)
{
    const ferry_message message = {.handler = handler};
    for (long i = 0; i < o->tasks; i++) {
        int error = ferry_object_send(f, objects[i], &message, NULL);
        if (error != 0)
            return error;
    }
    return ferry_quiesce(f);
}

/* Makes the span of this rank that of all: a rank may come out of the barrier late, having run
 * tasks of others in it, so its own clock would not count them. Clocks of one node agree. */
static int widest_span(ferry *f, uint64_t *start_ns, uint64_t *end_ns)
{
    int error = ferry_allreduce(f, FERRY_UINT64, FERRY_MIN, start_ns, start_ns, 1);
    if (error != 0)
        return error;
    return ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, end_ns, end_ns, 1);
}

static int print_report(ferry *f, const state *s, uint64_t makespan_ns)
{
    int ranks = ferry_ranks(f);
    const ferry_stats *a = &s->before, *b = &s->after;
    enum { FIELDS = 6 };
    /* Only rank 0 needs the rows: as a sum on all, they would cost the square of the ranks. */
    double row[FIELDS], *table = NULL;
    if (ferry_rank(f) == 0 && (table = calloc((size_t)ranks, sizeof row)) == NULL)
        return FERRY_ENOMEM;
    row[0] = (double)s->done;
    row[1] = s->busy_ms;
    row[2] = (double)(b->objects_in - a->objects_in);
    row[3] = (double)(b->objects_out - a->objects_out);
    row[5] = (double)(b->helper_ns - a->helper_ns) / 1e6;
    row[4] = (double)(b->runtime_ns - a->runtime_ns) / 1e6 + row[5];
    row[5] += (double)(b->runtime_cpu_ns - a->runtime_cpu_ns) / 1e6;
    int error = ferry_gather(f, 0, row, sizeof row, table);
    if (error == 0 && ferry_rank(f) == 0) {
        double done = 0;
        double bound = bound_ms(&s->options, ranks);
        printf("rank   tasks   busy ms      in     out   runtime ms   of cpu ms\n");
        for (int i = 0; i < ranks; i++, done += table[(size_t)(i - 1) * FIELDS])
            printf("%4d %7.0f %9.1f %7.0f %7.0f %12.3f %11.3f\n", i, table[(size_t)i * FIELDS],
                   table[(size_t)i * FIELDS + 1], table[(size_t)i * FIELDS + 2],
                   table[(size_t)i * FIELDS + 3], table[(size_t)i * FIELDS + 4],
                   table[(size_t)i * FIELDS + 5]);
        printf("scheduler %s, %d ranks, %ld tasks each, %.4g%% heavy: makespan %.2f ms, bound %.2f "
               "ms, ratio %.3f\n",
               s->options.balance ? ferry_balance_scheduler(f) : "off", ranks, s->options.tasks,
               s->options.heavy_percent, (double)makespan_ns / 1e6, bound,
               (double)makespan_ns / 1e6 / bound);
        if (done != (double)(s->options.tasks * ranks)) {
            fprintf(stderr, "synthetic: %g of %ld tasks were run\n", done,
                    s->options.tasks * ranks);
            error = FERRY_ENOENT;
        }
    }
    free(table);
    return error;
}

static int run(ferry *f, state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "unit", .packed_size = unit_packed_size, .load = unit_load};
    ferry_object_type type;
    ferry_handler handler;
    int error = ferry_object_type_register(f, &ops, &type);
    if (error == 0 && s->options.scheduler != NULL)
        error = ferry_balance_choose(f, s->options.scheduler);
    if (error == 0)
        error = ferry_object_handler_register(f, "unit", run_unit, &handler);
    ferry_object *objects = calloc((size_t)s->options.tasks, sizeof *objects);
    if (error == 0)
        error = objects != NULL ? create_units(f, &s->options, type, objects) : FERRY_ENOMEM;
    if (error == 0 && s->options.balance)
        error = ferry_balance_enable(f, true);
    if (error == 0)
        error = ferry_barrier(f);
    s->before = s->after = (ferry_stats)FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &s->before);
    uint64_t start_ns = ferry_now(f);
    if (error == 0)
        error = run_units(f, &s->options, handler, objects);
    uint64_t end_ns = ferry_now(f);
    ferry_stats_get(f, &s->after);
    if (error == 0)
        error = widest_span(f, &start_ns, &end_ns);
    uint64_t makespan_ns = end_ns - start_ns;
    free(objects);
    if (error == 0)
        error = print_report(f, s, makespan_ns);
    return error;
}

static int read_options(ferry *f, int argc, char **argv, options *o)
{
    static const char *const works[] = {"compute", "sleep", "spin", NULL};
    bool alone = false;
    static const char *const shapes[] = {"step", "linear", NULL};
    int how = (int)o->work, form = (int)o->shape;
    const parameter table[] = {
        {"tasks", "per rank", 1, 1e7, .whole = &o->tasks},
        {"heavy", "percent of the tasks that are heavy", 0, 100, .real = &o->heavy_percent},
        {"light", "milliseconds of a light task", 0, 1e6, .real = &o->light_ms},
        {"factor", "of a heavy task's time to a light one's", 0, 1e6, .real = &o->factor},
        {"bytes", "of data per object", 0, 1e9, .whole = &o->bytes},
        {"work", "what a task does: compute, which the simulator counts, sleep or spin",
         .choice = &how, .of = works},
        {"shape", "step, or linear: times fall from the heavy task's to the light one's",
         .choice = &form, .of = shapes},
        {"no-balance", "every task where it was made", .flag = &alone},
        {"scheduler", "by name", .text = &o->scheduler},
        {"loads", "tell the balancer what tasks cost", .flag = &o->loads},
        {0},
    };
    int status = parameters_read(f, argc, argv,
                                 "Tasks of several lengths, the heavy ones on the first "
                                 "ranks, balanced while they run.",
                                 table);
    o->work = (work)how;
    o->shape = (shape)form;
    o->balance = !alone;
    return status;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {
        .options = {.tasks = 8, .heavy_percent = 25, .light_ms = 20, .factor = 2, .bytes = 1024}};
    int status = read_options(f, argc, argv, &s.options);
    if (status >= 0)
        return status;
    ferry_user_data_set(f, &s);
    int error = run(f, &s);
    if (error != 0)
        fprintf(stderr, "synthetic: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    return error != 0;
}

int main(int argc, char **argv)
{
    setenv("FERRY_COMPUTE", "sleep", 0); /* what ferry_compute does outside the simulator */
    return ferry_main(argc, argv, rank_main, NULL);
}
