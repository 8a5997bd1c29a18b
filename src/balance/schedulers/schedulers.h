/* Schedulers: the built-in ones. A new one is a file here and a line in schedulers.c. */
#ifndef FY_SCHEDULERS_H
#define FY_SCHEDULERS_H

#include <ferry/balance.h>

extern const ferry_scheduler fy_scheduler_ferry, fy_scheduler_stealing, fy_scheduler_diffusion,
    fy_scheduler_diffusion_sender, fy_scheduler_gradient, fy_scheduler_multilist,
    fy_scheduler_master, fy_scheduler_none, fy_scheduler_rotate, fy_scheduler_inplace;

/* All, ended by NULL. */
extern const ferry_scheduler *const fy_schedulers[];

#endif
