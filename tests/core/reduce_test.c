/* The arithmetic of reductions: every type and operation, on every pair of values at the edges of
 * the type. The test computes the expected results one by one, in a wider type. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/reduce.h"

enum { VALUES = 9, PAIRS = VALUES * VALUES };

__extension__ typedef __int128 wide;

static wide whole(ferry_reduction reduction, wide a, wide b)
{
    switch (reduction) {
    case FERRY_SUM:
        return a + b;
    case FERRY_PRODUCT: /* of the low halves: the high ones do not reach the result */
        return (wide)((uint64_t)a * (uint64_t)b);
    case FERRY_MIN:
        return a < b ? a : b;
    case FERRY_MAX:
        return a > b ? a : b;
    case FERRY_AND:
        return a & b;
    case FERRY_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static double real(ferry_reduction reduction, double a, double b)
{
    switch (reduction) {
    case FERRY_SUM:
        return a + b;
    case FERRY_PRODUCT:
        return a * b;
    default:
        if (isnan(a) || isnan(b))
            return NAN;
        return (reduction == FERRY_MIN) == (a < b) ? a : b;
    }
}

/* Fills the arrays with all pairs, reduces them, into the first or the second too, and compares. */
#define CHECK_TYPE(name, number, type, expected_of, same, ...)                                     \
    static void name(ferry_reduction reduction)                                                    \
    {                                                                                              \
        const number values[VALUES] = {__VA_ARGS__};                                               \
        number low[PAIRS], high[PAIRS], out[PAIRS];                                                \
        for (int where = 0; where < 3; where++) {                                                  \
            number *into = where == 0 ? out : where == 1 ? low : high;                             \
            for (int i = 0; i < PAIRS; i++) {                                                      \
                low[i] = values[i / VALUES];                                                       \
                high[i] = values[i % VALUES];                                                      \
            }                                                                                      \
            fy_reduce(type, reduction, into, low, high, PAIRS);                                    \
            for (int i = 0; i < PAIRS; i++) {                                                      \
                number a = values[i / VALUES], b = values[i % VALUES];                             \
                number expected = (number)expected_of(reduction, a, b);                            \
                if (!(same(into[i], expected)))                                                    \
                    fail_msg(#number ", reduction %d: pair %d into %d", (int)reduction, i, where); \
            }                                                                                      \
        }                                                                                          \
    }
#define EQUAL(a, b) ((a) == (b))
#define EQUAL_OR_NAN(a, b) ((a) == (b) || (isnan(a) && isnan(b)))

CHECK_TYPE(check_byte, unsigned char, FERRY_BYTE, whole, EQUAL, 0, 1, 2, 15, 127, 128, 200, 254,
           255)
CHECK_TYPE(check_int32, int32_t, FERRY_INT32, whole, EQUAL, 0, 1, -1, INT32_MAX, INT32_MIN,
           INT32_MAX - 1, INT32_MIN + 1, 65536, -65537)
CHECK_TYPE(check_int64, int64_t, FERRY_INT64, whole, EQUAL, 0, 1, -1, INT64_MAX, INT64_MIN,
           INT64_MAX - 1, INT64_MIN + 1, INT64_C(1) << 32, INT32_MIN)
CHECK_TYPE(check_uint64, uint64_t, FERRY_UINT64, whole, EQUAL, 0, 1, UINT64_MAX, UINT64_C(1) << 63,
           UINT64_MAX - 1, (UINT64_C(1) << 63) - 1, UINT64_C(1) << 32, UINT32_MAX, 3)
CHECK_TYPE(check_double, double, FERRY_DOUBLE, real, EQUAL_OR_NAN, 0, 1, -1.5, INFINITY, -INFINITY,
           NAN, 1e308, -1e308, 4.9e-324)
CHECK_TYPE(check_float, float, FERRY_FLOAT, real, EQUAL_OR_NAN, 0, 1, -1.5F, INFINITY, -INFINITY,
           NAN, 3e38F, 0.1F, 1e-45F)

static void test_every_pair(void **state)
{
    static void (*const checks[])(ferry_reduction reduction) = {
        [FERRY_DOUBLE] = check_double, [FERRY_FLOAT] = check_float,   [FERRY_INT32] = check_int32,
        [FERRY_INT64] = check_int64,   [FERRY_UINT64] = check_uint64, [FERRY_BYTE] = check_byte};
    int taken = 0;
    (void)state;
    for (int type = 0; type < (int)(sizeof checks / sizeof *checks); type++)
        for (int reduction = FERRY_SUM; reduction < FERRY_USER; reduction++)
            if (fy_reduces((ferry_type)type, (ferry_reduction)reduction)) {
                checks[type]((ferry_reduction)reduction);
                taken++;
            }
    assert_int_equal(taken, 2 * 4 + 4 * 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_pair)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
