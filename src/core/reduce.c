#include "core/reduce.h"

size_t fy_type_bytes(ferry_type type)
{
    static const unsigned char bytes[] = {[FERRY_DOUBLE] = 8, [FERRY_FLOAT] = 4,  [FERRY_INT32] = 4,
                                          [FERRY_INT64] = 8,  [FERRY_UINT64] = 8, [FERRY_BYTE] = 1};
    return (unsigned)type < sizeof bytes ? bytes[type] : 0;
}

bool fy_reduces(ferry_type type, ferry_reduction reduction)
{
    bool real = type == FERRY_DOUBLE || type == FERRY_FLOAT;
    return fy_type_bytes(type) != 0 && reduction > FERRY_REPLACE && reduction < FERRY_USER &&
           (!real || reduction <= FERRY_PRODUCT);
}

/* Integers are combined as unsigned 64-bit numbers, so that they wrap around, and the result is
 * cut. Minimum and maximum are not here, because they depend on the sign. */
static inline uint64_t combine_bits(ferry_reduction reduction, uint64_t a, uint64_t b)
{
    switch (reduction) {
    case FERRY_SUM:
        return a + b;
    case FERRY_PRODUCT:
        return a * b;
    case FERRY_AND:
        return a & b;
    case FERRY_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static inline bool is_extreme(ferry_reduction reduction)
{
    return reduction == FERRY_MIN || reduction == FERRY_MAX;
}

static void reduce_int32(ferry_reduction reduction, int32_t *into, const int32_t *low,
                         const int32_t *high, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int32_t a = low[i], b = high[i];
        if (is_extreme(reduction))
            into[i] = (reduction == FERRY_MIN) == (b < a) ? b : a;
        else
            into[i] = (int32_t)(uint32_t)combine_bits(reduction, (uint64_t)a, (uint64_t)b);
    }
}

/* Signed and unsigned. `bias` is the lowest value: less it, the order of signed values is that of
 * unsigned ones. */
static void reduce_uint64(ferry_reduction reduction, uint64_t *into, const uint64_t *low,
                          const uint64_t *high, size_t count, uint64_t bias)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t a = low[i], b = high[i];
        if (is_extreme(reduction))
            into[i] = (reduction == FERRY_MIN) == (b - bias < a - bias) ? b : a;
        else
            into[i] = combine_bits(reduction, a, b);
    }
}

static void reduce_byte(ferry_reduction reduction, unsigned char *into, const unsigned char *low,
                        const unsigned char *high, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char a = low[i], b = high[i];
        if (is_extreme(reduction))
            into[i] = (reduction == FERRY_MIN) == (b < a) ? b : a;
        else
            into[i] = (unsigned char)combine_bits(reduction, (uint64_t)a, (uint64_t)b);
    }
}

static inline double combine_reals(ferry_reduction reduction, double a, double b)
{
    if (reduction == FERRY_SUM)
        return a + b;
    if (reduction == FERRY_PRODUCT)
        return a * b;
    if (a != a || b != b)
        return a != a ? a : b; /* a NaN wins, so that it is not overlooked */
    return (reduction == FERRY_MIN ? b < a : b > a) ? b : a;
}

static void reduce_double(ferry_reduction reduction, double *into, const double *low,
                          const double *high, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = combine_reals(reduction, low[i], high[i]);
}

/* The result is computed as a double and rounded once. For a sum or product of two floats that
 * gives the same bits as float arithmetic. */
static void reduce_float(ferry_reduction reduction, float *into, const float *low,
                         const float *high, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = (float)combine_reals(reduction, low[i], high[i]);
}

void fy_reduce(ferry_type type, ferry_reduction reduction, void *into, const void *low,
               const void *high, size_t count)
{
    switch (type) {
    case FERRY_INT32:
        reduce_int32(reduction, into, low, high, count);
        break;
    case FERRY_INT64:
    case FERRY_UINT64:
        reduce_uint64(reduction, into, low, high, count,
                      type == FERRY_INT64 ? (uint64_t)INT64_MIN : 0);
        break;
    case FERRY_DOUBLE:
        reduce_double(reduction, into, low, high, count);
        break;
    case FERRY_FLOAT:
        reduce_float(reduction, into, low, high, count);
        break;
    case FERRY_BYTE:
        reduce_byte(reduction, into, low, high, count);
        break;
    default: /* fy_reduces refuses other types */
        break;
    }
}
