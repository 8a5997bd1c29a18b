/* ferry join: the folder of a running job, then the program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"

static const char help[] =
    "usage: ferry join FOLDER PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM as one more rank of the job that was started with `ferry run --join FOLDER`, by\n"
    "the same user. It is what FERRY_JOIN=FOLDER PROGRAM does. PROGRAM is the one that the job\n"
    "runs, or registers the same handlers and types as that; its arguments are its own.\n";

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
    if (setenv("FERRY_JOIN", argv[1], 1) == 0)
        execvp(argv[2], argv + 2);
    int error = errno;
    fprintf(stderr, "ferry join: cannot run %s: %s\n", argv[2], strerror(error));
    return error == ENOENT ? 127 : 126;
}
