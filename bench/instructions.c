/* Instructions per operation, counted by callgrind: no other program on the machine changes them.
 * The benchmark compares each figure with its budget, which instructions.budgets holds beside the
 * goal, and with what a peer executes for the same. bench/peers/instructions.c says what each case
 * is, instructions_mpi.c and instructions_ucx.c what a peer does instead. --quick leaves the peers
 * out. */
#include "common/report.h"
#include "common/side.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES_MAX = 32, NAME_BYTES = 32, PATH_BYTES = 512, WORDS_MAX = 8 };

/* A program that counts, and how it is started. */
typedef struct counter {
    const char *name, *program;
    const char *prefix[WORDS_MAX];
} counter;

static const counter counters[] = {
    {"ferry", "peers/instructions", {NULL}},
    {"ucx", "peers/instructions_ucx", {NULL}},
    {"openmpi",
     "peers/instructions_openmpi",
     {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"}},
    {"mpich", "peers/instructions_mpich", {"mpirun.mpich", "-n", "2"}},
};

enum { OURS, COUNTERS = sizeof counters / sizeof *counters };

typedef struct figure {
    char name[NAME_BYTES];
    double budget, goal;      /* 0: there is no goal */
    double counted[COUNTERS]; /* negative: it was not */
} figure;

typedef struct figures {
    figure list[CASES_MAX];
    int count;
    double empty; /* what beginning and ending to count adds */
} figures;

static bool read_budgets(figures *all)
{
    char line[256];
    FILE *file = fopen(BENCH_BUDGETS, "re");
    if (file == NULL)
        return false;
    while (all->count < CASES_MAX && fgets(line, sizeof line, file) != NULL) {
        figure *f = &all->list[all->count];
        *f = (figure){0};
        for (int i = 0; i < COUNTERS; i++)
            f->counted[i] = -1;
        if (line[0] != '#' && sscanf(line, "%31s %lf %lf", f->name, &f->budget, &f->goal) >= 2)
            all->count++;
    }
    fclose(file);
    return all->count > 0;
}

static const char *name_of(const void *context, int index)
{
    const figures *all = context;
    return index < all->count ? all->list[index].name : NULL;
}

/* Runs a side under callgrind, which writes into `folder`. False: it failed, or is not here. */
static bool run_callgrind(const bench_options *options, const figures *all, const counter *c,
                          const char *folder)
{
    char out[PATH_BYTES], side[PATH_BYTES];
    const char *argv[WORDS_MAX + CASES_MAX + 8];
    int n = 0;
    snprintf(out, sizeof out, "--callgrind-out-file=%s/out.%%p", folder);
    bench_path(c->program, side, sizeof side);
    while (n < WORDS_MAX && c->prefix[n] != NULL) {
        argv[n] = c->prefix[n];
        n++;
    }
    argv[n++] = "valgrind";
    argv[n++] = "--tool=callgrind";
    argv[n++] = "--instr-atstart=no";
    argv[n++] = "--collect-atstart=no";
    argv[n++] = out;
    argv[n++] = side;
    argv[n++] = "nothing";
    for (int i = 0; i < all->count; i++)
        if (bench_wanted(options, all->list[i].name))
            argv[n++] = all->list[i].name;
    argv[n] = NULL;
    pid_t child = fork();
    if (child == 0) {
        int log = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (log >= 0)
            (void)dup2(log, STDERR_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* One file of callgrind's, which is about one case of a counter. */
static void read_dump(figures *all, int which, const char *path)
{
    char line[256], name[NAME_BYTES] = "";
    double operations = 0, begun = 0, total = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "desc: Trigger: Client Request: %31s %lf %lf", name, &operations,
                     &begun);
        (void)sscanf(line, "totals: %lf", &total);
    }
    if (file != NULL)
        fclose(file);
    if (operations == 0)
        return;
    if (strcmp(name, "nothing") == 0)
        all->empty = total / begun;
    for (int i = 0; i < all->count; i++)
        if (strcmp(name, all->list[i].name) == 0)
            all->list[i].counted[which] = (total - begun * all->empty) / operations;
}

/* Reads and removes what callgrind has written. It numbers the cases of a process, in the order in
 * which the glob has them: that of "nothing" is the first. */
static void read_dumps(figures *all, int which, const char *folder)
{
    char pattern[PATH_BYTES];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/out.*", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        read_dump(all, which, found.gl_pathv[i]);
        (void)unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

static void count_all(const bench_options *options, figures *all)
{
    char folder[] = "/tmp/ferry-instructions-XXXXXX";
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return;
    }
    bool peers = !options->quick && !options->smoke;
    for (int i = 0; i < (peers ? COUNTERS : OURS + 1); i++) {
        (void)run_callgrind(options, all, &counters[i], folder);
        read_dumps(all, i, folder);
    }
    (void)rmdir(folder);
}

static void report(const bench_options *options, const figure *f)
{
    bool here = f->counted[OURS] >= 0;
    bench_row row = {.name = f->name,
                     .peer = "budget",
                     .unit = "instr",
                     .ours = f->counted[OURS],
                     .theirs = f->budget,
                     .runs = here,
                     .state = here ? "any" : "valgrind did not run"};
    if (f->goal > 0)
        row.target = (bench_target){BENCH_OURS_MAX, f->goal};
    bench_report(options, "instructions", &row);
    for (int i = OURS + 1; i < COUNTERS; i++) {
        if (f->counted[i] < 0)
            continue;
        row.peer = counters[i].name;
        row.theirs = f->counted[i];
        row.target = (bench_target){BENCH_RATIO_MAX, 1};
        bench_report(options, "instructions", &row);
    }
}

int main(int argc, char **argv)
{
    static figures all;
    bench_options options;
    if (!read_budgets(&all)) {
        fprintf(stderr, "instructions: no budgets in %s\n", BENCH_BUDGETS);
        return 1;
    }
    const bench_about about = {"instructions", name_of, &all, 1, 1};
    int status = bench_options_read(argc, argv, &about, &options);
    if (status >= 0)
        return status;
    count_all(&options, &all);
    bench_report_head(&options, "instructions", "medians");
    for (int i = 0; i < all.count; i++)
        if (bench_wanted(&options, all.list[i].name))
            report(&options, &all.list[i]);
    return 0;
}
