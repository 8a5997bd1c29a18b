#include "balance/schedulers/policy.h"

uint64_t fy_policy_ns(ferry_scheduling *s, const char *name, double otherwise, double low)
{
    const double high = 1e12; /* 11 days */
    return (uint64_t)(ferry_scheduling_parameter(s, name, otherwise, low, high) * 1e3);
}
