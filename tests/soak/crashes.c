/* Goal: no success is told after a rank was lost. Method: runs tests/programs/crashing.c over and
 * over, as processes; one of its ranks ends in a way and at a place drawn at random, or is killed
 * from outside at a random time. A result of a round must come after the parts of all ranks; the
 * exit status must not be 0 unless all results were written; the job must end in time.
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

enum { ROUNDS = 4, MS = 1000 * 1000, LIMIT_MS = 60000, OUTPUT_BYTES = 1 << 18 };

static const char *const hows[] = {"segv",  "abort",   "exit3",   "kill",  "_exit0",
                                   "exit0", "return0", "return3", "outer", "outer"};
static const char *const wheres[] = {"main",   "handler", "task",  "barrier", "allreduce",
                                     "gather", "phase",   "close", "quiesce", "broadcast"};
enum { HOWS = sizeof(hows) / sizeof(hows[0]), WHERES = sizeof(wheres) / sizeof(wheres[0]) };

typedef struct tally {
    int ended, undisturbed, results, wrong, zero, late;
    uint64_t most_ns;
} tally;

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
static void judge(tally *t, int ranks, int status, bool dies)
{
    int entered[ROUNDS] = {0}, results = 0, round, rank;
    for (char *save = NULL, *line = strtok_r(output, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "enter %d %d", &round, &rank) == 2 && round >= 0 && round < ROUNDS) {
            entered[round]++;
        } else if (sscanf(line, "result %d %d", &round, &rank) == 2 && round >= 0 &&
                   round < ROUNDS) {
            results++;
            t->wrong += entered[round] != ranks;
        }
        t->wrong += strstr(line, "WRONG") != NULL;
    }
    bool all = results == ROUNDS * ranks;
    t->results += results;
    t->undisturbed += status == 0 && all && !dies;
    t->ended += status != 0;
    t->zero += status == 0 && (dies || !all);
}

static void run(tally *t, const char *program, uint64_t seed, int number)
{
    fy_random random;
    fy_random_init(&random, seed, (uint64_t)number);
    int ranks = 2 + (int)draw(&random, 5), fds[2];
    const char *how = hows[draw(&random, HOWS)], *where = wheres[draw(&random, WHERES)];
    bool outer = strcmp(how, "outer") == 0;
    char count[16], crashing[16];
    snprintf(count, sizeof(count), "%d", ranks);
    snprintf(crashing, sizeof(crashing), "%d", (int)draw(&random, (uint64_t)ranks));
    if (pipe(fds) != 0)
        exit(2);
    uint64_t start_ns = fy_clock_now_ns();
    pid_t launcher = fork();
    if (launcher == 0) {
        setenv("FERRY_RANKS", count, 1);
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        execl(program, program, outer ? "none" : how, where, crashing, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    if (outer) {
        fy_clock_sleep_until(start_ns + draw(&random, 40 * MS));
        pid_t rank = choose_rank(&random, launcher);
        if (rank != 0)
            (void)kill(rank, SIGKILL);
    }
    size_t length = 0;
    for (ssize_t got; length < OUTPUT_BYTES - 1 &&
                      (got = read(fds[0], output + length, OUTPUT_BYTES - 1 - length)) > 0;)
        length += (size_t)got;
    output[length] = '\0';
    close(fds[0]);
    int status;
    if (waitpid(launcher, &status, 0) != launcher)
        exit(2);
    uint64_t took_ns = fy_clock_now_ns() - start_ns;
    t->most_ns = took_ns > t->most_ns ? took_ns : t->most_ns;
    t->late += took_ns > (uint64_t)LIMIT_MS * MS;
    tally before = *t;
    /* A task may run on another rank, and a return has its place in the program. */
    bool dies = !outer && how[0] != 'r' && strcmp(where, "task") != 0;
    judge(t, ranks, status, dies);
    if (t->wrong != before.wrong || t->zero != before.zero)
        fprintf(stderr, "crashes: run %d of seed %" PRIu64 ": %s in %s, rank %s of %d\n", number,
                seed, how, where, crashing, ranks);
}

int main(int argc, char **argv)
{
    tally t = {0};
    int runs = argc > 2 ? atoi(argv[2]) : 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (runs < 1) {
        fprintf(stderr, "usage: crashes PROGRAM RUNS [SEED]\n");
        return 2;
    }
    for (int i = 0; i < runs; i++)
        run(&t, argv[1], seed, i);
    printf("%d runs: %d ended with an error, %d ended well, since nothing was to die any more; %d "
           "results, %d of them "
           "wrong; %d told of success wrongly; %d took longer than %d s, the longest %.3f s\n",
           runs, t.ended, t.undisturbed, t.results, t.wrong, t.zero, t.late, LIMIT_MS / 1000,
           (double)t.most_ns / 1e9);
    return t.wrong + t.zero + t.late != 0;
}
