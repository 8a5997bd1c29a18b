/* ferry: the command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ferry/export.h>

#include "cmd/cmd.h"
#include "launch/launch.h"

typedef struct command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *summary;
} command;

static const command commands[] = {
    {"run", cmd_run, "run a program as a job of several ranks on this machine"},
    {"join", cmd_join, "run a program as one more rank of a running job"},
    {"why", cmd_why, "print what each rank of a running job does, and which ranks wait"},
    {"report", cmd_report, "draw what the ranks of a traced run did"},
    {"sim", cmd_sim, "run a program on many simulated ranks in one process"},
    {"swarm", cmd_swarm, "run a program under many seeds and faults; find a small run that fails"},
    {"model", cmd_model,
     "predict how long tasks run on given numbers of ranks, under each scheduler"},
    {"scale", cmd_scale, "simulate the tasks of a traced run on other numbers of ranks"},
    {"calibrate", cmd_calibrate, "measure this machine for the simulator and the model"},
    {"info", cmd_info, "show version, ports, processors and limits"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
    fprintf(out, "usage: ferry COMMAND [OPTION]...\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(out,
            "\n`ferry COMMAND --help` prints the options. `ferry --version` prints the version.\n");
}

/* Words that a user wrote where a command belongs: options of `ferry run`, or a program. */
static void unknown_say(char **words)
{
    fprintf(stderr, "ferry: \"%s\" is not a command", words[0]);
    if (words[0][0] == '-' || access(words[0], X_OK) == 0) {
        fprintf(stderr, "; expected ferry run");
        for (; *words != NULL; words++)
            fprintf(stderr, " %s", *words);
    }
    fprintf(stderr, "\n");
    usage(stderr);
}

/* The command that `words` begins with. NULL, after a message: there is none. */
static const command *command_find(char **words)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(words[0], commands[i].name) == 0)
            return &commands[i];
    unknown_say(words);
    return NULL;
}

/* `ferry help COMMAND` is `ferry COMMAND --help`. */
static int command_help(char **words)
{
    char option[] = "--help", *argv[] = {words[0], option, NULL};
    if (words[1] != NULL) {
        fprintf(stderr, "ferry help: \"%s\" is one word too many; expected one command\n",
                words[1]);
        usage(stderr);
        return CMD_USAGE_STATUS;
    }
    const command *found = command_find(words);
    return found != NULL ? found->main(2, argv) : CMD_USAGE_STATUS;
}

static int command_run(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CMD_USAGE_STATUS;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2)
        return command_help(argv + 2);
    if (cmd_asks_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0) {
        printf("ferry %s\n", FERRY_VERSION);
        return 0;
    }
    const command *found = command_find(argv + 1);
    return found != NULL ? found->main(argc - 1, argv + 1) : CMD_USAGE_STATUS;
}

/* Without this check a stack that is too small for stdio ends the process without a word. So the
 * check itself does not use stdio. */
static void check_stack(void)
{
    static const char text[] =
        "ferry: stacks are limited to less than 64 KiB; expected more (ulimit "
        "-s)\n";
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= FY_STACK_MIN_BYTES)
        return;
    ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)written;
    _exit(CMD_LAUNCH_STATUS);
}

/* A command whose output could not be written has failed. */
int main(int argc, char **argv)
{
    check_stack();
    fy_streams_reserve();
    int status = command_run(argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "ferry: standard output cannot be written%s%s\n", errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    return status != 0 ? status : 1;
}
