/* ferry sim: sets variables of the environment from its options, and runs the program. The library
 * in the program is the simulator. The program is a child, so that the command can say if it never
 * opened a rank. */
#include "cmd/sim.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "cmd/cmd.h"
#include "port/sim/fiber.h"
#include "port/sim/sim.h"

/* The limits of fy_sim_options_read. */
enum { CPU_PERMILLE_MAX = 1000000, STACK_BYTES_MAX = 1 << 30 };

static const char help[] =
    "usage: ferry sim [-n N] [--seed S] [OPTION]... PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM, which uses ferry_main, as a job of N ranks simulated in one process, in "
    "virtual\n"
    "time. Equal seeds give equal runs.\n"
    "\n"
    "  -s, --seed S            seed of the run; 0 by default\n" CMD_SIM_HELP
    "  -f, --faults PLAN       what goes wrong; nothing by default. Commas between: drop=P,\n"
    "                          dup=P, delay=P:TIME (of packets); nomem=P (shared heap full);\n"
    "                          malloc=P (no memory); starve=RANK (malloc there alone);\n"
    "                          ring=SLOTS; stop=RANK@TIME:TIME; die=RANK@TIME;\n"
    "                          cut=FIRST-LAST@TIME:TIME; slow=RANK:FACTOR; disk-full=P,\n"
    "                          disk-error=P, disk-damage=P, disk-slow=P:FACTOR (disks of\n"
    "                          stores); random; random-all; random-malloc; random-disk;\n"
    "                          @FILE (a plan)\n"
    "  -t, --tape FILE         write the faults that happened to FILE, as a plan\n"
    "  -r, --report            print a report and the run's hash at the end\n"
    "  -h, --help              this text\n"
    "\n" CMD_SIM_UNITS
    "Exit status: the program's; 120 when ranks wait for ever: a report says what for;\n"
    "121 when a promise of the port was broken or a stack was overrun; 1 when PROGRAM ended with "
    "0\n"
    "and never opened a rank; 2 for wrong usage; 126 and 127 when PROGRAM could not be executed.\n";

static const struct option long_options[] = {
    CMD_SIM_LONG_OPTIONS,
    {"seed", required_argument, NULL, 's'},
    {"faults", required_argument, NULL, 'f'},
    {"tape", required_argument, NULL, 't'},
    {"report", no_argument, NULL, 'r'},
    {NULL, 0, NULL, 0},
};

/* Reads a decimal number with a unit of time, into nanoseconds. `plain`: a factor without a unit,
 * into thousandths. */
static bool read_scaled(const char *text, bool plain, uint64_t *out)
{
    static const struct unit {
        const char *name;
        double ns;
    } units[] = {{"ps", 1e-3}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1}};
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || !(value >= 0) ||
        (*text != '.' && (*text < '0' || *text > '9')))
        return false;
    double scale = 0;
    for (size_t i = 0; !plain && i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end, units[i].name) == 0)
            scale = units[i].ns;
    if (plain && *end == '\0')
        scale = 1000;
    value *= scale;
    if (scale <= 0 || value > 9e18)
        return false;
    *out = (uint64_t)(value + 0.5);
    return true;
}

static bool set(const char *name, const char *value)
{
    if (setenv(name, value, 1) == 0)
        return true;
    perror("ferry sim: setenv");
    return false;
}

static bool set_scaled(const char *name, const char *value, bool plain, const char *command,
                       int letter)
{
    uint64_t number;
    if (!read_scaled(value, plain, &number) || (plain && number > CPU_PERMILLE_MAX)) {
        fprintf(stderr, "ferry %s: -%c %s: expected %s\n", command, letter, value,
                plain ? "a factor, at most 1000" : "a time such as 10us");
        return false;
    }
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return set(name, text);
}

static bool set_number(const char *name, const char *value, uint64_t min, uint64_t max,
                       const char *command, int letter)
{
    uint64_t number = 0;
    if (!set(name, value))
        return false;
    if (fy_env_number_within(name, min, max, &number) == 0)
        return true;
    fprintf(stderr, "ferry %s: -%c %s: expected a number from %" PRIu64 " to %" PRIu64 "\n",
            command, letter, value, min, max);
    return false;
}

static bool set_ranks(const char *name, const char *value, const char *command, int letter)
{
    int ranks;
    return cmd_read_ranks(command, letter, value, FY_SIM_RANKS_MAX, &ranks) && set(name, value);
}

bool cmd_sim_option(const char *command, int letter, const char *value)
{
    switch (letter) {
    case 'n':
        return set_ranks("FERRY_RANKS", value, command, letter);
    case 'm':
        return set_ranks("FERRY_RANKS_MAX", value, command, letter);
    case 'd':
        return cmd_set_servers(command, letter, value);
    case 's':
        return set_number("FERRY_SIM_SEED", value, 0, UINT64_MAX, command, letter) &&
               setenv("FERRY_SEED", value, 0) == 0;
    case 'N':
        return set("FERRY_SIM_NET", value);
    case 'D':
        return set("FERRY_SIM_DISK", value);
    case 'c':
        return set("FERRY_SIM_SPEEDS", value);
    case 'S':
        return set_number("FERRY_SIM_STACK_BYTES", value, FY_FIBER_STACK_MIN, STACK_BYTES_MAX,
                          command, letter);
    case 'M':
        return set_number("FERRY_SIM_MEMORY_BYTES", value, 0, UINT64_MAX / 2, command, letter);
    case 'f':
        return set("FERRY_SIM_FAULTS", value);
    case 't':
        return set("FERRY_SIM_TAPE", value);
    case 'r':
        return set("FERRY_SIM_REPORT", "1");
    case 'q':
        return set_scaled("FERRY_SIM_QUANTUM_NS", value, false, command, letter);
    case 'T':
        return set_scaled("FERRY_SIM_TIME_LIMIT_NS", value, false, command, letter);
    case 'C':
        return set_scaled("FERRY_SIM_CPU_PERMILLE", value, true, command, letter);
    default:
        return false;
    }
}

bool cmd_sim_check_servers(const char *command)
{
    uint64_t ranks = 1;
    return fy_env_number_within("FERRY_RANKS", 1, FY_SIM_RANKS_MAX, &ranks) != 0 ||
           cmd_check_servers(command, (int)ranks);
}

int cmd_sim(int argc, char **argv)
{
    char name[] = "ferry sim";
    argv[0] = name;
    int option;
    /* '+': options after PROGRAM are the program's own. */
    while ((option = getopt_long(argc, argv, "+" CMD_SIM_LETTERS "s:f:t:r", long_options, NULL)) !=
           -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (!cmd_sim_option("sim", option, optarg))
            return cmd_wrong_usage("sim");
    }
    if (optind == argc) {
        fprintf(stderr, "ferry sim: expected a program to run\n");
        return cmd_wrong_usage("sim");
    }
    if (!cmd_sim_check_servers("sim"))
        return cmd_wrong_usage("sim");
    if (!set("FERRY_PORT", "sim"))
        return CMD_LAUNCH_STATUS;
    bool opened;
    int status = cmd_run_child("sim", argv + optind, &opened);
    if (status != 0 || opened)
        return status;
    fprintf(stderr,
            "ferry sim: %s has ended without opening a rank; expected a program of ferry_main\n",
            argv[optind]);
    return EXIT_FAILURE;
}
