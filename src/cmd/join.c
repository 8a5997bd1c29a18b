/* ferry join: runs a program that joins the job of a folder. The program is a child, so that the
 * command can say if it ends with status 0 and has not joined. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"

static const char help[] =
    "usage: ferry join FOLDER PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM as one more rank of the job that the same user has started with\n"
    "`ferry run --join FOLDER` (or FERRY_RANKS_JOIN=FOLDER). PROGRAM is the program of the job, "
    "or\n"
    "one that registers the same handlers and types. It has its own arguments, input and output.\n"
    "FERRY_JOIN=FOLDER PROGRAM does the same, but does not notice that PROGRAM never joined.\n"
    "\n"
    "Exit status: that of PROGRAM; 128 + the signal that ended it; 1 if it ended with 0 and has\n"
    "not joined.\n";

static int run_and_watch(char **argv)
{
    cmd_progress progress;
    if (setenv("FERRY_JOIN", argv[1], 1) != 0) {
        fprintf(stderr, "ferry join: setenv: %s\n", strerror(errno));
        return CMD_LAUNCH_STATUS;
    }
    int status = cmd_run_child("join", argv + 2, &progress);
    if (status != 0 || progress != CMD_UNOPENED)
        return status;
    fprintf(stderr, "ferry join: %s has ended without joining the job at %s\n", argv[2], argv[1]);
    return 1;
}

int cmd_join(int argc, char **argv)
{
    if (argc > 1 && cmd_asks_help(argv[1])) {
        fputs(help, stdout);
        return 0;
    }
    if (argc < 3 || argv[1][0] == '-' || argv[1][0] == '\0') {
        if (argc == 2 && argv[1][0] != '-')
            fprintf(stderr, "ferry join: \"%s\": expected a program after the folder\n", argv[1]);
        else
            fprintf(stderr, "ferry join: expected a folder and a program\n");
        return cmd_wrong_usage("join");
    }
    return cmd_has_program("join", argv[2]) ? run_and_watch(argv) : cmd_wrong_usage("join");
}
