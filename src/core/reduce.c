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

/* One loop for each operation: what is to be done is decided once, not for each value. */
#define EACH(number, combined)                                                                     \
    for (size_t i = 0; i < count; i++) {                                                           \
        number a = low[i], b = high[i];                                                            \
        into[i] = (number)(combined);                                                              \
    }                                                                                              \
    break

/* Unsigned, so that numbers wrap around. `lowest` is the least value of the type: less it, the
 * order of signed values is that of unsigned ones. */
#define INTEGERS(name, number)                                                                     \
    static void name(ferry_reduction reduction, number *into, const number *low,                   \
                     const number *high, size_t count, number lowest)                              \
    {                                                                                              \
        switch (reduction) {                                                                       \
        case FERRY_SUM:                                                                            \
            EACH(number, a + b);                                                                   \
        case FERRY_PRODUCT:                                                                        \
            EACH(number,                                                                           \
                 UINT64_C(1) * a * b); /* small types would be multiplied as signed ones */        \
        case FERRY_MIN:                                                                            \
            EACH(number, (number)(b - lowest) < (number)(a - lowest) ? b : a);                     \
        case FERRY_MAX:                                                                            \
            EACH(number, (number)(b - lowest) > (number)(a - lowest) ? b : a);                     \
        case FERRY_AND:                                                                            \
            EACH(number, a &b);                                                                    \
        case FERRY_OR:                                                                             \
            EACH(number, a | b);                                                                   \
        default:                                                                                   \
            EACH(number, a ^ b);                                                                   \
        }                                                                                          \
    }

/* A NaN wins in minima and maxima, so that it is not overlooked. */
#define REALS(name, number)                                                                        \
    static void name(ferry_reduction reduction, number *into, const number *low,                   \
                     const number *high, size_t count)                                             \
    {                                                                                              \
        switch (reduction) {                                                                       \
        case FERRY_SUM:                                                                            \
            EACH(number, a + b);                                                                   \
        case FERRY_PRODUCT:                                                                        \
            EACH(number, a *b);                                                                    \
        case FERRY_MIN:                                                                            \
            EACH(number, b < a || (b != b && a == a) ? b : a);                                     \
        default:                                                                                   \
            EACH(number, b > a || (b != b && a == a) ? b : a);                                     \
        }                                                                                          \
    }

INTEGERS(reduce_bytes, unsigned char)
INTEGERS(reduce_uint32, uint32_t)
INTEGERS(reduce_uint64, uint64_t)
REALS(reduce_double, double)
REALS(reduce_float, float)

void fy_reduce(ferry_type type, ferry_reduction reduction, void *into, const void *low,
               const void *high, size_t count)
{
    switch (type) {
    case FERRY_INT32:
        reduce_uint32(reduction, into, low, high, count, UINT32_C(1) << 31);
        break;
    case FERRY_INT64:
    case FERRY_UINT64:
        reduce_uint64(reduction, into, low, high, count,
                      type == FERRY_INT64 ? UINT64_C(1) << 63 : 0);
        break;
    case FERRY_DOUBLE:
        reduce_double(reduction, into, low, high, count);
        break;
    case FERRY_FLOAT:
        reduce_float(reduction, into, low, high, count);
        break;
    case FERRY_BYTE:
        reduce_bytes(reduction, into, low, high, count, 0);
        break;
    default: /* fy_reduces refuses other types */
        break;
    }
}
