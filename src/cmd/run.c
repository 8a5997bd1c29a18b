/* ferry run: options, then the program. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/launch.h>

#include "cmd/cmd.h"

#define RANKS_MAX 1024

static const char help[] =
    "usage: ferry run [-n N] [-m N] [--servers N] [--join FOLDER] [--label] [--threads]\n"
    "           [--bindings] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM as a job of N ranks on this machine and ends with its exit status.\n"
    "\n"
    "  -n, --ranks N      how many ranks, 1 to 1024; 1 by default; -np N is the same\n"
    "  -m, --ranks-max N  how many ranks there may be, with those that join later; by default\n"
    "                     as many as -n\n"
    "  -d, --servers N    for programs of ferry_percolation_start: ranks 0 to N-1 are data\n"
    "                     servers, the others computing engines; by default PROGRAM chooses\n"
    "  -j, --join FOLDER  make FOLDER, by which other processes join (ferry join); -m must be\n"
    "                     above -n\n"
    "  -l, --label        begin each line of output with \"[rank] \"\n"
    "  -t, --threads      ranks are threads of one process; PROGRAM must use ferry_main\n"
    "  -b, --bindings     print which processors each rank may use\n"
    "  -h, --help         this text\n"
    "\n"
    "Rank 0 has the standard input. SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR2 are passed to\n"
    "every rank; a second SIGINT kills them. SIGUSR1 prints what `ferry why` prints, and is "
    "passed\n"
    "to ranks that catch it. When a rank dies, the job ends.\n"
    "\n"
    "Exit status: 0; the status of the first rank that failed, or 128 + its signal; 2 for wrong\n"
    "usage; 125 when the job could not be made; 126 and 127 when PROGRAM could not be executed.\n";

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"ranks-max", required_argument, NULL, 'm'},
    {"servers", required_argument, NULL, 'd'},
    {"join", required_argument, NULL, 'j'},
    {"label", no_argument, NULL, 'l'},
    {"threads", no_argument, NULL, 't'},
    {"bindings", no_argument, NULL, 'b'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* Returns 0 if there is a job to run, -1 if only the help was asked for, else the exit status. */
static int read_options(int argc, char **argv, ferry_launch_options *options)
{
    int option;
    /* '+': options after PROGRAM are the program's own. */
    while ((option = getopt_long(argc, argv, "+n:m:d:j:ltbh", long_options, NULL)) != -1) {
        switch (option) {
        case 'n':
            if (strcmp(optarg, "p") == 0 && optind < argc) /* -np N, as in mpirun */
                optarg = argv[optind++];
            if (!cmd_read_ranks("run", option, optarg, RANKS_MAX, &options->ranks))
                return cmd_wrong_usage("run");
            break;
        case 'm':
            if (!cmd_read_ranks("run", option, optarg, RANKS_MAX, &options->ranks_max))
                return cmd_wrong_usage("run");
            break;
        case 'd':
            if (!cmd_set_servers("run", option, optarg))
                return cmd_wrong_usage("run");
            break;
        case 'j':
            if (*optarg == '\0' || *optarg == '-') {
                fprintf(stderr, "ferry run: --join: \"%s\"; expected a folder to make\n", optarg);
                return cmd_wrong_usage("run");
            }
            options->join = optarg;
            break;
        case 'l':
            options->label = true;
            break;
        case 't':
            options->threads = true;
            break;
        case 'b':
            options->bindings = true;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        default:
            return cmd_wrong_usage("run");
        }
    }
    return 0;
}

/* Warns about variables that the job ignores. */
static void say_ignored(const ferry_launch_options *options)
{
    const char *ranks = getenv("FERRY_RANKS"), *port = getenv("FERRY_PORT");
    char number[16];
    snprintf(number, sizeof(number), "%d", options->ranks);
    /* Inside a rank of another job, that job's launcher has set FERRY_RANKS: no warning. */
    if (ranks != NULL && *ranks != '\0' && strcmp(ranks, number) != 0 &&
        getenv("FERRY_JOB_FD") == NULL)
        fprintf(stderr,
                "ferry run: FERRY_RANKS is \"%s\" and is ignored; the job has %s ranks (-n)\n",
                ranks, number);
    if (port != NULL && strcmp(port, "mpi") == 0)
        fprintf(stderr, "ferry run: FERRY_PORT is \"mpi\" and is ignored: the ranks share the "
                        "memory of this machine; for MPI use mpirun or srun\n");
}

int cmd_run(int argc, char **argv)
{
    ferry_launch_options options = FERRY_LAUNCH_OPTIONS_DEFAULTS;
    char name[] = "ferry run";
    argv[0] = name;
    int status = read_options(argc, argv, &options);
    if (status != 0)
        return status < 0 ? 0 : status;
    if (optind == argc) {
        fprintf(stderr, "ferry run: expected a program to run\n");
        return cmd_wrong_usage("run");
    }
    if (options.ranks_max != 0 && options.ranks_max < options.ranks) {
        fprintf(stderr,
                "ferry run: -m %d: room for fewer than the %d ranks of -n; expected %d or "
                "more\n",
                options.ranks_max, options.ranks, options.ranks);
        return cmd_wrong_usage("run");
    }
    if (!cmd_check_servers("run", options.ranks))
        return cmd_wrong_usage("run");
    say_ignored(&options);
    status = ferry_launch(&options, argv + optind);
    if (status < 0) {
        fprintf(stderr, "ferry run: %s\n", ferry_error_message(NULL));
        return CMD_LAUNCH_STATUS;
    }
    return status;
}
