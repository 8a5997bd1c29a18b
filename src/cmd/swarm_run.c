#include "cmd/swarm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "port/sim/sim.h"

static const char *const files[] = {"out", "err", "tape", "plan"};

void swarm_path(const swarm *s, const char *name, char *out)
{
    snprintf(out, 96, "%s/%s", s->folder, name);
}

bool swarm_open(swarm *s)
{
    const char *root = getenv("TMPDIR");
    if (root == NULL || strlen(root) > 32)
        root = "/tmp";
    snprintf(s->folder, sizeof(s->folder), "%s/ferry-swarm-XXXXXX", root);
    if (mkdtemp(s->folder) != NULL)
        return true;
    perror("ferry swarm: mkdtemp");
    return false;
}

void swarm_close(swarm *s)
{
    char path[96];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        swarm_path(s, files[i], path);
        unlink(path);
    }
    rmdir(s->folder);
}

char *swarm_read(const swarm *s, const char *name)
{
    char path[96];
    swarm_path(s, name, path);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    char *text = NULL;
    size_t size = 0;
    ssize_t length = getdelim(&text, &size, '\0', file);
    fclose(file);
    if (length < 0) {
        free(text);
        return strdup("");
    }
    return text;
}

static bool redirect(const swarm *s, const char *name, int fd)
{
    char path[96];
    swarm_path(s, name, path);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return file >= 0 && dup2(file, fd) >= 0;
}

static _Noreturn void run_child(const swarm *s, uint64_t seed, const char *plan)
{
    char number[32], tape[96];
    snprintf(number, sizeof(number), "%llu", (unsigned long long)seed);
    swarm_path(s, "tape", tape);
    bool good = setenv("FERRY_PORT", "sim", 1) == 0 && setenv("FERRY_SIM_SEED", number, 1) == 0 &&
                setenv("FERRY_SEED", number, 1) == 0 && setenv("FERRY_SIM_FAULTS", plan, 1) == 0 &&
                setenv("FERRY_SIM_TAPE", tape, 1) == 0 && setenv("FERRY_SIM_REPORT", "1", 1) == 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (good && redirect(s, "out", STDOUT_FILENO) && redirect(s, "err", STDERR_FILENO))
        execvp(s->argv[0], s->argv);
    fprintf(stderr, "ferry swarm: cannot run %s: %s\n", s->argv[0], strerror(errno));
    _exit(SWARM_UNUSABLE);
}

static double seconds(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Waits for the child until it has had its processor time, so that a busy machine fails no run; one
 * that sleeps has SLEEP times as long. False: it had to be killed. */
static bool wait_for(pid_t child, double limit_s)
{
    enum { SLEEP = 20 };
    clockid_t used;
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    if (fd < 0)
        return true; /* without the call there is no limit */
    struct pollfd one = {.fd = fd, .events = POLLIN};
    double end_s = seconds(CLOCK_MONOTONIC) + SLEEP * limit_s, left_s = limit_s;
    int ready = 0;
    bool known = clock_getcpuclockid(child, &used) == 0;
    while (ready <= 0 && left_s > 0 && seconds(CLOCK_MONOTONIC) < end_s) {
        ready = poll(&one, 1, (int)(left_s * 1000) + 1);
        left_s = known ? limit_s - seconds(used) : 0;
    }
    close(fd);
    if (ready <= 0)
        kill(child, SIGKILL);
    return ready > 0;
}

static void find_hash(const swarm *s, char *hash)
{
    char *err = swarm_read(s, "err");
    const char *at = err == NULL ? NULL : strstr(err, "sim: hash ");
    hash[0] = '\0';
    if (at != NULL)
        snprintf(hash, 17, "%.16s", at + strlen("sim: hash "));
    free(err);
}

/* Whether a line that is not the simulator's speaks of memory. */
static bool speaks_of_memory(char *text)
{
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "sim: ", 5) != 0 && strstr(line, " sim: ") == NULL &&
            (strstr(line, "memory") != NULL || strstr(line, "ENOMEM") != NULL))
            return true;
    return false;
}

/* The simulator's own statuses, and signals, are above those of programs. */
static bool is_excused(const swarm *s, int status)
{
    if (!s->starves || status == 0 || status >= FY_SIM_STUCK)
        return false;
    char *tape = swarm_read(s, "tape"), *err = swarm_read(s, "err");
    bool is =
        tape != NULL && err != NULL && strstr(tape, "malloc") != NULL && speaks_of_memory(err);
    free(tape);
    free(err);
    return is;
}

bool swarm_run(swarm *s, uint64_t seed, const char *plan, swarm_end *end)
{
    s->runs++;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(s, seed, plan);
    if (child < 0) {
        perror("ferry swarm: fork");
        return false;
    }
    bool in_time = wait_for(child, s->limit_s);
    int status;
    if (waitpid(child, &status, 0) != child) {
        perror("ferry swarm: waitpid");
        return false;
    }
    end->status = !in_time            ? SWARM_LATE
                  : WIFEXITED(status) ? WEXITSTATUS(status)
                                      : 128 + WTERMSIG(status);
    end->excused = is_excused(s, end->status);
    find_hash(s, end->hash);
    return true;
}
