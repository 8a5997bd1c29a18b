/* Pause: the time between two looks for something that has not come. */
#ifndef FY_PAUSE_H
#define FY_PAUSE_H

#include <stdint.h>

/* The next pause is twice as long, but at most `max_ns`. */
static inline uint64_t fy_pause_longer(uint64_t pause_ns, uint64_t max_ns)
{
    return pause_ns < max_ns / 2 ? 2 * pause_ns : max_ns;
}

#endif
