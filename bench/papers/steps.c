/* Steps: the loosely synchronous benchmark of prema.txt 7.5. A domain of 512 sub-domains. In the
 * first time step all of them are refined. In each later one some are refined and as many
 * coarsened, next to each other, at a place that moves on: where the work is changes with each
 * step. Sub-domains that are refined tell their neighbours of split segments.
 *
 *      ferry run -n 8 build/bench/papers/steps --steps 10 --percent 10
 *
 * With --trace N each rank records step N alone, and prints how it spent it: to look at one slow
 * step of a long run.
 *
 * Steps end with ferry_quiesce. The program counts what was done, and compares it for each step
 * with what must be done by its end, so that a step that ended early would be found out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

typedef struct options {
    long parts, steps;
    double percent;
    double refine_ms; /* coarsening takes half of it */
    long splits;      /* messages to each neighbour of a refined sub-domain */
    long split_bytes;
    long trace; /* the step to record; -1: none */
    bool balance;
} options;

/* The work of a rank, or of all. */
typedef struct counts {
    uint64_t refined, coarsened, splits;
} counts;

typedef struct part {
    uint64_t index;
    uint64_t changes, splits;
} part;

typedef struct state {
    options options;
    ferry_object_type type;
    ferry_handler refine, coarsen, split;
    ferry_object *parts; /* all, by index */
    unsigned char *segments;
    counts *done; /* here, in each step: others may be one ahead */
} state;

static void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "steps: rank %d: %s: %s\n", ferry_rank(f), ferry_strerror(error),
            ferry_error_message(f));
    exit(1);
}

/* The kind of a task tells how long it takes; the library counts in any unit. */
static double part_load(ferry *f, const void *data, const ferry_message *message)
{
    const state *s = ferry_user_data(f);
    (void)data;
    if (message->handler.index == s->split.index)
        return 0;
    return message->handler.index == s->refine.index ? 2 : 1;
}

static void on_refine(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    state *s = ferry_user_data(f);
    const options *o = &s->options;
    part *p = data;
    const ferry_message split = {.handler = s->split,
                                 .word_count = 1,
                                 .words = {message->words[0]},
                                 .data = s->segments,
                                 .size_bytes = (size_t)o->split_bytes};
    (void)object;
    (void)source;
    ferry_compute(f, o->refine_ms / 1e3);
    p->changes++;
    s->done[message->words[0]].refined++;
    for (long i = 0; i < o->splits; i++) {
        if (p->index > 0)
            check(f, ferry_object_send(f, s->parts[p->index - 1], &split, NULL));
        if (p->index + 1 < (uint64_t)o->parts)
            check(f, ferry_object_send(f, s->parts[p->index + 1], &split, NULL));
    }
}

static void on_coarsen(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)object;
    (void)source;
    ferry_compute(f, s->options.refine_ms / 2e3);
    ((part *)data)->changes++;
    s->done[message->words[0]].coarsened++;
}

static void on_split(ferry *f, ferry_object object, void *data, int source,
                     const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)object;
    (void)source;
    ((part *)data)->splits++;
    s->done[message->words[0]].splits++;
}

static long changed(const options *o)
{
    return (long)((double)o->parts * o->percent / 100);
}

/* Place of sub-domain `index` behind the first that is refined in `step`. */
static long place(const options *o, long step, long index)
{
    return (index + o->parts - step * changed(o) % o->parts) % o->parts;
}

static bool is_refined(const options *o, long step, long index)
{
    return step == 0 || place(o, step, index) < changed(o);
}

static bool is_coarsened(const options *o, long step, long index)
{
    return !is_refined(o, step, index) && place(o, step, index) < 2 * changed(o);
}

/* Adds what `step` has to do. */
static void expect(const options *o, long step, counts *c)
{
    for (long i = 0; i < o->parts; i++) {
        bool refined = is_refined(o, step, i);
        c->refined += refined;
        c->coarsened += is_coarsened(o, step, i);
        if (refined)
            c->splits += (uint64_t)o->splits * (uint64_t)((i > 0) + (i + 1 < o->parts));
    }
}

static long quotient_up(long a, long b)
{
    return (a + b - 1) / b;
}

/* In milliseconds: no schedule ends `step` sooner, whatever it knows. In halves of a refinement: a
 * rank has to coarsen for one, to refine for two, and some rank has the average or more. */
