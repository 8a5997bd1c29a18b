/* Child: what a process runs that this one starts as a further rank, and in what surroundings. */
#ifndef FY_MPI_CHILD_H
#define FY_MPI_CHILD_H

#include <limits.h>

/* This process's program and arguments, as it was started. */
typedef struct fy_mpi_program {
    char path[PATH_MAX];
    char **argv; /* ended by NULL; the strings follow */
} fy_mpi_program;

/* Fills `*out`, ended with fy_mpi_program_free, also after an error. FERRY_ESYSTEM, FERRY_ENOMEM
 * with fy_error_set. */
int fy_mpi_program_read(fy_mpi_program *out);
void fy_mpi_program_free(fy_mpi_program *program);

/* A fy_launch_child: executes a fy_mpi_program. */
int fy_mpi_program_execute(void *program, int rank);

/* In the child: takes from its environment what says that it is the MPI launcher's, since it would
 * pass for its parent if it called MPI, and lets it run on all processors that the node has for
 * this job, since those that the launcher has bound its parent to are its parent's. */
void fy_mpi_child_prepare(void);

#endif
