/* ferry run: options, then the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/launch.h>

#include "base/env.h"
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
    "  -d, --servers N    if PROGRAM calls ferry_percolation_start: ranks 0 to N-1 are data\n"
    "                     servers, the others computing engines; by default PROGRAM chooses\n"
    "  -j, --join FOLDER  make FOLDER, through which other processes can join (ferry join);\n"
    "                     needs -m above -n\n"
    "  -l, --label        begin each line of output with \"[rank] \"; not with --threads\n"
    "  -t, --threads      ranks are threads of one process; PROGRAM must use ferry_main\n"
    "  -b, --bindings     print which processors each rank may use\n"
    "  -h, --help         print this text\n"
    "\n"
    "Rank 0 reads the standard input. SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR2 are passed to\n"
    "every rank; a second SIGINT kills all ranks. SIGUSR1 prints what `ferry why` prints, and is\n"
    "passed to ranks that catch it. If a rank dies, the job ends, unless every rank has called\n"
    "ferry_peer_watch.\n"
    "\n"
    "Exit status: 0; the status of the first rank that failed, or 128 + its signal; 1 if output\n"
    "of --label could not be written; 2 for wrong usage; 125 if the job could not be made; 126\n"
    "or 127 if PROGRAM could not be executed.\n";

/* The launch that the options describe, and the arguments, which -np N reads. */
typedef struct request {
    ferry_launch_options options;
    int argc;
    char **argv;
} request;

static bool read_ranks(const char *command, int letter, char *value, void *arg)
{
    request *r = arg;
    if (letter == 'm')
        return cmd_read_ranks(command, letter, value, RANKS_MAX, &r->options.ranks_max);
    if (strcmp(value, "p") == 0 && optind < r->argc) /* -np N, as in mpirun */
        value = r->argv[optind++];
    return cmd_read_ranks(command, letter, value, RANKS_MAX, &r->options.ranks);
}

static bool read_folder(const char *command, int letter, char *value, void *arg)
{
    (void)letter;
    if (*value == '\0' || *value == '-') {
        fprintf(stderr, "ferry %s: --join: \"%s\"; expected a folder to make\n", command, value);
        return false;
    }
    ((request *)arg)->options.join = value;
    return true;
}

static int run_read_options(request *r)
{
    const cmd_option list[] = {
        {"ranks", 'n', .read = read_ranks},
        {"ranks-max", 'm', .read = read_ranks},
        {"servers", 'd', .read = cmd_set_servers},
        {"join", 'j', .read = read_folder},
        {"label", 'l', .flag = &r->options.label},
        {"threads", 't', .flag = &r->options.threads},
        {"bindings", 'b', .flag = &r->options.bindings},
        {.name = NULL},
    };
    const cmd_options what = {"run", help, list, .arg = r, .program = true};
    return cmd_read_options(r->argc, r->argv, &what);
}

/* Warns about variables that the job ignores. */
static void say_ignored(const ferry_launch_options *options)
{
    const char *ranks = fy_env_get("FERRY_RANKS"), *port = fy_env_get("FERRY_PORT");
    char number[16];
    snprintf(number, sizeof(number), "%d", options->ranks);
    /* Inside a rank of another job, that job's launcher has set FERRY_RANKS: no warning. */
    if (ranks != NULL && strcmp(ranks, number) != 0 && fy_env_get("FERRY_JOB_FD") == NULL)
        fprintf(stderr,
                "ferry run: FERRY_RANKS is \"%s\" and is ignored; the job has %s ranks (-n)\n",
                ranks, number);
    if (port != NULL && strcmp(port, "mpi") == 0)
        fprintf(stderr, "ferry run: FERRY_PORT is \"mpi\" and is ignored: the ranks share the "
                        "memory of this machine; for MPI use mpirun or srun\n");
}

static int run(const ferry_launch_options *options, char **argv)
{
    int status = ferry_launch(options, argv);
    if (status >= 0)
        return status;
    fprintf(stderr, "ferry run: %s\n", ferry_error_message(NULL));
    return CMD_LAUNCH_STATUS;
}

/* The launcher does not see which ranks are threads. So the program itself says that it starts
 * them, and that they have ended.
 */
static int run_threads(const ferry_launch_options *options, char **argv)
{
    int ends[2];
    if (!cmd_opened_begin(ends)) {
        perror("ferry run: socketpair");
        return CMD_LAUNCH_STATUS;
    }
    int status = run(options, argv);
    cmd_progress progress = cmd_opened_end(ends);
    if (status != 0 || progress == CMD_ENDED)
        return status;
    if (progress == CMD_UNOPENED) {
        cmd_say_unopened("run", argv[0]);
        return status;
    }
    cmd_say_unended("run", argv[0]);
    return EXIT_FAILURE;
}

int cmd_run(int argc, char **argv)
{
    request r = {.options = FERRY_LAUNCH_OPTIONS_DEFAULTS, .argc = argc, .argv = argv};
    const ferry_launch_options *options = &r.options;
    int status = run_read_options(&r);
    if (status != CMD_GO)
        return status;
    if (!cmd_has_program("run", argv[optind]))
        return cmd_wrong_usage("run");
    if (options->ranks_max != 0 && options->ranks_max < options->ranks) {
        fprintf(stderr,
                "ferry run: -m %d: room for fewer than the %d ranks of -n; expected %d or "
                "more\n",
                options->ranks_max, options->ranks, options->ranks);
        return cmd_wrong_usage("run");
    }
    if (options->label && options->threads) {
        fprintf(stderr, "ferry run: --label and --threads: ranks that are threads have one output "
                        "together; expected one of the two\n");
        return cmd_wrong_usage("run");
    }
    if (!cmd_check_servers("run", options->ranks))
        return cmd_wrong_usage("run");
    say_ignored(options);
    return options->threads ? run_threads(options, argv + optind) : run(options, argv + optind);
}
