#include "core/reduce.h"

size_t fy_type_bytes(ferry_type type)
{
    switch (type) {
    case FERRY_INT32:
        return sizeof(int32_t);
    case FERRY_INT64:
        return sizeof(int64_t);
    case FERRY_UINT64:
        return sizeof(uint64_t);
    case FERRY_DOUBLE:
        return sizeof(double);
    }
    return 0;
}

static void reduce_int32(ferry_reduction reduction, int32_t *into, const int32_t *low,
                         const int32_t *high, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int32_t a = low[i], b = high[i];
        if (reduction == FERRY_SUM)
            into[i] = (int32_t)((uint32_t)a + (uint32_t)b);
        else
            into[i] = (reduction == FERRY_MIN) == (b < a) ? b : a;
    }
}

static void reduce_int64(ferry_reduction reduction, int64_t *into, const int64_t *low,
                         const int64_t *high, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t a = low[i], b = high[i];
        if (reduction == FERRY_SUM)
            into[i] = (int64_t)((uint64_t)a + (uint64_t)b);
        else
            into[i] = (reduction == FERRY_MIN) == (b < a) ? b : a;
    }
}

static void reduce_uint64(ferry_reduction reduction, uint64_t *into, const uint64_t *low,
                          const uint64_t *high, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t a = low[i], b = high[i];
        if (reduction == FERRY_SUM)
            into[i] = a + b;
        else
            into[i] = (reduction == FERRY_MIN) == (b < a) ? b : a;
    }
}

/* A value that is not a number wins, so that it cannot be overlooked. */
static double extreme(ferry_reduction reduction, double a, double b)
{
    if (a != a || b != b)
        return a != a ? a : b;
    return (reduction == FERRY_MIN ? b < a : b > a) ? b : a;
}

static void reduce_double(ferry_reduction reduction, double *into, const double *low,
                          const double *high, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = reduction == FERRY_SUM ? low[i] + high[i] : extreme(reduction, low[i], high[i]);
}

void fy_reduce(ferry_type type, ferry_reduction reduction, void *into, const void *low,
               const void *high, size_t count)
{
    switch (type) {
    case FERRY_INT32:
        reduce_int32(reduction, into, low, high, count);
        break;
    case FERRY_INT64:
        reduce_int64(reduction, into, low, high, count);
        break;
    case FERRY_UINT64:
        reduce_uint64(reduction, into, low, high, count);
        break;
    case FERRY_DOUBLE:
        reduce_double(reduction, into, low, high, count);
        break;
    }
}
