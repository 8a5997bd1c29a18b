/* The sub-commands of `ferry`. Each gets its own name and arguments as argv and returns the exit
 * status. */
#ifndef FY_CMD_H
#define FY_CMD_H

#include <stdbool.h>

#define CMD_USAGE_STATUS 2
#define CMD_LAUNCH_STATUS 125 /* the job could not be made */

/* An option of a sub-command, which may set or read more than one thing. It takes a value if it has
 * `text` or `read`. */
typedef struct cmd_option {
    const char *name; /* the long name; NULL ends a list */
    int letter;
    bool *flag;        /* becomes true */
    const char **text; /* gets the value */
    /* Reads the value. False: it is wrong, and a line on standard error says so. */
    bool (*read)(const char *command, int letter, char *value, void *arg);
} cmd_option;

/* The options of a sub-command. Its list need not have `help`. */
typedef struct cmd_options {
    const char *command, *help;
    const cmd_option *list;
    void *arg;    /* of `read` */
    bool program; /* what follows the first argument belongs to a program */
} cmd_options;

#define CMD_GO (-1)

/* Reads the options; `optind` is then the first argument. Returns CMD_GO, or the exit status of a
 * command that was asked for its help or got a wrong option. */
int cmd_read_options(int argc, char **argv, const cmd_options *what);

/* Whether the first argument of a command without options asks for its help. */
bool cmd_asks_help(const char *word);

/* Reads at most `most` numbers from 1 to `max`, with commas between them, the value of option -n of
 * `ferry COMMAND`. False: it is no such list. A line on standard error says so. */
bool cmd_read_list(const char *command, const char *text, int most, int max, int *out, int *count);

/* Says on standard error where the help of `ferry COMMAND` is. Returns the status of wrong usage.
 */
int cmd_wrong_usage(const char *command);

/* Reads the number of ranks that option -`letter` of `ferry COMMAND` gives into `*out`. False: it
 * is not a number from 1 to `max`. A line on standard error says so. */
bool cmd_read_ranks(const char *command, int letter, const char *text, int max, int *out);

/* Sets FERRY_SERVERS to the number that option -`letter` of `ferry COMMAND` gives. False: it is not
 * a number of ranks. A line on standard error says so. */
bool cmd_set_servers(const char *command, int letter, char *text, void *unused);

/* Whether a job of `ranks` ranks has engines besides the data servers of FERRY_SERVERS. If it has
 * none, a line on standard error says so. */
bool cmd_check_servers(const char *command, int ranks);

/* Whether `program`, an argument, can be the name of one. If not, a line of `ferry COMMAND` on
 * standard error says so. NULL: there is no argument. */
bool cmd_has_program(const char *command, const char *program);

/* How far the ranks of a program came. */
typedef enum cmd_progress {
    CMD_UNOPENED, /* it has opened none */
    CMD_OPENED,   /* simulated ranks, or threads: it has ended before them */
    CMD_ENDED,    /* all have ended; or what became of them is not told */
} cmd_progress;

/* Runs `argv` as a child and passes signals on. Returns its exit status, or 128 + the signal that
 * ended it. Sets how far its ranks came. If no child can be made, a line of `ferry COMMAND`
 * on standard error says why, and the status is CMD_LAUNCH_STATUS. */
int cmd_run_child(const char *command, char **argv, cmd_progress *progress);
/* Between these two calls the caller starts a child. The second says how far its ranks came. If
 * the first returns false, errno says why. */
bool cmd_opened_begin(int ends[2]);
cmd_progress cmd_opened_end(const int ends[2]);

/* Says on standard error that `program`, which `ferry COMMAND` has run, opened no rank. */
void cmd_say_unopened(const char *command, const char *program);
/* Says that it has ended with status 0 before its ranks. */
void cmd_say_unended(const char *command, const char *program);

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
