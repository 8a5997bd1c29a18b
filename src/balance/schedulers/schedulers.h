/* Schedulers: those that are in every program. A new one is a file here and a line in schedulers.c;
 * one that few jobs run has its place in bundle/. */
#ifndef FY_SCHEDULERS_H
#define FY_SCHEDULERS_H

#include <ferry/scheduler.h>

extern const ferry_scheduler fy_scheduler_ferry, fy_scheduler_none;

/* All, ended by NULL. */
extern const ferry_scheduler *const fy_schedulers[];

#endif
