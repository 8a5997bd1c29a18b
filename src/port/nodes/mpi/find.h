/* Find: the plug-ins of MPI libraries (library.h), and which of them this process needs. */
#ifndef FY_MPI_FIND_H
#define FY_MPI_FIND_H

#include "port/nodes/mpi/library.h"

#define FY_MPI_NAMES 2

/* The names of the libraries that Ferry has plug-ins for, FY_MPI_NAMES of them. */
extern const char *const fy_mpi_names[];

/* Opens the plug-in `name`. On failure FERRY_ELAUNCH, and fy_error_text says what was missing.
 * Lends forever: an MPI library cannot be unloaded. */
int fy_mpi_find(const char *name, const fy_mpi_library **out);

/* The name of the MPI library that is loaded in this process; else of the one that the launcher's
 * variables belong to; NULL when nothing says. */
const char *fy_mpi_wanted(void);

#endif
