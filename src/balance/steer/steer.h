/* Steer: the scheduler of FERRY_STEER, which chooses the quantum, and hands each call on to another
 * scheduler, which it may change. It is in a plug-in, ferry-steer.so, and in the static library. */
#ifndef FY_STEER_H
#define FY_STEER_H

#include <ferry/scheduler.h>

#include "base/shared.h"

#define FY_STEER_SYMBOL "fy_steering"

enum { FY_STEER_VERSION = 1 };

/* Its scheduler hands each call on to `steered` of the layer (balance/balance.h). */
typedef struct fy_steer {
    uint32_t version; /* first: port/plugin.h */
    ferry_scheduler scheduler;
} fy_steer;

FY_SHARED extern const fy_steer fy_steering;

/* Gives steering, here or from its plug-in. FERRY_ENOTSUP: the plug-in cannot be opened, and
 * fy_error_text says why. Lends forever. [application thread] */
int fy_steer_find(const fy_steer **out);

#endif
