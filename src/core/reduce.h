/* Reduce: the arithmetic of reductions. */
#ifndef FY_REDUCE_H
#define FY_REDUCE_H

#include <stdbool.h>

#include <ferry/core.h>

#include "base/shared.h"

/* Bytes of one value; 0 for a number that is no type. */
FY_SHARED size_t fy_type_bytes(ferry_type type);

/* Whether values of `type` can be combined so. */
FY_SHARED bool fy_reduces(ferry_type type, ferry_reduction reduction);

/* into[i] = low[i] (reduction) high[i]; `into` may be either. Integers wrap around. */
FY_SHARED void fy_reduce(ferry_type type, ferry_reduction reduction, void *into, const void *low,
                         const void *high, size_t count);

#endif
