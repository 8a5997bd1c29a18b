#include "common/compare.h"

#include <stdlib.h>
#include <string.h>

#include "common/busy.h"

/* Hand-offs that differ by more are two states of the machine. */
#define SAME_STATE 1.6
#define NEAR_MAX_NS 150.0

enum { SAMPLES_MIN = 3, RUNS_LONG = 41, RUNS_QUICK = 9, SLOW_BYTES = 16 << 20 };
enum { EXPOSED_COUNT = 30 }; /* movements of a sample of what is not hidden */
enum { HIGH_PERCENT = 90, HIGH_RUNS = 20 };

typedef struct comparison {
    const bench_options *options;
    const char *bench;
    bench_side sides[BENCH_SIDES_MAX];
    int side_count;
    int ranks; /* of the teams that run */
} comparison;

/* The work of one side of the present case. */
typedef struct entry {
    bench_side *side;
    bool takes_part;
    uint64_t count;   /* operations per sample */
    uint64_t used_ns; /* by all samples */
    int taken;        /* samples */
    double *samples;  /* one per round; negative: sat out */
} entry;

typedef struct round {
    double hand_off_ns; /* 0 where it is not probed */
    bool kept;
} round;

typedef struct work {
    const bench_case *which;
    entry entries[BENCH_SIDES_MAX];
    round *rounds;
    double *scratch; /* as many as rounds */
    int round_count, round_max;
} work;

void bench_state_name(double hand_off_ns, char *out, size_t size_bytes)
{
    if (hand_off_ns > 0)
        snprintf(out, size_bytes, "%s %.0f ns", hand_off_ns < NEAR_MAX_NS ? "near" : "far",
                 hand_off_ns);
    else
        out[0] = 0;
}

static void stop_all(comparison *c)
{
    for (int i = 0; i < c->side_count; i++) {
        bench_side_stop(&c->sides[i]);
        c->sides[i].failed = false;
    }
}

static bool same(double a, double b)
{
    return a <= b * SAME_STATE && b <= a * SAME_STATE;
}

static bool probed(const bench_options *options, const bench_case *which)
{
    return !options->smoke && which->ranks > 1 && which->beside == BENCH_ALONE && !which->high &&
           which->kind < BENCH_MEMORY;
}

/* The sample in the case's unit. */
static double figure(const bench_case *which, const entry *e, double value)
{
    int parts = which->parts ? which->parts : which->ranks;
    double per = value / ((double)e->count * parts);
    switch (which->unit) {
    case BENCH_NS:
        return per;
    case BENCH_US:
        return per * 1e-3;
    case BENCH_MPS:
        return 1e3 / per;
    case BENCH_GBPS:
        return (double)which->size_bytes / per;
    case BENCH_MIB:
        return value / (1 << 20);
    case BENCH_KIB:
        return value / 1024;
    case BENCH_MS:
    case BENCH_PERCENT:
        break;
    }
    return value;
}

static bench_job job_of(const bench_options *options, const bench_case *which, uint64_t count)
{
    return (bench_job){.kind = (uint32_t)which->kind,
                       .probe = probed(options, which),
                       .use = which->use,
                       .size_bytes = which->size_bytes,
                       .count = count};
}

/* Whether one operation may take as long as a sample shall. */
static bool is_slow(const bench_case *which)
{
    bool program = which->kind >= BENCH_REDBLACK && which->kind <= BENCH_AMR;
    bool copied = which->kind != BENCH_HAND_OVER && which->size_bytes >= SLOW_BYTES;
    return program || copied || which->ranks > bench_cores();
}

static double sample_ns(const bench_options *options, const bench_case *which)
{
    if (which->high)
        return options->quick ? 40e6 : 100e6;
    return options->quick ? 2e6 : 4e6;
}

