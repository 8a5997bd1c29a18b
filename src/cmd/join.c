/* ferry join: the folder of a running job, then the program.
 *
 * The program is a child, so that one that ends well without having joined is told of: when it
 * joins it says so by a socket (FERRY_JOB_JOINED). Signals are passed on, and it dies with this
 * process. */
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

#include "cmd/cmd.h"

static const char help[] =
    "usage: ferry join FOLDER PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM as one more rank of the job that was started with `ferry run --join FOLDER` (or\n"
    "FERRY_RANKS_JOIN=FOLDER), by the same user. It is what FERRY_JOIN=FOLDER PROGRAM does, and\n"
    "says so when PROGRAM ends without having joined. PROGRAM is the one that the job runs, or\n"
    "registers the same handlers and types as that; its arguments are its own.\n"
    "\n"
    "Exit status: that of PROGRAM; 128 + the signal that ended it; 1 when it ended with 0 and has\n"
    "not joined.\n";

static const int passed_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static _Noreturn void run(char **argv, pid_t parent, const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL); /* it died before the line above */
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[2], argv + 2);
    int error = errno;
    fprintf(stderr, "ferry join: cannot run %s: %s\n", argv[2], strerror(error));
    fflush(stderr);
    _exit(error == ENOENT ? 127 : 126);
}

/* Passes signals on until the program has ended; its exit status. What the terminal sends has
 * reached it already. */
static int await(pid_t child, const sigset_t *signals)
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

static int fail(const char *what)
{
    fprintf(stderr, "ferry join: %s: %s\n", what, strerror(errno));
    return 1;
}

static int run_and_watch(char **argv)
{
    int joined[2];
    char fd[16], byte;
    sigset_t signals, old;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_signals) / sizeof(passed_signals[0]); i++)
        sigaddset(&signals, passed_signals[i]);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, joined) != 0)
        return fail("socketpair");
    fcntl(joined[0], F_SETFD, FD_CLOEXEC);
    snprintf(fd, sizeof(fd), "%d", joined[1]);
    if (setenv("FERRY_JOIN", argv[1], 1) != 0 || setenv("FERRY_JOB_JOINED", fd, 1) != 0)
        return fail("setenv");
    /* Were it ignored, the kernel would reap the child before us. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &signals, &old);
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0)
        run(argv, parent, &old);
    int status = await(child, &signals);
    if (status != 0 || recv(joined[0], &byte, 1, MSG_DONTWAIT) == 1)
        return status;
    fprintf(stderr, "ferry join: %s has ended without joining the job at %s\n", argv[2], argv[1]);
    return 1;
}

int cmd_join(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return 0;
    }
    if (argc < 3 || argv[1][0] == '-' || argv[1][0] == '\0') {
        if (argc == 2 && argv[1][0] != '-')
            fprintf(stderr, "ferry join: which program shall join at \"%s\"?\n", argv[1]);
        else
            fprintf(stderr, "ferry join: which folder, and which program?\n");
        fprintf(stderr, "Try `ferry join --help`.\n");
        return CMD_USAGE_STATUS;
    }
    return run_and_watch(argv);
}
