/* Goal: ranks and launchers that are killed at any time hang nobody and leave nothing behind.
 * Programs that go on lose nothing, and are told soon. Method: starts programs over and over and
 * kills one or two of their ranks (now and then the launcher) at random times within the run. It
 * looks at how each ends, at what its survivors say, and for processes that are left: orphans
 * become children of this process. Prints how long after a kill survivors had the event.
 *
 *      soak DIRECTORY RUNS [SEED [PROGRAM]]
 *
 * DIRECTORY is the build directory. A run that fails ends the soak, with what repeats it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

enum { MS = 1000 * 1000, LIMIT_MS = 120000, REAP_MS = 20000, KILLS_MAX = 2, RANKS_MAX = 16 };
enum { OUTPUT_BYTES = 256 * 1024, TOLD_MAX = 1 << 16 };

typedef struct program {
    const char *name;
    const char *path; /* in the build directory */
    const char *arguments[6];
    int ranks_max; /* with those that join; 0: none do */
} program;

static const program programs[] = {
    {"start", "examples/hello", {NULL}, 0},
    {"close", "tests/survivors", {"close"}, 0},
    {"ping", "tests/survivors", {"ping"}, 0},
    {"stealing", "apps/stealing", {"--units", "200", "--unit-us", "100", "--told"}, 0},
    {"stealing-driven", "apps/stealing", {"--units", "200", "--told", "--style", "driven"}, 0},
    {"stealing-passing", "apps/stealing", {"--units", "200", "--told", "--style", "passing"}, 0},
    {"elastic", "apps/elastic", {"--told", "--orphan"}, 16},
    {"orders", "apps/orders", {NULL}, 0},
    {"mesh", "apps/mesh", {"--input", SOURCE "/apps/data/jutland.poly"}, 0},
};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

/* One kill of a run. */
typedef struct blow {
    uint64_t at_ns;   /* after the start */
    uint64_t done_ns; /* on the clock; 0: the run was over before */
    pid_t process;
    bool launcher;
} blow;

typedef struct run {
    const program *what;
    int number, ranks;
    pid_t launcher;
    int output_fd;
    char output[OUTPUT_BYTES];
    size_t length;
    uint64_t start_ns, end_ns;
    int status;
    bool ended;
    blow blows[KILLS_MAX];
    int blow_count;
} run;

typedef struct tally {
    int runs, hit, went_on, ended, launchers;
    uint64_t told_ns[TOLD_MAX];
    int told_count;
} tally;

typedef struct soak {
    const char *directory;
    uint64_t seed;
    fy_random random;
    uint64_t length_ns[PROGRAMS]; /* of a run that nobody disturbs */
    tally tallies[PROGRAMS];
} soak;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "soak: %s: %s\n", what, strerror(errno));
    exit(2);
}

static _Noreturn void run_program(const soak *s, const program *what, int ranks, int fd)
{
    char path[4096], count[16];
    char *argv[8] = {path};
    snprintf(path, sizeof(path), "%s/%s", s->directory, what->path);
    snprintf(count, sizeof(count), "%d", ranks);
    for (int i = 0; i < 6 && what->arguments[i] != NULL; i++)
        argv[i + 1] = (char *)(uintptr_t)what->arguments[i];
    setenv("FERRY_RANKS", count, 1);
    snprintf(count, sizeof(count), "%d", what->ranks_max);
    if (what->ranks_max != 0)
        setenv("FERRY_RANKS_MAX", count, 1);
    /* Memory that a killed rank had is no leak. */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(path, argv);
    die(path);
}

static void start(const soak *s, run *r)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        die("pipe");
    r->start_ns = fy_clock_now_ns();
    r->launcher = fork();
    if (r->launcher < 0)
        die("fork");
    if (r->launcher == 0)
        run_program(s, r->what, r->ranks, fds[1]);
    close(fds[1]);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    r->output_fd = fds[0];
}

static void take_output(run *r)
{
    ssize_t count;
    while ((count = read(r->output_fd, r->output + r->length, OUTPUT_BYTES - 1 - r->length)) > 0)
        r->length += (size_t)count;
    r->output[r->length] = '\0';
}