/* Finds how many operations take about the time of a sample; warms the team up. */
static bool calibrate(const bench_options *options, const bench_case *which, entry *e)
{
    double goal_ns = sample_ns(options, which);
    if (which->kind == BENCH_EXPOSED || which->kind == BENCH_EXPOSED_SLEEP) {
        e->count = options->smoke ? 2 : EXPOSED_COUNT;
        return true;
    }
    if (which->kind == BENCH_SHARES || which->kind == BENCH_SPAWN) {
        e->count = 1;
        return true;
    }
    if (which->kind == BENCH_MEMORY || which->kind == BENCH_LIBRARY) {
        bench_answer answer;
        e->count = 1;
        return bench_side_run(
            e->side, &(bench_job){.kind = BENCH_REQUEST, .size_bytes = 8, .count = 1000}, &answer);
    }
    if (options->smoke) {
        e->count = 1;
        return true;
    }
    for (uint64_t count = is_slow(which) ? 1 : 16;;) {
        bench_answer answer;
        bench_job job = job_of(options, which, count);
        job.probe = job.use = 0;
        if (!bench_side_run(e->side, &job, &answer))
            return false;
        double took = answer.value > 100 ? answer.value : 100;
        double grow = goal_ns / took;
        e->count = count;
        if (grow < 4) {
            e->count = grow < 1 && count > 1 ? (uint64_t)((double)count * grow) + 1 : count;
            return true;
        }
        count = (uint64_t)((double)count * (grow < 20 ? grow : 20));
    }
}

/* Whether a side is so slow that its few samples must do. */
static bool sits_out(const bench_options *options, const bench_case *which, const entry *e)
{
    if (which->high) /* no best peer needs that long */
        return e->taken >= SAMPLES_MIN &&
               (double)e->used_ns > 3 * HIGH_RUNS * sample_ns(options, which);
    return e->taken >= SAMPLES_MIN && e->used_ns > (options->quick ? 300000000 : 4000000000u);
}

static bool sample(const bench_options *options, const work *w, entry *e, double *value,
                   double *hand_off_ns)
{
    const bench_case *which = w->which;
    if (which->start) {
        double ms = bench_side_start_ms(e->side->launcher, which->ranks);
        *value = ms;
        *hand_off_ns = 0;
        return ms >= 0;
    }
    bench_answer answer;
    bench_job job = job_of(options, which, e->count);
    if (!bench_side_run(e->side, &job, &answer))
        return false;
    *value = figure(which, e, answer.value);
    /* A team that learns how to wait is slow at first. */
    if (which->high && !options->smoke && answer.value < sample_ns(options, which) / 2)
        e->count *= 2;
    *hand_off_ns = job.probe && same(answer.before_ns, answer.after_ns) ? answer.before_ns : 0;
    return true;
}

/* One sample of each side, beginning with another side each time. */
static void run_round(comparison *c, work *w)
{
    round *r = &w->rounds[w->round_count];
    bool clean = true, probe = probed(c->options, w->which);
    r->hand_off_ns = 0;
    for (int k = 0; k < c->side_count; k++) {
        double hand_off_ns;
        entry *e = &w->entries[(k + w->round_count) % c->side_count];
        e->samples[w->round_count] = -1;
        if (!e->takes_part || sits_out(c->options, w->which, e))
            continue;
        uint64_t start = bench_now();
        e->takes_part = sample(c->options, w, e, &e->samples[w->round_count], &hand_off_ns);
        if (!e->takes_part)
            continue;
        e->used_ns += bench_now() - start;
        e->taken++;
        if (r->hand_off_ns == 0)
            r->hand_off_ns = hand_off_ns;
        clean = clean && (!probe || (hand_off_ns > 0 && same(r->hand_off_ns, hand_off_ns)));
    }
    r->kept = clean;
    w->round_count++;
}

/* The state of the machine in most of the kept rounds. */
static double common_state(const work *w)
{
    double best = 0;
    int best_count = 0;
    for (int i = 0; i < w->round_count; i++) {
        int count = 0;
        for (int k = 0; k < w->round_count; k++)
            count += w->rounds[k].kept && same(w->rounds[i].hand_off_ns, w->rounds[k].hand_off_ns);
        if (w->rounds[i].kept && count > best_count) {
            best_count = count;
            best = w->rounds[i].hand_off_ns;
        }
    }
    return best;
}

static int runs_of(const bench_options *options, const bench_case *which)
{
    bool few = which->high && !options->smoke && options->runs < HIGH_RUNS;
    return few ? HIGH_RUNS : options->runs;
}

