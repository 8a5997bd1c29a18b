/* Clock: the system's clocks, in nanoseconds. Any thread. */
#ifndef FY_CLOCK_H
#define FY_CLOCK_H

#include <stdint.h>

#include "base/shared.h"

/* Monotonic, the same for every process of the machine. */
FY_SHARED uint64_t fy_clock_now_ns(void);
/* Processor time of the calling thread. */
FY_SHARED uint64_t fy_clock_cpu_ns(void);
/* Sleeps until fy_clock_now_ns reaches `deadline_ns`, signals or not. */
FY_SHARED void fy_clock_sleep_until(uint64_t deadline_ns);

#endif