/* A rank of the run, drawn at random; 0 when there is none. */
static pid_t choose_rank(soak *s, const run *r)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", r->launcher, r->launcher);
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[length] = '\0';
    pid_t found[RANKS_MAX];
    uint64_t count = 0;
    char *at = text;
    for (long pid; count < RANKS_MAX && (pid = strtol(at, &at, 10)) > 0;)
        found[count++] = (pid_t)pid;
    return count == 0 ? 0 : found[fy_random_below(&s->random, count)];
}

static void strike(soak *s, run *r, blow *b)
{
    b->process = b->launcher ? r->launcher : choose_rank(s, r);
    if (b->process == 0)
        return;
    uint64_t now = fy_clock_now_ns();
    if (kill(b->process, SIGKILL) == 0)
        b->done_ns = now;
}

/* Lets the run go on until `until_ns`, or its end. */
static void watch(run *r, uint64_t until_ns)
{
    while (!r->ended) {
        uint64_t now = fy_clock_now_ns();
        if (now >= until_ns)
            return;
        uint64_t left_ms = (until_ns - now) / MS;
        if (left_ms == 0) {
            fy_clock_sleep_until(until_ns);
        } else {
            struct pollfd p = {.fd = r->output_fd, .events = POLLIN};
            poll(&p, 1, (int)(left_ms < 10 ? left_ms : 10));
        }
        take_output(r);
        if (waitpid(r->launcher, &r->status, WNOHANG) == r->launcher) {
            r->ended = true;
            r->end_ns = fy_clock_now_ns();
            take_output(r);
        }
    }
}

/* Waits for orphans to end; whether all have in time. */
static bool all_ended(void)
{
    uint64_t limit_ns = fy_clock_now_ns() + (uint64_t)REAP_MS * MS;
    while (waitpid(-1, NULL, WNOHANG) >= 0 || errno == EINTR) {
        if (fy_clock_now_ns() > limit_ns)
            return false;
        fy_clock_sleep_until(fy_clock_now_ns() + MS);
    }
    return true;
}

static _Noreturn void fail(const soak *s, const run *r, const char *why)
{
    fprintf(stderr, "soak: run %d, %s on %d ranks: %s\n", r->number, r->what->name, r->ranks, why);
    for (int i = 0; i < r->blow_count; i++)
        fprintf(stderr, "    killed %s %d after %.3f ms\n",
                r->blows[i].launcher ? "launcher" : "rank's process", r->blows[i].process,
                r->blows[i].done_ns == 0 ? -1. : (double)(r->blows[i].done_ns - r->start_ns) / 1e6);
    fprintf(stderr, "%s\n    (seed %" PRIu64 ")\n", r->output, s->seed);
    exit(1);
}

static uint64_t time_of_death(const run *r, int place)
{
    return place < r->blow_count ? r->blows[place].done_ns : 0;
}

/* Reads the lines "told RANK DEAD NS"; the process of a dead rank stands in the launcher's line. */
static void note_times(const run *r, tally *t)
{
    for (const char *at = r->output; (at = strstr(at, "told ")) != NULL; at++) {
        int rank, dead;
        uint64_t ns;
        if (sscanf(at, "told %d %d %" SCNu64, &rank, &dead, &ns) != 3)
            continue;
        char who[64];
        for (int i = 0; i < r->blow_count; i++) {
            snprintf(who, sizeof(who), "rank %d (process %d)", dead, r->blows[i].process);
            uint64_t killed_ns = time_of_death(r, i);
            if (killed_ns != 0 && ns > killed_ns && t->told_count < TOLD_MAX &&
                strstr(r->output, who) != NULL)
                t->told_ns[t->told_count++] = ns - killed_ns;
        }
    }
}

static void judge(soak *s, const run *r, tally *t)
{
    bool hit = false, launcher = false;
    for (int i = 0; i < r->blow_count; i++) {
        hit = hit || r->blows[i].done_ns != 0;
        launcher = launcher || (r->blows[i].launcher && r->blows[i].done_ns != 0);
    }
    bool well = WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0;
    t->runs++;
    t->hit += hit;
    t->launchers += launcher;
    if (!all_ended())
        fail(s, r, "processes are left");
    if (launcher)
        return;
    bool said = strstr(r->output, "was killed by SIGKILL") != NULL;
    bool went_on = strstr(r->output, "the others go on") != NULL;
    if (!well &&
        (!hit || !said || !WIFEXITED(r->status) || WEXITSTATUS(r->status) != 128 + SIGKILL))
        fail(s, r, "did not end well");
    if (strstr(r->output, "lost ") != NULL && strstr(r->output, "lost 0, done twice 0") == NULL)
        fail(s, r, "units are lost or done twice");
    t->went_on += went_on && well;
    t->ended += !well;
    note_times(r, t);
}

