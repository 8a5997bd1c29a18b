/* Goal: copies of more bytes than caches hold move each byte where it belongs and write nothing
 * else, wherever their rows begin and end. Method: planes of a large array into the middle of a
 * larger one, each word with a value of its own, beside what cannot be touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/mover.h>

enum { UNTOUCHED = 0x5a, BULK_BYTES = 16 << 20 };

/* A unit has `unit` bytes and begins `before` bytes into a row of the target, and `behind` bytes
 * into one of the source. */
static void copy(int64_t unit, int64_t before, int64_t behind)
{
    enum { AFTER = 77 };
    const int64_t rows = BULK_BYTES / unit + 2, wide = before + unit + AFTER;
    const ferry_region part =
        ferry_region_make(2, (int64_t[]){0, 0}, (int64_t[]){rows - 1, unit - 1});
    ferry_region from_region = part, to_region = part;
    from_region.low.at[1] -= behind;
    to_region.low.at[1] -= before;
    to_region.high.at[1] += AFTER;
    unsigned char *source = malloc((size_t)(rows * (behind + unit)));
    unsigned char *target = malloc((size_t)(rows * wide));
    assert_non_null(source);
    assert_non_null(target);
    for (int64_t i = 0; i < rows * (behind + unit); i++)
        source[i] = (unsigned char)((uint64_t)i * 0x9e3779b97f4a7c15u >> 56);
    memset(target, UNTOUCHED, (size_t)(rows * wide));
    ferry_plan_entry entry = {.relation = FERRY_PLAIN, .from = part, .to = part};
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        entry.axis[d] = (int8_t)d;
        entry.ratio[d] = 1;
    }
    const ferry_grid from = ferry_grid_over(from_region, 1, source);
    const ferry_grid to = ferry_grid_over(to_region, 1, target);
    assert_int_equal(ferry_grid_move(&to, &from, &entry, NULL), 0);
    for (int64_t row = 0; row < rows; row++) {
        const unsigned char *at = target + row * wide;
        for (int64_t i = 0; i < before; i++)
            assert_int_equal(at[i], UNTOUCHED);
        assert_memory_equal(at + before, source + row * (behind + unit) + behind, (size_t)unit);
        for (int64_t i = before + unit; i < wide; i++)
            assert_int_equal(at[i], UNTOUCHED);
    }
    free(source);
    free(target);
}

static void test_bulk_moves_every_byte(void **state)
{
    static const int64_t units[] = {32768, 32769, 100003, 5 << 20};
    (void)state;
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        copy(units[u], 0, 0);
        copy(units[u], 64, 3);
        copy(units[u], 1 + 40 * (int64_t)u, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bulk_moves_every_byte)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
