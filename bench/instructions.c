/* Instructions per operation, counted by callgrind: no other program on the machine changes them.
 * The benchmark compares each figure with its budget, which instructions.budgets holds beside the
 * goal. bench/peers/instructions.c says what each case is. */
#include "common/report.h"
#include "common/side.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES_MAX = 32, NAME_BYTES = 32, PATH_BYTES = 512 };

typedef struct figure {
    char name[NAME_BYTES];
    double budget, goal, counted; /* 0: there is no goal; negative: it was not counted */
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
        *f = (figure){.counted = -1};
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

/* Runs the side under callgrind, which writes into `folder`. False: it failed, or is not here. */
static bool run_callgrind(const bench_options *options, const figures *all, const char *folder)
{
    char out[PATH_BYTES], side[PATH_BYTES];
    const char *argv[CASES_MAX + 8] = {"valgrind", "--tool=callgrind", "--instr-atstart=no",
                                       "--collect-atstart=no"};
    int n = 4;
    snprintf(out, sizeof out, "--callgrind-out-file=%s/out", folder);
    bench_path("peers/instructions", side, sizeof side);
    argv[n++] = out;
    argv[n++] = side;
    argv[n++] = "nothing";
    for (int i = 0; i < all->count; i++)
        if (bench_wanted(options, all->list[i].name))
            argv[n++] = all->list[i].name;
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

/* One file of callgrind's, which is about one case. */
static void read_dump(figures *all, const char *path)
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
            all->list[i].counted = (total - begun * all->empty) / operations;
}

/* In order, as callgrind numbers them: that of "nothing" is the first. Removes them. */
static void read_dumps(figures *all, const char *folder)
{
    char path[PATH_BYTES];
    for (int i = 1; i <= CASES_MAX; i++) {
        snprintf(path, sizeof path, "%s/out.%d", folder, i);
        if (access(path, R_OK) != 0)
            break;
        read_dump(all, path);
        (void)unlink(path);
    }
    snprintf(path, sizeof path, "%s/out", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

static void report(const bench_options *options, const figure *f)
{
    bool here = f->counted >= 0;
    bench_row row = {.name = f->name,
                     .peer = "budget",
                     .unit = "instr",
                     .ours = f->counted,
                     .theirs = f->budget,
                     .runs = here,
                     .state = here ? "any" : "valgrind did not run"};
    if (f->goal > 0)
        row.target = (bench_target){BENCH_OURS_MAX, f->goal};
    bench_report(options, "instructions", &row);
}

int main(int argc, char **argv)
{
    static figures all;
    bench_options options;
    char folder[] = "/tmp/ferry-instructions-XXXXXX";
    if (!read_budgets(&all)) {
        fprintf(stderr, "instructions: no budgets in %s\n", BENCH_BUDGETS);
        return 1;
    }
    const bench_about about = {"instructions", name_of, &all, 1, 1};
    int status = bench_options_read(argc, argv, &about, &options);
    if (status >= 0)
        return status;
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    (void)run_callgrind(&options, &all, folder);
    read_dumps(&all, folder);
    bench_report_head(&options, "instructions");
    for (int i = 0; i < all.count; i++)
        if (bench_wanted(&options, all.list[i].name))
            report(&options, &all.list[i]);
    return 0;
}