static void plan(soak *s, run *r, uint64_t length_ns)
{
    bool launcher = fy_random_below(&s->random, 10) == 0;
    r->blow_count = launcher ? 1 : 1 + (int)fy_random_below(&s->random, 2);
    for (int i = 0; i < r->blow_count; i++)
        r->blows[i] = (blow){.at_ns = fy_random_below(&s->random, length_ns), .launcher = launcher};
    if (r->blow_count == 2 && r->blows[0].at_ns > r->blows[1].at_ns) {
        blow first = r->blows[0];
        r->blows[0] = r->blows[1];
        r->blows[1] = first;
    }
}

static void do_run(soak *s, int which, int number, bool kills)
{
    static run r;
    r = (run){.what = &programs[which], .number = number, .ranks = 4};
    fy_random_init(&s->random, s->seed, (uint64_t)number);
    if (kills)
        plan(s, &r, s->length_ns[which]);
    start(s, &r);
    for (int i = 0; i < r.blow_count; i++) {
        watch(&r, r.start_ns + r.blows[i].at_ns);
        if (!r.ended)
            strike(s, &r, &r.blows[i]);
    }
    watch(&r, r.start_ns + (uint64_t)LIMIT_MS * MS);
    if (!r.ended) {
        fprintf(stderr, "soak: launcher %d is left as it is, for a debugger\n", r.launcher);
        fail(s, &r, "hangs");
    }
    close(r.output_fd);
    if (kills)
        judge(s, &r, &s->tallies[which]);
    else if (!WIFEXITED(r.status) || WEXITSTATUS(r.status) != 0)
        fail(s, &r, "fails undisturbed");
    else
        s->length_ns[which] = r.end_ns - r.start_ns;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void report(soak *s)
{
    printf("%-17s %5s %5s %7s %6s %9s | event after the kill, ms: %6s %7s %7s %7s\n", "program",
           "runs", "hit", "went on", "ended", "launchers", "count", "50 %", "99 %", "most");
    for (int i = 0; i < PROGRAMS; i++) {
        tally *t = &s->tallies[i];
        if (t->runs == 0)
            continue;
        printf("%-17s %5d %5d %7d %6d %9d |", programs[i].name, t->runs, t->hit, t->went_on,
               t->ended, t->launchers);
        int n = t->told_count;
        qsort(t->told_ns, (size_t)n, sizeof(t->told_ns[0]), by_size);
        if (n > 0)
            printf("%26s %6d %7.3f %7.3f %7.3f", "", n, (double)t->told_ns[n / 2] / 1e6,
                   (double)t->told_ns[(int)((int64_t)n * 99 / 100)] / 1e6,
                   (double)t->told_ns[n - 1] / 1e6);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static soak s;
    char *end = argc > 2 ? argv[2] : NULL;
    long runs = argc > 2 ? strtol(argv[2], &end, 10) : 0;
    if (argc < 3 || argc > 5 || runs < 1 || *end != '\0') {
        fprintf(stderr, "usage: soak DIRECTORY RUNS [SEED [PROGRAM]]\n");
        return 2;
    }
    s.directory = argv[1];
    s.seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        die("subreaper");
    int chosen[PROGRAMS], count = 0;
    for (int i = 0; i < PROGRAMS; i++)
        if (argc < 5 || strcmp(argv[4], programs[i].name) == 0)
            chosen[count++] = i;
    if (count == 0) {
        fprintf(stderr, "soak: \"%s\" is no program of it\n", argv[4]);
        return 2;
    }
    for (int i = 0; i < count; i++)
        do_run(&s, chosen[i], 0, false);
    for (int i = 0; i < runs; i++)
        do_run(&s, chosen[i % count], i + 1, true);
    report(&s);
    return 0;
}
