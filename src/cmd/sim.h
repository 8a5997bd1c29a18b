/* The options that `ferry sim` and `ferry swarm` share. Each sets a variable of the environment of
 * the program. */
#ifndef FY_CMD_SIM_H
#define FY_CMD_SIM_H

#include "cmd/cmd.h"

/* Sets the variable of the option -`letter`, one of those below or of `ferry sim`. If the
 * option does not take `value`, a line of `ferry COMMAND` on standard error says why, and false is
 * returned. A `read` of cmd_option. */
bool cmd_sim_option(const char *command, int letter, char *value, void *unused);

/* Likewise for -N of a command that gives simulations other ranks itself. */
bool cmd_sim_net(const char *command, int letter, char *value, void *unused);

/* Whether the variables that the options have set, and those that were set before, give a run,
 * whose ranks leave a computing engine beside the data servers. If not, a line on standard error
 * says why. Called after all options were read. */
bool cmd_sim_check(const char *command);

/* The options of both commands. Each appends its own. */
#define CMD_SIM_OPTIONS                                                                            \
    {"ranks", 'n', .read = cmd_sim_option}, {"ranks-max", 'm', .read = cmd_sim_option},            \
        {"servers", 'd', .read = cmd_set_servers}, {"net", 'N', .read = cmd_sim_option},           \
        {"disk", 'D', .read = cmd_sim_option}, {"cores-speed", 'c', .read = cmd_sim_option},       \
        {"quantum", 'q', .read = cmd_sim_option}, {"cpu", 'C', .read = cmd_sim_option},            \
        {"stack", 'S', .read = cmd_sim_option}, {"time-limit", 'T', .read = cmd_sim_option},       \
    {                                                                                              \
        "memory", 'M', .read = cmd_sim_option                                                      \
    }

#define CMD_SIM_HELP                                                                               \
    "  -n, --ranks N           how many ranks, 1 to 65536; 1 by default\n"                         \
    "  -m, --ranks-max N       how many ranks there may be, with those that ferry_spawn starts;\n" \
    "                          by default as many as -n\n"                                         \
    "  -d, --servers N         if PROGRAM calls ferry_percolation_start: ranks 0 to N-1 are\n"     \
    "                          data servers, the others computing engines; by default PROGRAM\n"   \
    "                          chooses\n"                                                          \
    "  -N, --net NET           shm (the default), memory, ethernet-100m, ethernet-1g,\n"           \
    "                          infiniband-hdr, cloud, torus, or a file (docs/simulator.md)\n"      \
    "  -D, --disk DISK         disks of stores: latency=TIME,bandwidth=BYTES,depth=N; depth is\n"  \
    "                          how many reads and writes they do at a time, 4 by default;\n"       \
    "                          without --disk they take no time\n"                                 \
    "  -c, --cores-speed SPEC  speeds of ranks: FIRST[-LAST]=FACTOR[@TIME],...: from TIME on,\n"   \
    "                          ranks FIRST to LAST are FACTOR times as fast; 1 by default\n"       \
    "  -q, --quantum TIME      helper threads look for messages every TIME; by default each\n"     \
    "                          message wakes them\n"                                               \
    "  -C, --cpu FACTOR        a second of measured processor time takes FACTOR seconds of\n"      \
    "                          virtual time, 0 to 1000; 0 by default: equal runs are the same\n"   \
    "  -S, --stack BYTES       stack of a rank, 16K to 1G; 64K by default\n"                       \
    "  -T, --time-limit TIME   ends the run as stuck at this virtual time; never by default\n"     \
    "  -M, --memory BYTES      ends the run as broken if its memory grows by more than BYTES;\n"   \
    "                          no limit by default\n"

#define CMD_SIM_UNITS                                                                              \
    "TIME is a number with ps, ns, us, ms or s, such as 2ms; without a unit, nanoseconds.\n"       \
    "BYTES is a number that may end with K, M, G or T. docs/simulator.md says more.\n"

#endif
