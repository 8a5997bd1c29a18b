/* Odd: values and changes of bytes that whoever reads them may stumble over. */
#ifndef FY_TEST_ODD_H
#define FY_TEST_ODD_H

#include <string.h>

#include "dice.h"

/* Half of the values that fields break at, half any. */
static inline uint64_t odd(dice *d)
{
    static const uint64_t ends[] = {0,          1,
                                    2,          6,
                                    7,          255,
                                    INT32_MAX,  UINT32_MAX,
                                    INT64_MAX,  (uint64_t)INT64_MIN,
                                    UINT64_MAX, UINT64_C(1) << 61};
    const size_t n = sizeof ends / sizeof *ends;
    return dice_between(d, 0, 1) ? dice_next(d) : ends[dice_next(d) % n];
}

/* A change to `*size_bytes` bytes, of which there is room for `room`. */
static inline void change(dice *d, unsigned char *bytes, size_t *size_bytes, size_t room)
{
    const size_t at = *size_bytes > 0 ? dice_next(d) % *size_bytes : 0;
    const uint64_t value = odd(d);
    switch (dice_between(d, 0, 5)) {
    case 0:
        *size_bytes = at;
        return;
    case 1:
        if (*size_bytes < room)
            bytes[(*size_bytes)++] = (unsigned char)value;
        return;
    case 2:
    case 3: /* a field */
        if (*size_bytes >= 8)
            memcpy(bytes + (at & ~(size_t)7) % (*size_bytes - 7), &value, 8);
        return;
    default:
        if (*size_bytes > 0)
            bytes[at] = (unsigned char)value;
    }
}

#endif
