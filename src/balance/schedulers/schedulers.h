/* Schedulers: the default, which is in every program. All others have their place in bundle/. */
#ifndef FY_SCHEDULERS_H
#define FY_SCHEDULERS_H

#include <ferry/scheduler.h>

extern const ferry_scheduler fy_scheduler_ferry;

#endif
