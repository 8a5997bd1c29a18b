/* Steer: the scheduler of FERRY_STEER, which chooses the quantum and leaves all else to another
 * scheduler. It is in a plug-in, ferry-steer.so, and in the static library. */
#ifndef FY_STEER_H
#define FY_STEER_H

#include "balance/schedulers/bundle/bundle.h"

#define FY_STEER_NAME "steer"

FY_SHARED extern const fy_bundle fy_bundle_steer; /* this scheduler alone */

/* Gives that table, here or from the plug-in. FERRY_ENOTSUP: the plug-in cannot be opened, and
 * fy_error_text says why. Lends for ever. [application thread] */
int fy_steer_find(const fy_bundle **out);

#endif
