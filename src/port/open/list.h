/* The port of this process: found here, so that core names none. */
#ifndef FY_PORT_LIST_H
#define FY_PORT_LIST_H

#include "port/port.h"

/* Finds the port, and sets `ranks` and `compute` of `settings` from the environment; the rest
 * stands there. FERRY_EINVAL: a variable has a value that it cannot have. FERRY_ELAUNCH: no port
 * has the name that FERRY_PORT says. With fy_error_set. Lends `*out` forever. */
int fy_port_find(fy_port_settings *settings, const fy_port_entry **out);

/* In this folder. */
extern const fy_port_entry fy_port_entry_shm, fy_port_entry_mpi;

/* Whether FERRY_PORT names `name`. */
bool fy_port_is_named(const char *name);

#endif
