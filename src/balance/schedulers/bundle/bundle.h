/* Bundle: all schedulers but the default. Seven are there for comparison: six from the literature,
 * and `none`. Two test programs: `rotate` and `inplace`.
 *
 * Most jobs need the default alone. So the shared library finds these in a plug-in,
 * ferry-schedulers.so, when a job asks for one. The static library contains them. They use what
 * include/ferry/scheduler.h offers to any scheduler, and nothing else of the rank. */
#ifndef FY_BUNDLE_H
#define FY_BUNDLE_H

#include <ferry/scheduler.h>

#include "base/shared.h"

#define FY_BUNDLE_SYMBOL "fy_bundle_schedulers"

enum { FY_BUNDLE_VERSION = 2, FY_BUNDLE_MAX = 9 };

typedef struct fy_bundle {
    uint32_t version;                                     /* first: port/plugin.h */
    const ferry_scheduler *schedulers[FY_BUNDLE_MAX + 1]; /* ended by NULL */
} fy_bundle;

FY_SHARED extern const fy_bundle fy_bundle_schedulers;

extern const ferry_scheduler fy_scheduler_stealing, fy_scheduler_diffusion,
    fy_scheduler_diffusion_sender, fy_scheduler_gradient, fy_scheduler_multilist,
    fy_scheduler_master, fy_scheduler_none, fy_scheduler_rotate, fy_scheduler_inplace;

/* Gives the bundle: the one in this library, or that of the plug-in. FERRY_ENOTSUP: the plug-in
 * cannot be opened; fy_error_text says why. Lends for ever. [application thread] */
int fy_bundle_find(const fy_bundle **out);

#endif
