/* Child: the program and the environment of a process that this one starts as a further rank. */
#ifndef FY_NODES_CHILD_H
#define FY_NODES_CHILD_H

#include <limits.h>

/* The traces of the binding's launcher that a child must not inherit. Otherwise it would be taken
 * for its parent. */
typedef struct fy_nodes_launcher {
    const char *const *variables; /* how the names of its variables begin; the last is NULL */
    int connection;               /* a file descriptor that belongs to the parent alone; -1: none */
} fy_nodes_launcher;

/* This process's program, arguments and environment, as it was started, without the traces of the
 * launcher. */
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

/* Called in the child. Closes the connection, and lets the child use all processors that the node
 * has for this job: the launcher may have bound its parent to some of them. */
void fy_nodes_child_prepare(void *program);

#endif
