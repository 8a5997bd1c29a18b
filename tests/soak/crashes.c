/* Goal: no success is told after a rank was lost. Method: runs tests/programs/crashing.c over and
 * over: as processes, as threads, and simulated with delays. One of its ranks ends in a way and at
 * a place drawn at random, or is killed from outside at a random time. A result of a round must
 * come after the parts of all ranks. The exit status must not be 0 unless all results were written.
 * The job must end within the time that docs/limits.md gives, as far as the machine allows it.
 *
 *     crashes PROGRAM RUNS [SEED] */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

/* The others have 0.5 s and then 2 s to end. A busy machine gives the launcher its turn late. */
enum { ROUNDS = 4, MS = 1000 * 1000, TOLD_MS = 2500, LIMIT_MS = 10000, OUTPUT_BYTES = 1 << 18 };

static const char *const hows[] = {"segv",    "abort",   "exit3", "kill",  "exit0",
                                   "return0", "return3", "outer", "outer", "_exit0"};
static const char *const wheres[] = {"main",   "handler", "task",    "barrier",  "allreduce",
                                     "gather", "scan",    "group",   "alltoall", "started",
                                     "phase",  "close",   "quiesce", "broadcast"};
enum { HOWS = sizeof(hows) / sizeof(hows[0]), WHERES = sizeof(wheres) / sizeof(wheres[0]) };

typedef enum way { PROCESSES, THREADS, SIMULATED, WAYS } way;
static const char *const ways[] = {"processes", "threads", "simulated"};

typedef struct tally {
    int runs, deaths, ended, undisturbed, results, wrong, zero, late;
    long long most_ms; /* from a death to the end of the job */
} tally;

/* A run: what is to happen, and what has. */
typedef struct plan {
    way way;
    int ranks, crashing;
    const char *how, *where;
    long long died_ms;
} plan;

static char output[OUTPUT_BYTES];

static uint64_t draw(fy_random *random, uint64_t bound)
{
    return fy_random_below(random, bound);
}

/* A child of `launcher`, drawn at random; 0: it has none. */
static pid_t choose_rank(fy_random *random, pid_t launcher)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", launcher, launcher);
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[length] = '\0';
    pid_t found[16];
    uint64_t count = 0;
    char *at = text;
    for (long pid; count < 16 && (pid = strtol(at, &at, 10)) > 0;)
        found[count++] = (pid_t)pid;
    return count == 0 ? 0 : found[draw(random, count)];
}

/* Counts results, and those that came before the parts of all. */
static void judge(tally *t, plan *p, int status)
{
    int entered[ROUNDS] = {0}, results = 0, rank;
    long long number;
    bool outer = strcmp(p->how, "outer") == 0;
    for (char *save = NULL, *line = strtok_r(output, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "enter %lld %d", &number, &rank) == 2 && number >= 0 && number < ROUNDS) {
            entered[number]++;
        } else if (sscanf(line, "result %lld %d", &number, &rank) == 2 && number >= 0 &&
                   number < ROUNDS) {
            results++;
            t->wrong += entered[number] != p->ranks;
        } else if (sscanf(line, "dies %lld %d", &number, &rank) == 2) {
            p->died_ms = number;
        }
        t->wrong += strstr(line, "WRONG") != NULL;
    }
    /* A return has its place in the program, and a rank may have ended before it is killed. */
    bool all = results == ROUNDS * p->ranks, dies = !outer && p->died_ms != 0 && p->how[0] != 'r';
    t->results += results;
    t->deaths += p->died_ms != 0;
    t->undisturbed += status == 0 && all && !dies;
    t->ended += status != 0;
    t->zero += status == 0 && (dies || !all);
}

static long long now_ms(void)
{
    return (long long)(fy_clock_now_ns() / MS);
}

static void set_number(const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    setenv(name, text, 1);
}

