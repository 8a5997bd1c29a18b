/* Child: what a process runs that this one starts as a further rank, and in what surroundings. */
#ifndef FY_MPI_CHILD_H
#define FY_MPI_CHILD_H

#include <limits.h>

/* This process's program, arguments and environment, as it was started. The environment is without
 * what says that a process is the MPI launcher's: a child that called MPI would pass for its
 * parent. */
typedef struct fy_mpi_program {
    char path[PATH_MAX];
    char **argv; /* ended by NULL; the strings follow */
    char **environment;
    int connection; /* to the MPI launcher, which is its parent's; -1: none */
} fy_mpi_program;

/* Fills `*out`, ended with fy_mpi_program_free, also after an error. FERRY_ESYSTEM, FERRY_ENOMEM
 * with fy_error_set. */
int fy_mpi_program_read(fy_mpi_program *out);
void fy_mpi_program_free(fy_mpi_program *program);

/* In the child of a fy_mpi_program: closes the connection, and lets the child run on all processors
 * that the node has for this job, since those that the launcher has bound its parent to are its
 * parent's. */
void fy_mpi_child_prepare(void *program);

#endif
