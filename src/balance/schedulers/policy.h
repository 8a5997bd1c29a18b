/* Policy: functions that schedulers have in common, whatever they decide. */
#ifndef FY_POLICY_H
#define FY_POLICY_H

#include <ferry/scheduler.h>

/* Limits of parameters: the greatest number of objects, and the greatest load. */
#define FY_OBJECTS_MAX 1000000000
#define FY_LOAD_MAX 1e300

/* Reads a parameter in microseconds, of at least `low`; returns nanoseconds. */
uint64_t fy_policy_ns(ferry_scheduling *s, const char *name, double otherwise, double low);

/* The time after which an answer counts as lost. It is `usual_ns` if schedulers answer while tasks
 * run. Otherwise an answer may take several tasks. If a late answer counted as lost, the rank would
 * ask twice and get twice as much as it wanted. */
static inline uint64_t fy_policy_timeout(const ferry_scheduling *s, uint64_t usual_ns)
{
    const uint64_t long_ns = UINT64_C(10000000000);
    return ferry_scheduling_preempts(s) || usual_ns > long_ns ? usual_ns : long_ns;
}

#endif
