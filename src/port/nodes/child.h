/* Child: what a process runs that this one starts as a further rank, and in what surroundings. */
#ifndef FY_NODES_CHILD_H
#define FY_NODES_CHILD_H

#include <limits.h>

/* Variables of the binding's launcher that a child must not inherit: it would pass for its parent.
 */
typedef struct fy_nodes_launcher {
    const char *const *variables; /* how those of the environment begin; the last is NULL */
    int connection;               /* a file descriptor that is its parent's; -1: none */
} fy_nodes_launcher;

/* This process's program, arguments and environment, as it was started, but for what is the
 * launcher's. */
typedef struct fy_nodes_program {
    char path[PATH_MAX];
    char **argv; /* ended by NULL; the strings follow */
    char **environment;
    int connection; /* as in fy_nodes_launcher */
} fy_nodes_program;

/* Fills `*out`, ended with fy_nodes_program_free, also after an error. FERRY_ESYSTEM, FERRY_ENOMEM
 * with fy_error_set. */
int fy_nodes_program_read(const fy_nodes_launcher *launcher, fy_nodes_program *out);
void fy_nodes_program_free(fy_nodes_program *program);

/* In the child of a fy_nodes_program: closes the connection, and lets the child run on all
 * processors that the node has for this job. Those that the launcher has bound its parent to are
 * its parent's. */
void fy_nodes_child_prepare(void *program);

#endif
