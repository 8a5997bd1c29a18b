/* Balancing: the synthetic benchmark of prema.txt 7.1 with tasks that sleep, for each scheduler
 * against what the best balancer without knowledge of costs could reach. Also: the runtime's share
 * of a run, and how soon a scheduler answers while a task runs. docs/lab/balancing.md says where
 * the bounds come from. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/report.h"
#include "common/side.h"

enum { RUNS_LONG = 5, RUNS_QUICK = 1, OUTPUT_BYTES = 1 << 17 };

/* One row of anchors.md, Balancing. */
typedef struct setting {
    int ranks, tasks, heavy_percent, light_ms;
} setting;

static const setting settings[] = {
    {8, 4, 25, 20},   {8, 8, 25, 20},   {8, 16, 25, 20},  {8, 16, 10, 20},
    {32, 4, 25, 20},  {32, 4, 10, 20},  {32, 8, 25, 20},  {32, 8, 10, 20},
    {32, 16, 25, 20}, {32, 16, 10, 20}, {32, 4, 25, 200},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

/* The first is the default: its cases carry no name. */
static const char *const schedulers[] = {"ferry",    "stealing",         "diffusion", "none",
                                         "gradient", "diffusion-sender", "multilist", "master",
                                         "rotate",   "inplace"};

/* The first schedulers are measured in every setting, others where there is most to balance. */
enum { EVERYWHERE = SETTINGS * 4 };

static const struct {
    int setting, scheduler;
} others[] = {
    {1, 4}, {2, 4}, {6, 4}, {8, 4}, {1, 5}, {2, 5}, {6, 5}, {8, 5}, {1, 6},
    {2, 6}, {6, 6}, {8, 6}, {1, 7}, {2, 7}, {6, 7}, {8, 7}, {1, 8}, {1, 9},
};

static const setting *setting_of(int index)
{
    return &settings[index < EVERYWHERE ? index % SETTINGS : others[index - EVERYWHERE].setting];
}

static int scheduler_of(int index)
{
    return index < EVERYWHERE ? index / SETTINGS : others[index - EVERYWHERE].scheduler;
}

/* The lines that the program peers/response prints after a task of either kind, and their units. */
static const struct response {
    const char *name, *task, *word, *unit;
    double unit_ns, target;
} responses[] = {
    {"response-sleep", "sleep", "median ", "us", 1e3, 100},
    {"response-spin", "spin", "median ", "us", 1e3, 100},
    {"response-spin-99", "spin", " late ", "us", 1e3, 0},
    {"response-spin-helper", "spin", "helper ", "%", 1, 0},
};

/* Under the simulator, 16 tasks per rank, 25 percent heavy: the default up to a thousand ranks, and
 * all others where it takes no time. Each has a bound that it repeats to the last digit. */
static const struct simulation {
    int ranks, scheduler;
    double times_bound; /* 0: none is asked for */
} simulations[] = {{32, 0, 1.02}, {256, 0, 1.05}, {1024, 0, 1.05}, {32, 1, 0}, {32, 2, 0},
                   {32, 4, 0},    {32, 5, 0},     {32, 6, 0},      {32, 7, 0}};

enum {
    SYNTHETIC = EVERYWHERE + sizeof others / sizeof *others,
    SHARE = SYNTHETIC,
    SHARE_CPU,
    UTS,
    RESPONSE,
    SIMULATION = RESPONSE + sizeof responses / sizeof *responses,
    CASES = SIMULATION + sizeof simulations / sizeof *simulations
};

static const char *name_of(const void *context, int index)
{
    (void)context;
    static char name[64];
    if (index >= CASES)
        return NULL;
    if (index == SHARE)
        return "share-8-16-25";
    if (index == SHARE_CPU)
        return "share-8-16-25-cpu";
    if (index == UTS)
        return "uts-2";
    if (index >= SIMULATION) {
        const struct simulation *s = &simulations[index - SIMULATION];
        snprintf(name, sizeof name, "simulated-%d-16-25%s%s", s->ranks, s->scheduler ? "-" : "",
                 s->scheduler ? schedulers[s->scheduler] : "");
        return name;
    }
    if (index >= RESPONSE)
        return responses[index - RESPONSE].name;
    const setting *s = setting_of(index);
    int scheduler = scheduler_of(index);
    snprintf(name, sizeof name, "synthetic-%d-%d-%d%s%s%s", s->ranks, s->tasks, s->heavy_percent,
             s->light_ms == 200 ? "-coarse" : "", scheduler ? "-" : "",
             scheduler ? schedulers[scheduler] : "");
    return name;
}

/* In milliseconds: when the last task ends if an idle rank takes a waiting task at once, of the
 * rank that has most of them, and no started task moves. Heavy tasks cost two light ones and begin
 * on the first ranks. */
static double bound_ms(const setting *s)
{
    int left[BENCH_RANKS_MAX];
    double free_at[BENCH_RANKS_MAX] = {0}, last = 0;
    int total = s->ranks * s->tasks, heavy = (total * s->heavy_percent + 50) / 100;
    for (int i = 0; i < s->ranks; i++)
        left[i] = s->tasks;
    for (int n = 0; n < total; n++) {
        int rank = 0;
        for (int i = 1; i < s->ranks; i++)
            if (free_at[i] < free_at[rank])
                rank = i;
        int victim = rank;
        for (int i = 0; i < s->ranks && left[rank] == 0; i++)
            if (left[i] > left[victim])
                victim = i;
        int task = victim * s->tasks + s->tasks - left[victim]--;
        free_at[rank] += task < heavy ? 2 * s->light_ms : s->light_ms;
        if (free_at[rank] > last)
            last = free_at[rank];
    }
    return last;
}

/* In milliseconds: all work, spread evenly. Nothing can end sooner, whatever it knows. */
static double floor_ms(const setting *s)
{
    int total = s->ranks * s->tasks, heavy = (total * s->heavy_percent + 50) / 100;
    return (double)(total + heavy) * s->light_ms / s->ranks;
}

/* Runs a Ferry program below the benchmark's folder and keeps what it prints. False when it fails.
 */
static bool run_program(const char *const argv[], int ranks, const char *scheduler, char *output)
{
    char path[1200], number[16];
    int ends[2], status = -1;
    size_t length = 0;
    bench_path(argv[0], path, sizeof path);
    snprintf(number, sizeof number, "%d", ranks);
    fflush(NULL);
    if (access(path, X_OK) != 0 || pipe(ends) != 0)
        return false;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(127);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        setenv("FERRY_RANKS", number, 1);
        setenv("FERRY_SCHEDULER", scheduler, 1);
        execv(path, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t n; length < OUTPUT_BYTES - 1 &&
                    (n = read(ends[0], output + length, OUTPUT_BYTES - 1 - length)) > 0;)
        length += (size_t)n;
    output[length] = 0;
    close(ends[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Makespan in milliseconds, and the runtime's part of all ranks' time meanwhile in percent: wall
 * time and the helpers' processor time, or processor time only (`cpu`). */
static bool run_synthetic(const setting *s, const char *scheduler, bool cpu, double *makespan,
                          double *share)
{
    static char output[OUTPUT_BYTES];
    char tasks[16], heavy[16], light[16];
    snprintf(tasks, sizeof tasks, "%d", s->tasks);
    snprintf(heavy, sizeof heavy, "%d", s->heavy_percent);
    snprintf(light, sizeof light, "%d", s->light_ms);
    const char *const argv[] = {"papers/synthetic", "--tasks", tasks, "--heavy", heavy,
                                "--light",          light,     NULL};
    if (!run_program(argv, s->ranks, scheduler, output))
        return false;
    const char *found = strstr(output, "makespan ");
    if (!found || sscanf(found, "makespan %lf", makespan) != 1)
        return false;
    if (*makespan < floor_ms(s)) {
        fprintf(stderr, "balancing: %.1f ms for at least %.1f ms of work: not counted\n", *makespan,
                floor_ms(s));
        return false;
    }
    double runtime = 0;
    for (char *save = NULL, *line = strtok_r(output, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        double part, cpu_part;
        if (sscanf(line, "%*d %*f %*f %*f %*f %lf %lf", &part, &cpu_part) == 2)
            runtime += cpu ? cpu_part : part;
    }
    *share = 100 * runtime / (*makespan * s->ranks);
    return true;
}

static void measure_synthetic(const bench_options *options, int index)
{
    bool share_wanted = index == SHARE || index == SHARE_CPU;
    const setting *s = share_wanted ? &settings[2] : setting_of(index);
    const char *scheduler = schedulers[share_wanted ? 0 : scheduler_of(index)];
    double values[1000];
    int count = 0;
    for (int i = 0; i < options->runs; i++) {
        double makespan, share;
        if (run_synthetic(s, scheduler, index == SHARE_CPU, &makespan, &share))
            values[count++] = share_wanted ? share : makespan;
    }
    bench_row row = {.name = name_of(NULL, index),
                     .peer = share_wanted ? "none" : "reference",
                     .unit = share_wanted ? "%" : "ms",
                     .ours = bench_median(values, count),
                     .theirs = share_wanted ? -1 : bound_ms(s),
                     .runs = count,
                     .state = count ? scheduler : "papers/synthetic did not run"};
    if (share_wanted)
        row.target = (bench_target){BENCH_OURS_MAX, 0.02};
    else if (scheduler == schedulers[0])
        row.target = (bench_target){BENCH_BOUND_MAX, 1.02};
    bench_report(options, "balancing", &row);
}

/* The makespan in virtual time against the bound, as the program itself works it out. */
static void measure_simulated(const bench_options *options, int index)
{
    static char output[OUTPUT_BYTES];
    const struct simulation *s = &simulations[index - SIMULATION];
    char program[1200], ranks[16];
    double makespan = -1, bound = -1;
    bench_path("papers/synthetic", program, sizeof program);
    snprintf(ranks, sizeof ranks, "%d", s->ranks);
    const char *const argv[] = {
        "../bin/ferry", "sim",     "-n", ranks,    "--net",   "infiniband-hdr", program, "--tasks",
        "16",           "--heavy", "25", "--work", "compute", "--light",        "20",    NULL};
    bool ran = run_program(argv, s->ranks, schedulers[s->scheduler], output);
    const char *found = ran ? strstr(output, "makespan ") : NULL;
    bool told = found && sscanf(found, "makespan %lf ms, bound %lf", &makespan, &bound) == 2;
    bench_row row = {.name = name_of(NULL, index),
                     .peer = "reference",
                     .unit = "ms",
                     .ours = told ? makespan : -1,
                     .theirs = told ? bound : -1,
                     .runs = told,
                     .target = {s->times_bound > 0 ? BENCH_BOUND_MAX : BENCH_NONE, s->times_bound},
                     .state = told ? schedulers[s->scheduler] : "the simulation did not run"};
    bench_report(options, "balancing", &row);
}

/* A bare futex wake of another process, in microseconds. */
static double wake_us(int runs)
{
    static const bench_launcher limit = {
        .peer = "reference", .program = "peers/limit", .ranks_variable = "BENCH_RANKS"};
    bench_side side = {.launcher = &limit, .ranks = 2};
    bench_job job = {.kind = BENCH_WAKE, .count = 20};
    double values[1000];
    int count = 0;
    bench_answer answer;
    for (int i = 0; i < runs && bench_side_start(&side) && bench_side_run(&side, &job, &answer);
         i++)
        values[count++] = answer.value / ((double)job.count * 1e3);
    bench_side_stop(&side);
    return bench_median(values, count);
}

static void measure_response(const bench_options *options, int index)
{
    static char output[OUTPUT_BYTES];
    const struct response *r = &responses[index - RESPONSE];
    const char *const argv[] = {"peers/response", r->task, options->quick ? "200" : "1000", NULL};
    double values[1000], value;
    bool timed = r->unit_ns > 1;
    int count = 0;
    for (int i = 0; i < options->runs; i++) {
        const char *found =
            run_program(argv, 2, "response", output) ? strstr(output, r->word) : NULL;
        if (found && sscanf(found + strlen(r->word), "%lf", &value) == 1)
            values[count++] = value / r->unit_ns;
    }
    bench_row row = {.name = r->name,
                     .peer = timed ? "reference" : "none",
                     .unit = r->unit,
                     .ours = bench_median(values, count),
                     .theirs = timed ? wake_us(options->runs) : -1,
                     .runs = count,
                     .target = {r->target > 0 ? BENCH_OURS_MAX : BENCH_NONE, r->target}};
    bench_report(options, "balancing", &row);
}

/* Milliseconds that the application uts says; negative when it is not built or fails. */
static double uts_ms(bool sequential)
{
    static char output[OUTPUT_BYTES];
    const char *const argv[] = {"../apps/uts", sequential ? "--sequential" : NULL, NULL};
    const char *word = sequential ? "sequential: " : "2 ranks: ";
    double ms = -1;
    if (!run_program(argv, sequential ? 1 : 2, "ferry", output))
        return -1;
    const char *found = strstr(output, word);
    return found && sscanf(found + strlen(word), "%lf", &ms) == 1 ? ms : -1;
}

/* A search in tasks of a microsecond on two ranks, against half of what one program takes that
 * makes no tasks. */
static void measure_uts(const bench_options *options)
{
    double ours[1000], theirs[1000];
    int count = 0;
    for (int i = 0; i < options->runs; i++) {
        theirs[count] = uts_ms(true) / 2;
        ours[count] = uts_ms(false);
        count += theirs[count] > 0 && ours[count] > 0;
    }
    bench_row row = {.name = name_of(NULL, UTS),
                     .peer = "sequential/2",
                     .unit = "ms",
                     .ours = bench_median(ours, count),
                     .theirs = bench_median(theirs, count),
                     .runs = count,
                     .target = {BENCH_RATIO_MAX, 1 / 0.9},
                     .state = count ? NULL : "the application uts is not here: it needs Nettle"};
    bench_report(options, "balancing", &row);
}

int main(int argc, char **argv)
{
    const bench_about about = {"balancing", name_of, NULL, RUNS_LONG, RUNS_QUICK};
    bench_options options;
    int status = bench_options_read(argc, argv, &about, &options);
    if (status >= 0)
        return status;
    bench_report_head(&options, "balancing", "medians");
    for (int i = 0; i < CASES; i++) {
        if (!bench_wanted(&options, name_of(NULL, i)))
            continue;
        if (i >= SIMULATION)
            measure_simulated(&options, i);
        else if (i >= RESPONSE)
            measure_response(&options, i);
        else if (i == UTS)
            measure_uts(&options);
        else
            measure_synthetic(&options, i);
    }
    return 0;
}
