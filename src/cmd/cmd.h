/* The sub-commands of `ferry`. Each gets its own name and arguments as argv and returns the exit
 * status. */
#ifndef FY_CMD_H
#define FY_CMD_H

#include <stdbool.h>

#define CMD_USAGE_STATUS 2
#define CMD_LAUNCH_STATUS 125 /* the job could not be made */

/* Says on standard error where the help of `ferry COMMAND` is. Returns the status of wrong usage.
 */
int cmd_wrong_usage(const char *command);

/* Reads the number of ranks that option -`letter` of `ferry COMMAND` gives into `*out`. False: it
 * is not a number from 1 to `max`. A line on standard error says so. */
bool cmd_read_ranks(const char *command, int letter, const char *text, int max, int *out);

/* Sets FERRY_SERVERS to the number that option -`letter` of `ferry COMMAND` gives. False: it is not
 * a number of ranks. A line on standard error says so. */
bool cmd_set_servers(const char *command, int letter, const char *text);

/* Whether a job of `ranks` ranks has engines besides the data servers of FERRY_SERVERS. If it has
 * none, a line on standard error says so. */
bool cmd_check_servers(const char *command, int ranks);

/* Runs `argv` as a child and passes signals on. Returns its exit status, or 128 + the signal that
 * ended it. Sets whether it has opened a rank. If no child can be made, a line of `ferry COMMAND`
 * on standard error says why, and the status is CMD_LAUNCH_STATUS. */
int cmd_run_child(const char *command, char **argv, bool *opened);
/* Between these two calls the caller starts a child. The second says whether it has opened a rank.
 * If the first returns false, errno says why. */
bool cmd_opened_begin(int ends[2]);
bool cmd_opened_end(const int ends[2]);

int cmd_run(int argc, char **argv);
int cmd_join(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_swarm(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_scale(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_info(int argc, char **argv);

#endif
