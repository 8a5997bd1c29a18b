/* Combines numbers. Each operation and type of number has a function for rows, with a loop that the
 * compiler can vectorise if both rows are contiguous. Sums also have one for numbers that lie
 * anywhere. Numbers are read and written by memcpy, because elements need not be aligned. */
#include <string.h>

#include "mover/geometry/fail.h"
#include "mover/kernels/move.h"

/* Integers are combined as unsigned ones, so that they wrap around. */
#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((b) > (a) ? (b) : (a))
#define BIT_AND(a, b) ((a) & (b))
#define BIT_OR(a, b) ((a) | (b))
#define BIT_XOR(a, b) ((a) ^ (b))
/* A NaN wins over every number, as in the collectives. */
#define MIN_REAL(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define MAX_REAL(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))

#define ROW(name, number, combined)                                                                \
    static void name(const fy_combine *how, char *target, ptrdiff_t d, const char *source,         \
                     ptrdiff_t s, size_t count)                                                    \
    {                                                                                              \
        const ptrdiff_t dense = (ptrdiff_t)sizeof(number);                                         \
        (void)how;                                                                                 \
        if (d == dense && s == dense) {                                                            \
            for (size_t i = 0; i < count; i++) {                                                   \
                number a, b;                                                                       \
                memcpy(&a, target + i * sizeof a, sizeof a);                                       \
                memcpy(&b, source + i * sizeof b, sizeof b);                                       \
                a = combined(a, b);                                                                \
                memcpy(target + i * sizeof a, &a, sizeof a);                                       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (; count > 0; count--, target += d, source += s) {                                     \
            number a, b;                                                                           \
            memcpy(&a, target, sizeof a);                                                          \
            memcpy(&b, source, sizeof b);                                                          \
            a = combined(a, b);                                                                    \
            memcpy(target, &a, sizeof a);                                                          \
        }                                                                                          \
    }

/* Defined for sums alone: minima and maxima of numbers that lie anywhere are rare. */
#define INDEXED(name, number, combined)                                                            \
    static void name(char *target, const ptrdiff_t *d, const char *source, const ptrdiff_t *s,     \
                     size_t step, size_t count)                                                    \
    {                                                                                              \
        for (; count > 0; count--, d += step, s += step) {                                         \
            number a, b;                                                                           \
            memcpy(&a, target + *d, sizeof a);                                                     \
            memcpy(&b, source + *s, sizeof b);                                                     \
            a = combined(a, b);                                                                    \
            memcpy(target + *d, &a, sizeof a);                                                     \
        }                                                                                          \
    }

#define REAL_ROWS(name, number)                                                                    \
    ROW(sum_##name, number, SUM)                                                                   \
    ROW(min_##name, number, MIN_REAL)                                                              \
    ROW(max_##name, number, MAX_REAL)                                                              \
    ROW(product_##name, number, PRODUCT)                                                           \
    INDEXED(indexed_##name, number, SUM)

#define INTEGER_ROWS(name, number, wrapping)                                                       \
    ROW(sum_##name, wrapping, SUM)                                                                 \
    ROW(min_##name, number, MIN)                                                                   \
    ROW(max_##name, number, MAX)                                                                   \
    ROW(product_##name, wrapping, PRODUCT)                                                         \
    ROW(and_##name, wrapping, BIT_AND)                                                             \
    ROW(or_##name, wrapping, BIT_OR)                                                               \
    ROW(xor_##name, wrapping, BIT_XOR)                                                             \
    INDEXED(indexed_##name, wrapping, SUM)

REAL_ROWS(double, double)
REAL_ROWS(float, float)
INTEGER_ROWS(int32, int32_t, uint32_t)
INTEGER_ROWS(int64, int64_t, uint64_t)
INTEGER_ROWS(uint64, uint64_t, uint64_t)
INTEGER_ROWS(byte, unsigned char, unsigned char)

static void user_row(const fy_combine *how, char *target, ptrdiff_t d, const char *source,
                     ptrdiff_t s, size_t count)
{
    how->fn(how->arg, target, d, source, s, count);
}

/* The functions by reduction, from FERRY_SUM on, and by type. */
#define ROWS(verb)                                                                                 \
    {                                                                                              \
        verb##_double, verb##_float, verb##_int32, verb##_int64, verb##_uint64, verb##_byte        \
    }
#define BIT_ROWS(verb)                                                                             \
    {                                                                                              \
        NULL, NULL, verb##_int32, verb##_int64, verb##_uint64, verb##_byte                         \
    }

enum { TYPES = FERRY_BYTE + 1 };

static const size_t type_bytes[TYPES] = {8, 4, 4, 8, 8, 1};

size_t fy_number_bytes(ferry_type type)
{
    return (unsigned)type < TYPES ? type_bytes[type] : 0;
}

static int init_user(fy_combine *how, const ferry_operation *operation)
{
    if (operation->fn == NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "mover: the reduction is FERRY_USER, but fn is NULL");
    how->row = user_row;
    how->fn = operation->fn;
    how->arg = operation->arg;
    return 0;
}

int fy_combine_init(fy_combine *how, const ferry_operation *operation, size_t element_bytes)
{
    static fy_row_fn *const rows[][TYPES] = {
        ROWS(sum), ROWS(min), ROWS(max), ROWS(product), BIT_ROWS(and), BIT_ROWS(or), BIT_ROWS(xor)};
    static fy_indexed_fn *const indexed_sums[TYPES] = ROWS(indexed);
    *how = (fy_combine){.unit = element_bytes, .each = 1};
    if (operation == NULL || operation->reduction == FERRY_REPLACE)
        return 0;
    if (operation->reduction == FERRY_USER)
        return init_user(how, operation);
    const unsigned row = (unsigned)operation->reduction - FERRY_SUM;
    const size_t bytes = fy_number_bytes(operation->type);
    if (row >= sizeof rows / sizeof *rows || bytes == 0 || rows[row][operation->type] == NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "mover: reduction %d of type %d (expected a ferry_reduction, and a "
                             "ferry_type up to FERRY_BYTE; bits of integers alone)",
                             (int)operation->reduction, (int)operation->type);
    if (element_bytes % bytes != 0)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "mover: elements of %zu bytes do not consist of numbers of %zu",
                             element_bytes, bytes);
    how->unit = bytes;
    how->each = element_bytes / bytes;
    how->row = rows[row][operation->type];
    if (how->each == 1 && operation->reduction == FERRY_SUM)
        how->indexed = indexed_sums[operation->type];
    return 0;
}
