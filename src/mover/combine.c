/* Numbers combined: two functions per operation and kind of number, for rows, with a loop that the
 * compiler can vectorise when both are contiguous, and for numbers that lie anywhere. Memory is
 * read and written through memcpy of one number, because elements need not be aligned. */
#include <string.h>

#include "mover/fail.h"
#include "mover/move.h"

#define ADDED(a, b) ((a) + (b))
#define ADDED_INT32(a, b) ((int32_t)((uint32_t)(a) + (uint32_t)(b)))
#define ADDED_INT64(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((b) > (a) ? (b) : (a))

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

/* For sums alone: minima and maxima are seldom spread. */
#define SPREAD(name, number, combined)                                                             \
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

ROW(add_double, double, ADDED)
ROW(add_float, float, ADDED)
ROW(add_int32, int32_t, ADDED_INT32)
ROW(add_int64, int64_t, ADDED_INT64)
ROW(min_double, double, LESSER)
ROW(min_float, float, LESSER)
ROW(min_int32, int32_t, LESSER)
ROW(min_int64, int64_t, LESSER)
ROW(max_double, double, GREATER)
ROW(max_float, float, GREATER)
ROW(max_int32, int32_t, GREATER)
ROW(max_int64, int64_t, GREATER)

SPREAD(spread_double, double, ADDED)
SPREAD(spread_float, float, ADDED)
SPREAD(spread_int32, int32_t, ADDED_INT32)
SPREAD(spread_int64, int64_t, ADDED_INT64)

static void user_row(const fy_combine *how, char *target, ptrdiff_t d, const char *source,
                     ptrdiff_t s, size_t count)
{
    how->fn(how->arg, target, d, source, s, count);
}

int fy_combine_init(fy_combine *how, const ferry_operation *operation, size_t element_bytes)
{
    static fy_row_fn *const rows[3][4] = {{add_double, add_float, add_int32, add_int64},
                                          {min_double, min_float, min_int32, min_int64},
                                          {max_double, max_float, max_int32, max_int64}};
    static fy_spread_fn *const spreads[4] = {spread_double, spread_float, spread_int32,
                                             spread_int64};
    static const size_t bytes[4] = {8, 4, 4, 8};
    *how = (fy_combine){.unit = element_bytes, .each = 1};
    if (operation == NULL || operation->combine == FERRY_COMBINE_COPY)
        return 0;
    if (operation->combine == FERRY_COMBINE_USER) {
        if (operation->fn == NULL)
            return fy_mover_fail(NULL, FERRY_EINVAL, "mover: an operation of the user without fn");
        how->row = user_row;
        how->fn = operation->fn;
        how->arg = operation->arg;
        return 0;
    }
    if (operation->combine > FERRY_COMBINE_USER || operation->number > FERRY_NUMBER_INT64)
        return fy_mover_fail(NULL, FERRY_EINVAL, "mover: operation %d on numbers %d is none",
                             (int)operation->combine, (int)operation->number);
    how->unit = bytes[operation->number];
    how->each = element_bytes / how->unit;
    how->row = rows[operation->combine - FERRY_COMBINE_ADD][operation->number];
    if (how->each == 1 && operation->combine == FERRY_COMBINE_ADD)
        how->spread = spreads[operation->number];
    if (element_bytes % how->unit != 0)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "mover: elements of %zu bytes do not consist of numbers of %zu",
                             element_bytes, how->unit);
    return 0;
}
