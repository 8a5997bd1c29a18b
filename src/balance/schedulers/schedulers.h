/* Schedulers: the built-in ones. A new one is a file here and a line in schedulers.c. */
#ifndef FY_SCHEDULERS_H
#define FY_SCHEDULERS_H

#include <ferry/balance.h>

extern const ferry_scheduler fy_scheduler_ferry, fy_scheduler_stealing, fy_scheduler_diffusion,
    fy_scheduler_diffusion_sender, fy_scheduler_gradient, fy_scheduler_multilist,
    fy_scheduler_master, fy_scheduler_none, fy_scheduler_rotate, fy_scheduler_inplace;

/* All, ended by NULL. */
extern const ferry_scheduler *const fy_schedulers[];

/* After how long an answer counts as lost: `usual_ns` where schedulers answer while tasks run. Else
 * an answer may take several tasks, and to take a late one for lost is to ask twice and to get
 * twice as much as was wanted. */
static inline uint64_t fy_patience(const ferry_scheduling *s, uint64_t usual_ns)
{
    const uint64_t long_ns = UINT64_C(10000000000);
    return ferry_scheduling_preempts(s) || usual_ns > long_ns ? usual_ns : long_ns;
}

#endif
