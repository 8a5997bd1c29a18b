/* Reduce: the arithmetic of reductions. */
#ifndef FY_REDUCE_H
#define FY_REDUCE_H

#include <stdbool.h>

#include <ferry/core.h>

#include "base/shared.h"

/* Bytes of one value; 0 if `type` is none that reductions take. */
FY_SHARED size_t fy_type_bytes(ferry_type type);

/* Whether `reduction` can combine values of `type`. */
FY_SHARED bool fy_reduces(ferry_type type, ferry_reduction reduction);

/* into[i] = low[i] (reduction) high[i]. `into` may be `low` or `high`. Integers wrap around. */
FY_SHARED void fy_reduce(ferry_type type, ferry_reduction reduction, void *into, const void *low,
                         const void *high, size_t count);

#endif