static double least_ms(const options *o, long step, int ranks)
{
    counts c = {0};
    expect(o, step, &c);
    long average = quotient_up(2 * (long)c.refined + (long)c.coarsened, ranks);
    long refining = 2 * quotient_up((long)c.refined, ranks);
    return o->refine_ms / 2 * (double)(average > refining ? average : refining);
}

/* Makes the rank's block of sub-domains and tells everybody all names. */
static void create_parts(ferry *f, state *s)
{
    long count = s->options.parts;
    uint64_t *names = calloc((size_t)count, sizeof *names);
    check(f, names != NULL ? 0 : FERRY_ENOMEM);
    for (long i = 0; i < count; i++) {
        if (i * ferry_ranks(f) / count != ferry_rank(f))
            continue;
        part *p = calloc(1, sizeof *p);
        check(f, p != NULL ? 0 : FERRY_ENOMEM);
        p->index = (uint64_t)i;
        check(f, ferry_object_create(f, s->type, p, &s->parts[i]));
        check(f, ferry_balance_add(f, s->parts[i], NULL));
        names[i] = s->parts[i].word;
    }
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, names, names, (size_t)count));
    for (long i = 0; i < count; i++)
        s->parts[i].word = names[i];
    free(names);
}

/* Sends the sub-domains of this rank's block what they have to do. */
static void begin_step(ferry *f, const state *s, long step)
{
    const options *o = &s->options;
    for (long i = 0; i < o->parts && step < o->steps; i++) {
        bool refined = is_refined(o, step, i);
        const ferry_message message = {.handler = refined ? s->refine : s->coarsen,
                                       .word_count = 1,
                                       .words = {(uint64_t)step}};
        if (i * ferry_ranks(f) / o->parts == ferry_rank(f) && (refined || is_coarsened(o, step, i)))
            check(f, ferry_object_send(f, s->parts[i], &message, NULL));
    }
}

/* Whether all ranks together had done what `step` wanted once each had done `done` of it. Tasks run
 * and move meanwhile. */
static bool is_complete(ferry *f, const options *o, long step, const counts *done)
{
    counts expected = {0};
    expect(o, step, &expected);
    uint64_t sums[3] = {done->refined, done->coarsened, done->splits};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 3));
    bool complete =
        sums[0] == expected.refined && sums[1] == expected.coarsened && sums[2] == expected.splits;
    if (!complete && ferry_rank(f) == 0)
        fprintf(stderr,
                "steps: %" PRIu64 " refined, %" PRIu64 " coarsened, %" PRIu64
                " splits; expected %" PRIu64 ", %" PRIu64 ", %" PRIu64 " in step %ld\n",
                sums[0], sums[1], sums[2], expected.refined, expected.coarsened, expected.splits,
                step);
    return complete;
}

/* A rank records as many stretches; neighbouring ones shorter than this become one. */
enum { INTERVALS = 4096, RESOLUTION_NS = 10 * 1000 };

/* Begins to trace step `step`. */
static void start_trace(ferry *f, const options *o, long step)
{
    if (step == o->trace)
        check(f, ferry_trace_start(f, INTERVALS, RESOLUTION_NS));
}

/* Prints how each rank spent the step that has ended, if that is the one. */
static void stop_trace(ferry *f, const options *o, long step)
{
    const ferry_interval *intervals;
    size_t count;
    int ranks = ferry_ranks(f);
    if (step != o->trace)
        return;
    check(f, ferry_trace_stop(f, &intervals, &count));
    double(*spent)[FERRY_MAIN + 1] = calloc((size_t)ranks, sizeof *spent);
    check(f, spent != NULL ? 0 : FERRY_ENOMEM);
    for (size_t i = 0; i + 1 < count; i++)
        spent[ferry_rank(f)][intervals[i].activity] +=
            (double)(intervals[i + 1].start_ns - intervals[i].start_ns) / 1e6;
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, spent, spent,
                             (size_t)ranks * (FERRY_MAIN + 1)));
    for (int i = 0; i < ranks && ferry_rank(f) == 0; i++)
        printf("step %2ld, rank %d: %.2f ms in tasks, %.2f in the runtime, %.2f in the program, "
               "%.2f idle\n",
               step, i, spent[i][FERRY_TASK], spent[i][FERRY_RUNTIME], spent[i][FERRY_MAIN],
               spent[i][FERRY_IDLE]);
    free(spent);
}

