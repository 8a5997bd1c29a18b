#include "cmd/swarm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "launch/launch.h"
#include "port/sim/sim.h"

void swarm_path(const swarm *s, swarm_file file, char *out)
{
    snprintf(out, SWARM_PATH_BYTES, "/proc/self/fd/%d", s->files[file]);
}

bool swarm_open(swarm *s)
{
    s->said_s = swarm_now_s();
    for (int i = 0; i < SWARM_FILES; i++) {
        s->files[i] = memfd_create("ferry-swarm", 0);
        if (s->files[i] < 0) {
            perror("ferry swarm: memfd_create");
            return false;
        }
    }
    return true;
}

void swarm_close(swarm *s)
{
    for (int i = 0; i < SWARM_FILES; i++)
        close(s->files[i]);
}

char *swarm_read(const swarm *s, swarm_file name)
{
    char path[SWARM_PATH_BYTES];
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

static bool redirect(const swarm *s, swarm_file name, int fd)
{
    char path[SWARM_PATH_BYTES];
    swarm_path(s, name, path);
    int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    return file >= 0 && dup2(file, fd) >= 0;
}

static _Noreturn void swarm_run_child(const swarm *s, uint64_t seed, const char *plan)
{
    char number[32], tape[SWARM_PATH_BYTES];
    snprintf(number, sizeof(number), "%llu", (unsigned long long)seed);
    swarm_path(s, SWARM_TAPE, tape);
    bool good = setenv("FERRY_PORT", "sim", 1) == 0 && setenv("FERRY_SIM_SEED", number, 1) == 0 &&
                setenv("FERRY_SEED", number, 1) == 0 && setenv("FERRY_SIM_FAULTS", plan, 1) == 0 &&
                setenv("FERRY_SIM_TAPE", tape, 1) == 0 && setenv("FERRY_SIM_REPORT", "1", 1) == 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (good && redirect(s, SWARM_OUT, STDOUT_FILENO) && redirect(s, SWARM_ERR, STDERR_FILENO))
        execvp(s->argv[0], s->argv);
    char reason[FY_LAUNCH_REASON_BYTES];
    fy_launch_reason(s->argv[0], errno, reason);
    fprintf(stderr, "ferry swarm: cannot run %s: %s\n", s->argv[0], reason);
    _exit(SWARM_UNUSABLE);
}

static double seconds(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double swarm_now_s(void)
{
    return seconds(CLOCK_MONOTONIC);
}

/* Prints a line every PAUSE_S seconds, if the swarm takes that long. */
static void say_progress(swarm *s, uint64_t seed)
{
    enum { PAUSE_S = 10 };
    double now_s = swarm_now_s();
    if (now_s - s->said_s < PAUSE_S)
        return;
    s->said_s = now_s;
    fprintf(stderr, "ferry swarm: %s seed %llu; %llu runs were begun so far\n", s->doing,
            (unsigned long long)seed, (unsigned long long)s->runs);
}

/* Waits until the child ends or has used its processor time. A limit of real time would make runs
 * fail on a busy machine. A child that sleeps may take SLEEP times the limit in real time. False:
 * the child was killed. */
static bool wait_for(swarm *s, uint64_t seed, pid_t child)
{
    enum { SLEEP = 20, LOOK_S = 2 };
    const double limit_s = s->limit_s;
    clockid_t used;
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    if (fd < 0)
        return true; /* without pidfd_open there is no limit */
    struct pollfd one = {.fd = fd, .events = POLLIN};
    double end_s = swarm_now_s() + SLEEP * limit_s, left_s = limit_s;
    int ready = 0;
    bool known = clock_getcpuclockid(child, &used) == 0;
    while (ready <= 0 && left_s > 0 && swarm_now_s() < end_s) {
        ready = poll(&one, 1, left_s < LOOK_S ? (int)(left_s * 1000) + 1 : LOOK_S * 1000);
        say_progress(s, seed);
        left_s = known ? limit_s - seconds(used) : 0;
    }
    close(fd);
    if (ready <= 0)
        kill(child, SIGKILL);
    return ready > 0;
}

static void find_hash(const swarm *s, char *hash)
{
    char *err = swarm_read(s, SWARM_ERR);
    const char *at = err == NULL ? NULL : strstr(err, "sim: hash ");
    hash[0] = '\0';
    if (at != NULL)
        snprintf(hash, 17, "%.16s", at + strlen("sim: hash "));
    free(err);
}

typedef bool names_it(const char *line);

static bool names_memory(const char *line)
{
    return strstr(line, "memory") != NULL || strstr(line, "ENOMEM") != NULL;
}

static bool names_unread_object(const char *line)
{
    return strstr(line, "object ") != NULL && strstr(line, "cannot be read") != NULL;
}

/* Whether a line of the program, not of the simulator, names the cause. */
static bool has_line(const swarm *s, names_it *names)
{
    char *text = swarm_read(s, SWARM_ERR);
    bool found = false;
    for (char *rest = NULL, *line = text == NULL ? NULL : strtok_r(text, "\n", &rest);
         line != NULL && !found; line = strtok_r(NULL, "\n", &rest))
        found = strncmp(line, "sim: ", 5) != 0 && strstr(line, " sim: ") == NULL && names(line);
    free(text);
    return found;
}

/* Whether a run failed as it may after an allocation has failed, or the reads of an object.
 * Statuses from FY_SIM_STUCK on are the simulator's own, or signals: they are no excuse. */
static bool is_excused(const swarm *s, int status)
{
    if (status == 0 || status >= FY_SIM_STUCK)
        return false;
    char *tape = swarm_read(s, SWARM_TAPE);
    bool refused = s->starves && tape != NULL && strstr(tape, "malloc") != NULL;
    bool unread = s->unreadable && tape != NULL &&
                  (strstr(tape, "disk-error@") != NULL || strstr(tape, "disk-damage@") != NULL);
    free(tape);
    return (refused && has_line(s, names_memory)) || (unread && has_line(s, names_unread_object));
}

bool swarm_run(swarm *s, uint64_t seed, const char *plan, swarm_end *end)
{
    int ends[2];
    s->runs++;
    if (ftruncate(s->files[SWARM_TAPE], 0) != 0 || !cmd_opened_begin(ends)) {
        perror("ferry swarm: a run could not be made");
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        swarm_run_child(s, seed, plan);
    if (child < 0) {
        perror("ferry swarm: fork");
        return false;
    }
    bool in_time = wait_for(s, seed, child);
    int status;
    if (waitpid(child, &status, 0) != child) {
        perror("ferry swarm: waitpid");
        return false;
    }
    end->status = !in_time            ? SWARM_LATE
                  : WIFEXITED(status) ? WEXITSTATUS(status)
                                      : 128 + WTERMSIG(status);
    cmd_progress progress = cmd_opened_end(ends);
    end->opened = progress != CMD_UNOPENED;
    end->early = end->status == 0 && progress == CMD_OPENED;
    if (end->early)
        end->status = EXIT_FAILURE;
    end->excused = is_excused(s, end->status);
    find_hash(s, end->hash);
    return true;
}
