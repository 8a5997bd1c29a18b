/* Balancing: the synthetic benchmark of prema.txt 7.1 with tasks that sleep, for each scheduler
 * against what the best balancer without knowledge of costs could reach; what the runtime takes of
 * a run; and how soon a scheduler answers while a task runs. docs/performance.md says where the
 * bounds come from. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/report.h"
#include "common/side.h"

enum { RUNS_LONG = 5, RUNS_QUICK = 1, OUTPUT_BYTES = 65536, CASES_MAX = 128 };

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
static const char *const schedulers[] = {"ferry", "stealing", "diffusion", "none"};

enum { SCHEDULERS = sizeof schedulers / sizeof *schedulers };

static const char *const response_cases[] = {"response-sleep", "response-spin"};

enum { SYNTHETIC = SETTINGS * SCHEDULERS, SHARE = SYNTHETIC, RESPONSE, CASES = RESPONSE + 2 };

static const char *name_of(int index)
{
    static char name[64];
    const setting *s = &settings[index % SETTINGS];
    int scheduler = index / SETTINGS;
    if (index >= CASES)
        return NULL;
    if (index == SHARE)
        return "share-8-16-25";
    if (index >= RESPONSE)
        return response_cases[index - RESPONSE];
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

/* Makespan in milliseconds, and the runtime's part of all ranks' time in percent. */
static bool run_synthetic(const setting *s, const char *scheduler, double *makespan, double *share)
{
    static char output[OUTPUT_BYTES];
    char tasks[16], heavy[16], light[16];
    snprintf(tasks, sizeof tasks, "%d", s->tasks);
    snprintf(heavy, sizeof heavy, "%d", s->heavy_percent);
    snprintf(light, sizeof light, "%d", s->light_ms);
    const char *const argv[] = {
        "../examples/synthetic", "--tasks", tasks, "--heavy", heavy, "--light", light, NULL};
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
        double part;
        if (sscanf(line, "%*d %*f %*f %*f %*f %lf", &part) == 1)
            runtime += part;
    }
    *share = 100 * runtime / (*makespan * s->ranks);
    return true;
}

static void measure_synthetic(const bench_options *options, int index)
{
    const setting *s = &settings[index % SETTINGS];
    bool share_wanted = index == SHARE;
    const char *scheduler = schedulers[share_wanted ? 0 : index / SETTINGS];
    double values[1000];
    int count = 0;
    if (share_wanted)
        s = &settings[2];
    for (int i = 0; i < options->runs; i++) {
        double makespan, share;
        if (run_synthetic(s, scheduler, &makespan, &share))
            values[count++] = share_wanted ? share : makespan;
    }
    bench_row row = {.name = name_of(index),
                     .peer = share_wanted ? "none" : "limit",
                     .unit = share_wanted ? "%" : "ms",
                     .ours = bench_median(values, count),
                     .theirs = share_wanted ? -1 : bound_ms(s),
                     .runs = count,
                     .state = count ? scheduler : "the example synthetic did not run"};
    if (share_wanted)
        row.target = (bench_target){BENCH_OURS_MAX, 0.02};
    else if (scheduler == schedulers[0])
        row.target = (bench_target){BENCH_BOUND_MAX, 1.02};
    bench_report(options, "balancing", &row);
}

/* A bare futex wake of another process, in microseconds. */
static double wake_us(int runs)
{
    static const bench_launcher limit = {
        .peer = "limit", .program = "peers/limit", .ranks_variable = "BENCH_RANKS"};
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
    const char *const argv[] = {"peers/response", strchr(name_of(index), '-') + 1,
                                options->quick ? "200" : "1000", NULL};
    double values[1000], median;
    int count = 0;
    for (int i = 0; i < options->runs; i++)
        if (run_program(argv, 2, "response", output) &&
            sscanf(output, "median %lf", &median) == 1 && median > 0)
            values[count++] = median / 1e3;
    bench_row row = {.name = name_of(index),
                     .peer = "limit",
                     .unit = "us",
                     .ours = bench_median(values, count),
                     .theirs = wake_us(options->runs),
                     .runs = count,
                     .target = {BENCH_OURS_MAX, 100}};
    bench_report(options, "balancing", &row);
}

int main(int argc, char **argv)
{
    bench_options options;
    int status =
        bench_options_read(argc, argv, "balancing", name_of, RUNS_LONG, RUNS_QUICK, &options);
    if (status >= 0)
        return status;
    bench_report_head(&options, "balancing");
    for (int i = 0; i < CASES; i++) {
        if (!bench_wanted(&options, name_of(i)))
            continue;
        if (i >= RESPONSE)
            measure_response(&options, i);
        else
            measure_synthetic(&options, i);
    }
    return 0;
}
