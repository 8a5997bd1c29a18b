/* The sub-commands of `ferry`. Each gets its own name and arguments as argv and returns the exit
 * status. */
#ifndef FY_CMD_H
#define FY_CMD_H

#define CMD_USAGE_STATUS 2

int cmd_run(int argc, char **argv);
int cmd_join(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_swarm(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_info(int argc, char **argv);

#endif
