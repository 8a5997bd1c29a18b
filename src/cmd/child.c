/* A command runs a program as its child and waits for it. The program says by a socket
 * (FERRY_JOB_OPENED) that it has opened a rank. If the command dies, the program is killed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "cmd/cmd.h"
#include "launch/launch.h"

static const int passed_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

bool cmd_opened_begin(int ends[2])
{
    char fd[16];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    snprintf(fd, sizeof(fd), "%d", ends[1]);
    return setenv(FY_ENV_JOB_OPENED, fd, 1) == 0;
}

cmd_progress cmd_opened_end(const int ends[2])
{
    char said[2];
    ssize_t count = recv(ends[0], said, sizeof(said), MSG_DONTWAIT);
    close(ends[0]);
    close(ends[1]);
    if (count <= 0)
        return CMD_UNOPENED;
    return count == 1 && said[0] == FY_ENV_OPENED ? CMD_OPENED : CMD_ENDED;
}

void cmd_say_unopened(const char *command, const char *program)
{
    fprintf(
        stderr,
        "ferry %s: %s has ended without opening a rank; expected a program that calls ferry_main\n",
        command, program);
}

void cmd_say_unended(const char *command, const char *program)
{
    fprintf(stderr, "ferry %s: %s has ended with status 0 before its ranks; the status is 1\n",
            command, program);
}

static _Noreturn void child_run(const char *command, char **argv, pid_t parent,
                                const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL); /* the parent died before the call above */
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    int error = errno;
    char reason[FY_LAUNCH_REASON_BYTES];
    fy_launch_reason(argv[0], error, reason);
    fprintf(stderr, "ferry %s: cannot run %s: %s\n", command, argv[0], reason);
    fflush(stderr);
    _exit(error == ENOENT ? 127 : 126);
}

/* Passes signals on until the program has ended. Returns its exit status. Signals of the terminal
 * (si_code above 0) have reached the program already. */
static int child_await(pid_t child, const sigset_t *signals)
{
    for (;;) {
        siginfo_t info;
        int status, number = sigwaitinfo(signals, &info);
        if (number > 0 && number != SIGCHLD && info.si_code <= 0)
            kill(child, number);
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static int child_fail(const char *command, const char *what)
{
    fprintf(stderr, "ferry %s: %s: %s\n", command, what, strerror(errno));
    return CMD_LAUNCH_STATUS;
}

int cmd_run_child(const char *command, char **argv, cmd_progress *progress)
{
    int ends[2];
    sigset_t signals, old;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_signals) / sizeof(passed_signals[0]); i++)
        sigaddset(&signals, passed_signals[i]);
    *progress = CMD_UNOPENED;
    if (!cmd_opened_begin(ends))
        return child_fail(command, "socketpair");
    /* If SIGCHLD is ignored, the kernel reaps the child, and its status is lost. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &signals, &old);
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return child_fail(command, "fork");
    if (child == 0)
        child_run(command, argv, parent, &old);
    int status = child_await(child, &signals);
    *progress = cmd_opened_end(ends);
    return status;
}