static void run_rounds(comparison *c, work *w)
{
    int kept = 0, runs = runs_of(c->options, w->which);
    while (w->round_count < w->round_max && kept < runs) {
        run_round(c, w);
        kept += w->rounds[w->round_count - 1].kept;
    }
    if (kept == 0) /* it never held still: say so, with what there is */
        for (int i = 0; i < w->round_count; i++)
            w->rounds[i] = (round){.kept = true};
}

static double middle_of(const work *w, const entry *e, double state, int *runs)
{
    *runs = 0;
    for (int i = 0; i < w->round_count; i++)
        if (w->rounds[i].kept && e->samples[i] >= 0 &&
            (state == 0 || same(state, w->rounds[i].hand_off_ns)))
            w->scratch[(*runs)++] = e->samples[i];
    return w->which->high ? bench_percentile(w->scratch, *runs, HIGH_PERCENT)
                          : bench_median(w->scratch, *runs);
}

static bench_target target_of(const bench_case *which, const char *peer)
{
    for (int i = 0; i < BENCH_TARGETS_MAX && which->aims[i].peer; i++) {
        const bench_aim *a = &which->aims[i];
        if (strcmp(a->peer, peer) == 0 || (strcmp(a->peer, "*") == 0 && strcmp(peer, "reference")))
            return (bench_target){a->bound, a->value};
    }
    return (bench_target){BENCH_NONE, 0};
}

static const char *const unit_names[] = {"ns", "us", "M/s", "GB/s", "ms", "MiB", "KiB", "%"};

/* Rows of the peers that an aim names and that no program exists for. */
static void report_unknown(comparison *c, const work *w, double ours)
{
    for (int i = 0; i < BENCH_TARGETS_MAX && w->which->aims[i].peer; i++) {
        const char *peer = w->which->aims[i].peer;
        bool known = strcmp(peer, "*") == 0;
        for (int k = 0; k < c->side_count; k++)
            known = known || strcmp(peer, c->sides[k].launcher->peer) == 0;
        bench_row row = {.name = w->which->name,
                         .peer = peer,
                         .unit = unit_names[w->which->unit],
                         .ours = ours,
                         .theirs = -1,
                         .target = {w->which->aims[i].bound, w->which->aims[i].value},
                         .state = "not packaged by Debian"};
        if (!known)
            bench_report(c->options, c->bench, &row);
    }
}

/* Why a side has no figure; NULL when it has one, or when the case is nothing for it. */
static const char *absence(const work *w, const entry *e)
{
    const bench_launcher *launcher = e->side->launcher;
    if (e->takes_part || (w->which->start && !launcher->starts) ||
        (launcher->ranks_max && w->which->ranks > launcher->ranks_max))
        return NULL;
    if (!bench_side_exists(launcher))
        return "not built: its library was not found";
    return e->side->failed ? e->side->reason : NULL;
}

/* Whether there was anything to report. */
static bool report_side(comparison *c, const work *w, const entry *e, double ours, double state)
{
    char state_text[32];
    const char *absent = absence(w, e);
    const bench_launcher *launcher = e->side->launcher;
    bench_state_name(state, state_text, sizeof state_text);
    bench_row row = {.name = w->which->name,
                     .peer = w->which->against ? w->which->against : launcher->peer,
                     .unit = unit_names[w->which->unit],
                     .ours = ours,
                     .theirs = -1,
                     .target = target_of(w->which, launcher->peer),
                     .state = absent ? absent : state_text};
    if (e->takes_part)
        row.theirs = middle_of(w, e, state, &row.runs);
    if (e->takes_part || absent)
        bench_report(c->options, c->bench, &row);
    return e->takes_part || absent;
}

/* A case that has bounds on ours alone. */
static void report_alone(comparison *c, const work *w, double ours, double state, int runs)
{
    char state_text[32];
    bench_state_name(state, state_text, sizeof state_text);
    bench_report(c->options, c->bench,
                 &(bench_row){.name = w->which->name,
                              .peer = "-",
                              .unit = unit_names[w->which->unit],
                              .ours = ours,
                              .theirs = -1,
                              .runs = runs,
                              .target = target_of(w->which, "-"),
                              .state = state_text});
}

