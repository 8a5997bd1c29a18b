/* The options that `ferry sim` and `ferry swarm` share. Each sets a variable of the environment of
 * the program. */
#ifndef FY_CMD_SIM_H
#define FY_CMD_SIM_H

#include <stdbool.h>

/* Sets the variable of the option with this character. If the option does not take `value`, a line
 * of `ferry COMMAND` on standard error says why, and false is returned. */
bool cmd_sim_option(const char *command, int letter, const char *value);

/* The long options of both commands. Each appends its own. */
#define CMD_SIM_LONG_OPTIONS                                                                       \
    {"ranks", required_argument, NULL, 'n'}, {"net", required_argument, NULL, 'N'},                \
        {"ranks-max", required_argument, NULL, 'm'}, {"servers", required_argument, NULL, 'd'},    \
        {"disk", required_argument, NULL, 'D'}, {"cores-speed", required_argument, NULL, 'c'},     \
        {"quantum", required_argument, NULL, 'q'}, {"cpu", required_argument, NULL, 'C'},          \
        {"stack", required_argument, NULL, 'S'}, {"time-limit", required_argument, NULL, 'T'},     \
        {"memory", required_argument, NULL, 'M'},                                                  \
    {                                                                                              \
        "help", no_argument, NULL, 'h'                                                             \
    }
#define CMD_SIM_LETTERS "n:m:d:N:D:c:q:C:S:T:M:h"

#define CMD_SIM_HELP                                                                               \
    "  -n, --ranks N           how many ranks, 1 to 65536; 1 by default\n"                         \
    "  -m, --ranks-max N       how many ranks there may be, with those that ferry_spawn starts\n"  \
    "  -d, --servers N         ranks 0 to N-1 are data servers, the others computing engines\n"    \
    "  -N, --net NET           shm (the default), ethernet-100m, ethernet-1g, infiniband-hdr,\n"   \
    "                          cloud, torus, or a file (docs/simulator.md)\n"                      \
    "  -D, --disk DISK         disks of stores: latency=TIME, bandwidth=BYTES, full=P, error=P,\n" \
    "                          damage=P, slow=P:FACTOR; commas between them\n"                     \
    "  -c, --cores-speed SPEC  speeds of ranks: FIRST[-LAST]=FACTOR[@TIME],...\n"                  \
    "  -q, --quantum TIME      helpers look for messages every TIME; by default each message\n"    \
    "                          wakes them\n"                                                       \
    "  -C, --cpu FACTOR        measured processor time counts FACTOR in virtual time; by "         \
    "default\n"                                                                                    \
    "                          it takes none, and equal runs are the same\n"                       \
    "  -S, --stack BYTES       stack of a rank; 64 KiB by default\n"                               \
    "  -T, --time-limit TIME   ends the run as stuck at this virtual time\n"                       \
    "  -M, --memory BYTES      ends the run as broken if its memory grows by more than BYTES\n"

#endif
