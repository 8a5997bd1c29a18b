/* ferry sim: sets variables of the environment from its options, and runs the program. The library
 * in the program is the simulator. The program is a child, so that the command can say if it never
 * opened a rank. */
#include "cmd/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/error.h>

#include "base/env.h"
#include "base/error.h"
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
    "time. Runs with the same seed are equal.\n"
    "\n"
    "  -s, --seed S            seed of the run; 0 by default\n" CMD_SIM_HELP
    "  -f, --faults PLAN       what goes wrong, items with commas between; nothing by default:\n"
    "      drop=P dup=P delay=P:TIME      a packet is lost, doubled, late by up to TIME\n"
    "      stop=RANK@TIME:TIME            the rank does nothing from the first TIME, for the "
    "second\n"
    "      die=RANK@TIME                  the rank dies\n"
    "      cut=FIRST-LAST@TIME:TIME       nothing passes between these ranks and the others\n"
    "      slow=RANK:FACTOR ring=SLOTS    slow to receive; room for few messages\n"
    "      nomem=P malloc=P starve=RANK   shared heap full; no memory; malloc of this rank alone\n"
    "      disk-full=P disk-error=P disk-damage=P disk-slow=P:FACTOR\n"
    "                                     disks of stores fail or are slow\n"
    "      random random-all random-malloc random-disk   faults that the seed chooses\n"
    "      @FILE                          a plan in a file\n"
    "  -t, --tape FILE         write the faults that happened to FILE, as a plan\n"
    "  -r, --report            print a report and the run's hash at the end\n"
    "  -h, --help              print this text\n"
    "\n"
    "P is a probability from 0 to 1.\n" CMD_SIM_UNITS
    "Exit status: that of the program; 120 if ranks wait forever: a report says for what; 121 if "
    "the\n"
    "simulated network broke a promise or a stack was overrun; 1 if PROGRAM ended with 0 and "
    "never\n"
    "opened a rank; 2 for wrong usage; 126 or 127 if PROGRAM could not be executed.\n";

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

/* How the value of an option becomes that of a variable. */
typedef enum form { TEXT, NUMBER, RANKS, TIME, FACTOR } form;

typedef struct setting {
    char letter;
    form form;
    const char *variable;
    uint64_t min, max; /* of NUMBER */
} setting;

static const setting settings[] = {
    {'n', RANKS, "FERRY_RANKS", 0, 0},
    {'m', RANKS, "FERRY_RANKS_MAX", 0, 0},
    {'s', NUMBER, "FERRY_SIM_SEED", 0, UINT64_MAX},
    {'N', TEXT, "FERRY_SIM_NET", 0, 0},
    {'D', TEXT, "FERRY_SIM_DISK", 0, 0},
    {'c', TEXT, "FERRY_SIM_SPEEDS", 0, 0},
    {'S', NUMBER, "FERRY_SIM_STACK_BYTES", FY_FIBER_STACK_MIN, STACK_BYTES_MAX},
    {'M', NUMBER, "FERRY_SIM_MEMORY_BYTES", 0, UINT64_MAX / 2},
    {'f', TEXT, "FERRY_SIM_FAULTS", 0, 0},
    {'t', TEXT, "FERRY_SIM_TAPE", 0, 0},
    {'q', TIME, "FERRY_SIM_QUANTUM_NS", 0, 0},
    {'T', TIME, "FERRY_SIM_TIME_LIMIT_NS", 0, 0},
    {'C', FACTOR, "FERRY_SIM_CPU_PERMILLE", 0, 0},
};

static bool set_scaled(const setting *to, const char *value, const char *command)
{
    uint64_t number;
    bool plain = to->form == FACTOR;
    if (!read_scaled(value, plain, &number) || (plain && number > CPU_PERMILLE_MAX)) {
        fprintf(stderr, "ferry %s: -%c %s: expected %s\n", command, to->letter, value,
                plain ? "a factor, at most 1000" : "a time such as 10us");
        return false;
    }
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return set(to->variable, text);
}

static bool set_number(const setting *to, const char *value, const char *command)
{
    uint64_t number = 0;
    if (!set(to->variable, value))
        return false;
    if (fy_env_number_within(to->variable, to->min, to->max, &number) == 0)
        return true;
    fprintf(stderr, "ferry %s: -%c %s: expected a number from %" PRIu64 " to %" PRIu64 "\n",
            command, to->letter, value, to->min, to->max);
    return false;
}

bool cmd_sim_option(const char *command, int letter, char *value, void *unused)
{
    const setting *to = settings;
    int ranks;
    (void)unused;
    while (to->letter != letter)
        to++;
    switch (to->form) {
    case RANKS:
        return cmd_read_ranks(command, letter, value, FY_SIM_RANKS_MAX, &ranks) &&
               set(to->variable, value);
    case NUMBER: /* only the seed is one of two variables */
        return set_number(to, value, command) &&
               (letter != 's' || setenv("FERRY_SEED", value, 0) == 0);
    case TEXT:
        return set(to->variable, value);
    default:
        return set_scaled(to, value, command);
    }
}

/* Says what the simulator says. Returns whether `error` is no reason to refuse. */
static bool is_good(const char *command, int error)
{
    static const char own[] = "sim: ";
    if (error == 0 || error == FERRY_ENOMEM) /* the program may have more memory */
        return true;
    const char *text = fy_error_text();
    if (strncmp(text, own, strlen(own)) == 0)
        text += strlen(own);
    fprintf(stderr, "ferry %s: %s\n", command, text);
    return false;
}

bool cmd_sim_check(const char *command)
{
    fy_sim_options options = {.ranks = 1};
    int error = fy_sim_options_read(&options);
    if (error == 0)
        error = fy_sim_check(&options);
    return is_good(command, error) && cmd_check_servers(command, options.ranks);
}

bool cmd_sim_net(const char *command, int letter, char *value, void *unused)
{
    const fy_sim_options options = {.ranks = 1, .net = value};
    return is_good(command, fy_sim_check(&options)) &&
           cmd_sim_option(command, letter, value, unused);
}

int cmd_sim(int argc, char **argv)
{
    bool report = false;
    const cmd_option list[] = {CMD_SIM_OPTIONS,
                               {"seed", 's', .read = cmd_sim_option},
                               {"faults", 'f', .read = cmd_sim_option},
                               {"tape", 't', .read = cmd_sim_option},
                               {"report", 'r', .flag = &report},
                               {.name = NULL}};
    int status = cmd_read_options(argc, argv, &(cmd_options){"sim", help, list, .program = true});
    if (status != CMD_GO)
        return status;
    if (!cmd_has_program("sim", argv[optind]) || !cmd_sim_check("sim"))
        return cmd_wrong_usage("sim");
    if (!set("FERRY_PORT", "sim") || (report && !set("FERRY_SIM_REPORT", "1")))
        return CMD_LAUNCH_STATUS;
    cmd_progress progress;
    status = cmd_run_child("sim", argv + optind, &progress);
    if (status != 0 || progress == CMD_ENDED)
        return status;
    (progress == CMD_OPENED ? cmd_say_unended : cmd_say_unopened)("sim", argv[optind]);
    return EXIT_FAILURE;
}