/* In the child: the variables of the way, then the program. */
static void execute(const plan *p, const char *program, fy_random *random)
{
    char crashing[16], faults[64];
    bool outer = strcmp(p->how, "outer") == 0;
    set_number("FERRY_RANKS", (uint64_t)p->ranks);
    set_number("FERRY_THREADS", p->way == THREADS);
    if (p->way == SIMULATED) {
        setenv("FERRY_PORT", "sim", 1);
        set_number("FERRY_SIM_SEED", draw(random, UINT32_MAX));
        int used = snprintf(faults, sizeof(faults), "delay=0.3:20us");
        if (outer)
            snprintf(faults + used, sizeof(faults) - (size_t)used, ",die=%d@%dus", p->crashing,
                     (int)draw(random, 2000));
        setenv("FERRY_SIM_FAULTS", faults, 1);
    }
    snprintf(crashing, sizeof(crashing), "%d", p->crashing);
    execl(program, program, outer ? "none" : p->how, p->where, crashing, (char *)NULL);
    _exit(127);
}

/* Ranks of one process die one by one in the simulator alone. _exit takes all of them. */
static plan draw_plan(fy_random *random)
{
    plan p = {.way = (way)draw(random, WAYS), .ranks = 2 + (int)draw(random, 5)};
    int choices = p.way == PROCESSES ? HOWS : p.way == SIMULATED ? HOWS - 1 : HOWS - 3;
    p.how = hows[draw(random, (uint64_t)choices)];
    p.where = wheres[draw(random, WHERES)];
    p.crashing = (int)draw(random, (uint64_t)p.ranks);
    return p;
}

static void read_all(int fd)
{
    size_t length = 0;
    for (ssize_t got; length < OUTPUT_BYTES - 1 &&
                      (got = read(fd, output + length, OUTPUT_BYTES - 1 - length)) > 0;)
        length += (size_t)got;
    output[length] = '\0';
}

static void run(tally tallies[WAYS], const char *program, uint64_t seed, int number)
{
    fy_random random;
    fy_random_init(&random, seed, (uint64_t)number);
    plan p = draw_plan(&random);
    tally *t = &tallies[p.way], before = *t;
    int fds[2], status;
    if (pipe(fds) != 0)
        exit(2);
    uint64_t start_ns = fy_clock_now_ns();
    pid_t launcher = fork();
    if (launcher == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        execute(&p, program, &random);
    }
    close(fds[1]);
    if (p.way == PROCESSES && strcmp(p.how, "outer") == 0) {
        fy_clock_sleep_until(start_ns + draw(&random, 40 * MS));
        pid_t rank = choose_rank(&random, launcher);
        if (rank != 0 && kill(rank, SIGKILL) == 0)
            p.died_ms = now_ms();
    }
    read_all(fds[0]);
    close(fds[0]);
    if (waitpid(launcher, &status, 0) != launcher)
        exit(2);
    long long end_ms = now_ms();
    t->runs++;
    judge(t, &p, status);
    long long took_ms = p.died_ms != 0 ? end_ms - p.died_ms : 0;
    t->most_ms = took_ms > t->most_ms ? took_ms : t->most_ms;
    t->late += took_ms > LIMIT_MS;
    if (t->wrong != before.wrong || t->zero != before.zero || t->late != before.late)
        fprintf(stderr, "crashes: run %d of seed %" PRIu64 ", %s: %s in %s, rank %d of %d\n",
                number, seed, ways[p.way], p.how, p.where, p.crashing, p.ranks);
}

static bool print_tally(const char *name, const tally *t)
{
    printf("%s: %d runs, %d deaths or returns seen; %d ended with an error, %d ended well with all "
           "results; %d results, %d of them wrong; %d told of success wrongly; the longest from a "
           "death to the end %.1f s (%.1f s documented), %d above %d s\n",
           name, t->runs, t->deaths, t->ended, t->undisturbed, t->results, t->wrong, t->zero,
           (double)t->most_ms / 1e3, TOLD_MS / 1e3, t->late, LIMIT_MS / 1000);
    return t->wrong + t->zero + t->late == 0;
}

int main(int argc, char **argv)
{
    tally tallies[WAYS] = {0};
    int runs = argc > 2 ? atoi(argv[2]) : 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    bool well = true;
    if (runs < 1) {
        fprintf(stderr, "usage: crashes PROGRAM RUNS [SEED]\n");
        return 2;
    }
    for (int i = 0; i < runs; i++)
        run(tallies, argv[1], seed, i);
    for (int i = 0; i < WAYS; i++)
        well = print_tally(ways[i], &tallies[i]) && well;
    return well ? 0 : 1;
}
