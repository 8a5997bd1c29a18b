/* Broken ports: the template with a mistake, which the conformance suite must find. */
#ifndef FY_BROKEN_H
#define FY_BROKEN_H

#include "port/port.h"

/* Gives the port the mistake with the name `how`, the same on all ranks of the process. */
void fy_break(fy_port *port, const char *how);

/* Takes the mistake away, before the port is closed. */
void fy_mend(fy_port *port);

#endif