static void report_all(comparison *c, const work *w)
{
    int runs = 0;
    double state = common_state(w);
    double ours = w->entries[0].takes_part ? middle_of(w, &w->entries[0], state, &runs) : -1;
    if (ours < 0)
        fprintf(stderr, "%s: %s: no figure of ours: %s\n", c->bench, w->which->name,
                c->sides[0].reason);
    bool compared = false;
    for (int i = 1; i < c->side_count; i++)
        compared = report_side(c, w, &w->entries[i], ours, state) || compared;
    if (!compared && ours >= 0)
        report_alone(c, w, ours, state, runs);
    report_unknown(c, w, ours);
}

/* Starts the teams that the case needs and finds who can take part. */
static void enlist(comparison *c, work *w)
{
    const bench_case *which = w->which;
    if (c->ranks != which->ranks || which->kind == BENCH_MEMORY)
        stop_all(c);
    c->ranks = which->ranks;
    for (int i = 0; i < c->side_count; i++) {
        bench_side *side = w->entries[i].side = &c->sides[i];
        const bench_launcher *launcher = side->launcher;
        side->ranks = which->ranks;
        if (which->start)
            w->entries[i].takes_part = launcher->starts && bench_side_exists(launcher);
        else if (!launcher->ranks_max || side->ranks <= launcher->ranks_max)
            w->entries[i].takes_part = bench_side_start(side) && bench_side_can(side, which->kind);
    }
}

/* Under the conditions of the case: beside computing processes operations take longer. */
static void calibrate_all(comparison *c, work *w)
{
    for (int i = 0; i < c->side_count; i++) {
        entry *e = &w->entries[i];
        if (e->takes_part && !w->which->start)
            e->takes_part = calibrate(c->options, w->which, e);
    }
}

static void measure(comparison *c, const bench_case *which)
{
    work w = {.which = which, .round_max = 2 * runs_of(c->options, which)};
    w.rounds = calloc((size_t)w.round_max, sizeof *w.rounds);
    w.scratch = calloc((size_t)w.round_max, sizeof *w.scratch);
    for (int i = 0; i < c->side_count; i++)
        w.entries[i].samples = calloc((size_t)w.round_max, sizeof(double));
    bench_busy busy = {0};
    enlist(c, &w);
    bench_busy_start(&busy, which->beside);
    calibrate_all(c, &w);
    run_rounds(c, &w);
    bench_busy_stop(&busy);
    report_all(c, &w);
    for (int i = 0; i < c->side_count; i++)
        free(w.entries[i].samples);
    free(w.scratch);
    free(w.rounds);
}

static void measure_group(const bench_options *options, const char *bench, const bench_group *group)
{
    comparison c = {.options = options, .bench = bench, .side_count = group->launcher_count};
    for (int i = 0; i < c.side_count; i++)
        c.sides[i].launcher = &group->launchers[i];
    for (int ranks = 1; ranks <= BENCH_RANKS_MAX; ranks++)
        for (int i = 0; i < group->case_count; i++)
            if (group->cases[i].ranks == ranks && bench_wanted(options, group->cases[i].name))
                measure(&c, &group->cases[i]);
    stop_all(&c);
}

/* Groups up to an empty one. Cases that two of them share are named once. */
static const char *name_of(const void *context, int index)
{
    const bench_case *before = NULL;
    for (const bench_group *g = context; g->cases; before = g->cases, g++) {
        if (g->cases == before)
            continue;
        if (index < g->case_count)
            return g->cases[index].name;
        index -= g->case_count;
    }
    return NULL;
}

int bench_compare_main(int argc, char **argv, const char *bench, const bench_group *groups)
{
    const bench_about about = {bench, name_of, groups, RUNS_LONG, RUNS_QUICK};
    bench_options options;
    int status = bench_options_read(argc, argv, &about, &options);
    if (status >= 0)
        return status;
    bench_report_head(&options, bench, groups->cases->high ? "90th percentiles" : "medians");
    for (const bench_group *g = groups; g->cases; g++)
        measure_group(&options, bench, g);
    return 0;
}
