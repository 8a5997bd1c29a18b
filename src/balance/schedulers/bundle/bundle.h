/* Bundle: the schedulers to compare with, those of the literature and none, and two that test
 * programs. Most jobs need no other than the default, so the shared library finds these in a
 * plug-in, ferry-schedulers.so, when one is asked for; programs that are linked to the static
 * library have them in them. They know what include/ferry/balance.h offers to any scheduler and
 * nothing else of the rank. */
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

/* Gives the bundle, here or from its plug-in. FERRY_ENOTSUP: that cannot be opened, and
 * fy_error_text says why. Lends for ever. [application thread] */
int fy_bundle_find(const fy_bundle **out);

#endif
