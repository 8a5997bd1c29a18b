/* ferry why: asks the ranks of a job what they do. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cmd/cmd.h"
#include "port/shm/layout.h"

static const char help[] =
    "usage: ferry why JOB\n"
    "\n"
    "Prints what each rank of a running job on this machine does, the messages that wait, the\n"
    "objects they wait for, and which ranks wait for each other. JOB is the number of the process\n"
    "that started the ranks (ferry run, mpirun, or the program itself with FERRY_RANKS), or of a\n"
    "rank, which may be a thread. Of a job of mpirun on several machines, it prints what one's\n"
    "ranks do, and the circles of waiting that these are in, wherever the others are.\n"
    "The job goes on undisturbed. A rank that does not call Ferry is shown by what it does only.\n"
    "SIGUSR1 to the process that started the ranks prints the same on its standard error, that to\n"
    "mpirun for each machine.\n"
    "\n"
    "Exit status: 1 when JOB is no process, or holds no job; 2 for wrong usage.\n";

static int fail(const char *job, const char *why)
{
    fprintf(stderr, "ferry why: %s: %s\n", job, why);
    return EXIT_FAILURE;
}

static int wrong_usage(void)
{
    fprintf(stderr, "Try `ferry why --help`.\n");
    return CMD_USAGE_STATUS;
}

/* The number of a process; 0: it is none. */
static pid_t process_of(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    bool whole = *text >= '0' && *text <= '9' && *end == '\0';
    return whole && number <= INT32_MAX ? (pid_t)number : 0;
}

int cmd_why(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return 0;
    }
    if (argc != 2) {
        fprintf(stderr, "ferry why: %d jobs: expected the number of one process\n", argc - 1);
        return wrong_usage();
    }
    pid_t pid = process_of(argv[1]);
    if (pid == 0) {
        (void)fail(argv[1], "expected the number of a process");
        return wrong_usage();
    }
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return fail(argv[1], "there is no such process; expected that which started the ranks, or "
                             "a rank");
    int fd = fy_segment_of_process(pid, true);
    if (fd < 0)
        return fail(argv[1], "holds no job of Ferry's on this machine; expected the process that "
                             "started the ranks, or a rank, of the same user");
    fy_controls controls;
    int error = fy_controls_map(fd, &controls);
    (void)close(fd);
    if (error != 0)
        return fail(argv[1], fy_error_text());
    fy_why_question(&controls);
    fy_why_print(&controls, STDOUT_FILENO);
    fy_controls_unmap(&controls);
    return 0;
}
