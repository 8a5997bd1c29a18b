/* Find: the plug-ins of port mpi (binding.h), where they lie, and which of them this process needs.
 *
 * Plug-ins are looked for in the folders of FERRY_PORT_PATH, then beside the library or program
 * that this code is in, as it is built and as it is installed. */
#ifndef FY_MPI_FIND_H
#define FY_MPI_FIND_H

#include "port/mpi/binding.h"

#define FY_MPI_NAMES 2

/* The names of the libraries that Ferry has plug-ins for, FY_MPI_NAMES of them. */
extern const char *const fy_mpi_names[];

/* Opens the plug-in `name`. On failure FERRY_ELAUNCH, and fy_error_text says what was missing.
 * Lends for ever: an MPI library cannot be unloaded. */
int fy_mpi_find(const char *name, const fy_mpi_binding **out);

/* Writes the path of the plug-in `name`, whether or not it can be opened. */
bool fy_mpi_locate(const char *name, char *path, size_t size);

/* The name of the MPI library that is loaded in this process; else of the one that the launcher's
 * variables belong to; NULL when nothing says. */
const char *fy_mpi_wanted(void);

/* Whether an MPI library in this process has been initialised. */
bool fy_mpi_is_running(void);

#endif
