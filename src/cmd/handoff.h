/* The time that no message between two processors of this machine can be faster than. */
#ifndef FY_CMD_HANDOFF_H
#define FY_CMD_HANDOFF_H

#include <stdbool.h>

/* Measures, in some milliseconds, the time a cache line takes from one allowed processor to
 * another. False: fewer than two processors are allowed. */
bool cmd_handoff_ns(double *out);

#endif
