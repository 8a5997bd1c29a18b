/* A team is a process group of its own, led by its launcher, so that a team that hangs can be ended
 * whole. Its output goes nowhere unless BENCH_VERBOSE is set. */
#include "common/side.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Only a program that hangs takes so long: a busy machine needs some seconds for a run. */
#define START_TIMEOUT_NS 60000000000u
#define RUN_TIMEOUT_NS 60000000000u

void bench_path(const char *name, char *out, size_t size_bytes)
{
    char self[1024];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        slash[1] = 0;
    snprintf(out, size_bytes, "%s%s", self, name);
}

bool bench_side_exists(const bench_launcher *launcher)
{
    char path[1200];
    bench_path(launcher->program, path, sizeof path);
    return access(path, X_OK) == 0;
}

typedef struct command {
    char program[1200], ranks[16];
    const char *argv[BENCH_ARGUMENTS_MAX];
} command;

static void command_make(command *c, const bench_launcher *launcher, int ranks, const char *word)
{
    int n = 0;
    bench_path(launcher->program, c->program, sizeof c->program);
    snprintf(c->ranks, sizeof c->ranks, "%d", ranks);
    if (launcher->prefix[0]) {
        for (int i = 0; i < 12 && launcher->prefix[i]; i++)
            c->argv[n++] = launcher->prefix[i];
        for (int i = 0; ranks > bench_cores() && i < 4 && launcher->oversubscribed[i]; i++)
            c->argv[n++] = launcher->oversubscribed[i];
        c->argv[n++] = "-n";
        c->argv[n++] = c->ranks;
    }
    c->argv[n++] = c->program;
    c->argv[n++] = word;
    c->argv[n] = NULL;
}

/* In the child: environment, output, and a death that follows the benchmark's. */
static void become(const command *c, const bench_launcher *launcher, const char *board,
                   pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    if (launcher->ranks_variable)
        setenv(launcher->ranks_variable, c->ranks, 1);
    for (int i = 0; i < 6 && launcher->environment[i]; i++)
        putenv((char *)(uintptr_t)launcher->environment[i]);
    if (board)
        setenv(BENCH_BOARD_VARIABLE, board, 1);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    if (!getenv("BENCH_VERBOSE")) {
        dup2(null, 1);
        dup2(null, 2);
    }
    execvp(c->argv[0], (char *const *)(uintptr_t)c->argv);
    _exit(127);
}

static pid_t spawn(const bench_launcher *launcher, int ranks, const char *word, const char *board)
{
    command c = {0};
    command_make(&c, launcher, ranks, word);
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(&c, launcher, board, parent);
    return pid;
}

static bool fail(bench_side *side, const char *reason)
{
    snprintf(side->reason, sizeof side->reason, "%s", reason);
    side->failed = true;
    bench_side_stop(side);
    return false;
}

/* Sleeps until `*word` is no longer `value`. False when the team dies or time is over. */
static bool await(bench_side *side, _Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    uint64_t end = bench_now() + timeout_ns;
    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        bench_sleep_on(word, value, 200000000);
        if (waitpid(side->pid, NULL, WNOHANG) == side->pid) {
            side->pid = 0;
            return fail(side, "its program ended (BENCH_VERBOSE=1 shows why)");
        }
        if (bench_now() > end)
            return fail(side, "no answer in time");
    }
    return true;
}

bool bench_side_start(bench_side *side)
{
    char path[BENCH_VARIABLE_BYTES];
    if (side->failed)
        return false;
    if (side->pid)
        return true;
    if (!bench_side_exists(side->launcher))
        return fail(side, "not built: its library was not found");
    side->board = bench_board_create(side->ranks, path, &side->board_fd);
    if (!side->board)
        return fail(side, strerror(errno));
    side->turn = 0;
    side->pid = spawn(side->launcher, side->ranks, "--serve", path);
    if (side->pid < 0) {
        side->pid = 0;
        return fail(side, strerror(errno));
    }
    return await(side, &side->board->ready, 0, START_TIMEOUT_NS);
}

bool bench_side_can(const bench_side *side, bench_kind kind)
{
    return side->board->kinds[kind];
}

bool bench_side_run(bench_side *side, const bench_job *job, bench_answer *answer)
{
    bench_board *board = side->board;
    board->job = *job;
    atomic_store_explicit(&board->turn, ++side->turn, memory_order_release);
    bench_wake_all(&board->turn);
    if (!await(side, &board->ended, side->turn - 1, RUN_TIMEOUT_NS))
        return false;
    *answer = board->answer;
    return true;
}

/* Waits for the end of a process, with force after `patience_ns`. */
static void reap(pid_t pid, uint64_t patience_ns)
{
    uint64_t end = bench_now() + patience_ns;
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (bench_now() > end) {
            kill(-pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return;
        }
        usleep(2000);
    }
}

void bench_side_stop(bench_side *side)
{
    if (side->pid) {
        side->board->job.kind = BENCH_KINDS;
        atomic_store_explicit(&side->board->turn, ++side->turn, memory_order_release);
        bench_wake_all(&side->board->turn);
        reap(side->pid, side->failed ? 500000000 : 10000000000u);
    }
    if (side->board)
        bench_board_destroy(side->board, side->board_fd);
    side->pid = 0;
    side->board = NULL;
}

double bench_side_start_ms(const bench_launcher *launcher, int ranks)
{
    int status = -1;
    uint64_t start = bench_now();
    pid_t pid = spawn(launcher, ranks, "--empty", NULL);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return -1;
    return (double)(bench_now() - start) * 1e-6;
}
