/* Reduce: the arithmetic of reductions. */
#ifndef FY_REDUCE_H
#define FY_REDUCE_H

#include <stdbool.h>

#include <ferry/core.h>

/* Bytes of one value; 0 for a number that is no type. */
size_t fy_type_bytes(ferry_type type);

/* Whether values of `type` can be combined so. */
bool fy_reduces(ferry_type type, ferry_reduction reduction);

/* into[i] = low[i] (reduction) high[i]; `into` may be either. Integers wrap around. */
void fy_reduce(ferry_type type, ferry_reduction reduction, void *into, const void *low,
               const void *high, size_t count);

#endif