/* Each step begins as soon as the one before has ended; that all was done is found out during it,
 * since ranks that wait for others run tasks. */
static bool run_steps(ferry *f, state *s, double *least)
{
    const options *o = &s->options;
    bool complete = true;
    uint64_t start_ns = ferry_now(f);
    start_trace(f, o, 0);
    begin_step(f, s, 0);
    for (long step = 0; step < o->steps && complete; step++) {
        check(f, ferry_quiesce(f));
        const counts done = s->done[step];
        stop_trace(f, o, step);
        start_trace(f, o, step + 1);
        begin_step(f, s, step + 1);
        uint64_t end_ns = ferry_now(f);
        if (ferry_rank(f) == 0)
            printf("step %2ld: %9.2f ms, at least %9.2f\n", step, (double)(end_ns - start_ns) / 1e6,
                   least_ms(o, step, ferry_ranks(f)));
        start_ns = end_ns;
        *least += least_ms(o, step, ferry_ranks(f));
        complete = is_complete(f, o, step, &done);
    }
    uint64_t parts = ferry_object_count(f);
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &parts, &parts, 1));
    return complete && parts == (uint64_t)o->parts;
}

static int run(ferry *f, state *s)
{
    const options *o = &s->options;
    double least = 0;
    create_parts(f, s);
    check(f, o->balance ? ferry_balance_enable(f, true) : ferry_barrier(f));
    uint64_t start_ns = ferry_now(f);
    bool complete = run_steps(f, s, &least);
    double took_ms = (double)(ferry_now(f) - start_ns) / 1e6;
    if (ferry_rank(f) == 0)
        printf("scheduler %s, %d ranks, %ld sub-domains, %ld steps, %.4g%%: %.2f ms, at least "
               "%.2f, %s\n",
               o->balance ? ferry_balance_scheduler(f) : "off", ferry_ranks(f), o->parts, o->steps,
               o->percent, took_ms, least, complete ? "complete" : "INCOMPLETE");
    return complete ? 0 : 1;
}

static int read_options(ferry *f, int argc, char **argv, options *o)
{
    bool alone = false;
    const parameter table[] = {
        {"parts", "sub-domains", 1, 1e6, .whole = &o->parts},
        {"steps", "time steps", 1, 1e6, .whole = &o->steps},
        {"percent", "of the sub-domains refined per step", 0, 50, .real = &o->percent},
        {"refine", "milliseconds of a refinement", 0, 1e6, .real = &o->refine_ms},
        {"splits", "messages to each neighbour of a refined one", 0, 1e6, .whole = &o->splits},
        {"bytes", "of such a message", 0, 1e6, .whole = &o->split_bytes},
        {"trace", "a step to show in detail", -1, 1e6, .whole = &o->trace},
        {"no-balance", "every sub-domain where it was made", .flag = &alone},
        {0},
    };
    int status = parameters_read(f, argc, argv, "Sub-domains refined in time steps.", table);
    o->balance = !alone;
    return status;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "part", .flat_bytes = sizeof(part), .load = part_load};
    state s = {.options = {.parts = 512,
                           .steps = 10,
                           .percent = 10,
                           .refine_ms = 2,
                           .splits = 2,
                           .split_bytes = 64,
                           .trace = -1}};
    int wrong = read_options(f, argc, argv, &s.options);
    if (wrong >= 0)
        return wrong;
    ferry_user_data_set(f, &s);
    check(f, ferry_object_type_register(f, &ops, &s.type));
    check(f, ferry_object_handler_register(f, "refine", on_refine, &s.refine));
    check(f, ferry_object_handler_register(f, "coarsen", on_coarsen, &s.coarsen));
    check(f, ferry_object_handler_register(f, "split", on_split, &s.split));
    s.parts = calloc((size_t)s.options.parts, sizeof *s.parts);
    s.segments = calloc(1, (size_t)s.options.split_bytes + 1);
    s.done = calloc((size_t)s.options.steps, sizeof *s.done);
    check(f, s.parts != NULL && s.segments != NULL && s.done != NULL ? 0 : FERRY_ENOMEM);
    int status = run(f, &s);
    free(s.parts);
    free(s.segments);
    free(s.done);
    return status;
}

int main(int argc, char **argv)
{
    setenv("FERRY_COMPUTE", "sleep", 0); /* what ferry_compute does outside the simulator */
    return ferry_main(argc, argv, rank_main, NULL);
}
