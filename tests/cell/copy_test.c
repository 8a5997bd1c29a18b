/* Goal: copies by descriptor give the bytes that were computed by hand, and no descriptor, however
 * hostile, reads or writes outside what it was given. Method: exact tables; then random words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "cell/state.h"
#include "ranks.h"

enum {
    FROM_BIG = FERRY_CONVERT_FROM_BIG,
    TO_BIG = FERRY_CONVERT_TO_BIG,
    FROM_4 = FERRY_CONVERT_FROM_LONG4,
    TO_4 = FERRY_CONVERT_TO_LONG4,
};

static test_job job;

static int open_job(void **state)
{
    (void)state;
    job_open(&job, 2, 8, 1024);
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    job_close(&job);
    return 0;
}

typedef struct example {
    int conversion;
    int descriptor[24];
    size_t length;
    unsigned char source[24];
    size_t source_bytes;
    unsigned char target[24];
    size_t target_bytes;
} example;

static const example examples[] = {
    /* bytes are never converted */
    {TO_BIG, {1, 3, FERRY_BYTE, 1, 0}, 5, {9, 1, 2, 3}, 4, {1, 2, 3}, 3},
    /* 0x0102, 0xfffe to big-endian */
    {TO_BIG,
     {1, 2, FERRY_INT16, 0, 0},
     5,
     {0x02, 0x01, 0xfe, 0xff},
     4,
     {0x01, 0x02, 0xff, 0xfe},
     4},
    {FROM_BIG, {1, 1, FERRY_INT32, 0, 0}, 5, {1, 2, 3, 4}, 4, {4, 3, 2, 1}, 4},
    {FROM_BIG | TO_BIG, {1, 1, FERRY_INT32, 0, 0}, 5, {1, 2, 3, 4}, 4, {1, 2, 3, 4}, 4},
    {TO_BIG,
     {1, 1, FERRY_INT64, 0, 0},
     5,
     {1, 2, 3, 4, 5, 6, 7, 8},
     8,
     {8, 7, 6, 5, 4, 3, 2, 1},
     8},
    /* 1.0f is 0x3f800000; -2.5 is 0xc004000000000000 */
    {TO_BIG, {1, 1, FERRY_FLOAT, 0, 0}, 5, {0, 0, 0x80, 0x3f}, 4, {0x3f, 0x80, 0, 0}, 4},
    {FROM_BIG, {1, 1, FERRY_DOUBLE, 0, 0}, 5, {0xc0, 0x04}, 8, {0, 0, 0, 0, 0, 0, 0x04, 0xc0}, 8},
    /* -2 from 8 bytes to 4, and back from big-endian 4 to little-endian 8 */
    {TO_4,
     {1, 1, FERRY_LONG, 0, 0},
     5,
     {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
     8,
     {0xfe, 0xff, 0xff, 0xff},
     4},
    {FROM_4 | FROM_BIG,
     {1, 1, FERRY_LONG, 0, 0},
     5,
     {0xff, 0xff, 0xff, 0xfe},
     4,
     {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
     8},
    {FROM_4 | TO_BIG,
     {1, 1, FERRY_ULONG, 0, 0},
     5,
     {0xfe, 0xff, 0xff, 0xff},
     4,
     {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe},
     8},
    {FROM_4 | TO_4 | TO_BIG,
     {1, 2, FERRY_LONG, 0, 0},
     5,
     {1, 0, 0, 0, 2, 0, 0, 0},
     8,
     {0, 0, 0, 1, 0, 0, 0, 2},
     8},
    /* two structures of a byte and an int16 with padding, packed, to big-endian */
    {TO_BIG,
     {1, 2, FERRY_STRUCT, 0, 1, 4, 3, 2, 1, FERRY_BYTE, 0, 0, 1, FERRY_INT16, 2, 1},
     16,
     {7, 99, 0x02, 0x01, 8, 99, 0x04, 0x03},
     8,
     {0, 7, 0x01, 0x02, 8, 0x03, 0x04},
     7},
    /* structures in structures: rows of a 2 x 2 matrix of int16, transposed by strides */
    {0,
     {1, 2, FERRY_STRUCT, 0, 0, 4, 2, 2, 1, FERRY_INT16, 0, 0, 1, FERRY_INT16, 2, 4},
     16,
     {1, 0, 2, 0, 3, 0, 4, 0},
     8,
     {1, 0, 3, 0, 2, 0, 4, 0},
     8},
    /* nothing at all */
    {0, {0}, 1, {1}, 1, {0}, 1},
    {0, {1, 0, FERRY_INT64, 2000000000, 2000000000}, 5, {1}, 1, {0}, 1},
    {0, {1, 0, FERRY_STRUCT, 0, 0, 8, 8, 1, 1, FERRY_DOUBLE, 0, 0}, 12, {1}, 4, {0}, 4},
    /* no structure, whatever is in one; then a byte */
    {0,
     {2, 0,         FERRY_STRUCT, 0, 0, 8,         8,
      1, INT32_MAX, FERRY_STRUCT, 0, 0, INT32_MAX, INT32_MAX,
      1, 1,         FERRY_DOUBLE, 0, 0, 1,         FERRY_BYTE,
      0, 0},
     23,
     {7},
     4,
     {7},
     4},
};

static int copy(const example *e, unsigned char *target)
{
    return ferry_fields_copy(job.f[0], (ferry_extent){target, e->target_bytes},
                             (ferry_extent){(void *)(uintptr_t)e->source, e->source_bytes},
                             e->descriptor, e->length, e->conversion);
}

/* Goal: the bytes of each example. The transposing one overlaps its structures in the target, which
 * is refused. */
static void test_copy_gives_the_computed_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        unsigned char target[24] = {0};
        bool overlaps = examples[i].descriptor[6] == 2 && examples[i].descriptor[5] == 4;
        assert_int_equal(copy(&examples[i], target), overlaps ? FERRY_EINVAL : 0);
        if (!overlaps)
            assert_memory_equal(target, examples[i].target, sizeof(target));
    }
}

/* Goal: a long that has no equal of 4 bytes is an error. Method: both sides of each limit. */
static void test_longs_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        int type, error;
    } cases[] = {
        {INT32_MAX, FERRY_LONG, 0},      {(int64_t)INT32_MAX + 1, FERRY_LONG, FERRY_ERANGE},
        {INT32_MIN, FERRY_LONG, 0},      {(int64_t)INT32_MIN - 1, FERRY_LONG, FERRY_ERANGE},
        {UINT32_MAX, FERRY_ULONG, 0},    {(int64_t)UINT32_MAX + 1, FERRY_ULONG, FERRY_ERANGE},
        {-1, FERRY_ULONG, FERRY_ERANGE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        example e = {TO_4, {1, 1, cases[i].type, 0, 0}, 5, {0}, 8, {0}, 4};
        unsigned char target[24];
        memcpy(e.source, &cases[i].value, 8);
        assert_int_equal(copy(&e, target), cases[i].error);
    }
}

/* Goal: an error says which word is wrong, and its value. */
static void test_errors_name_the_word(void **state)
{
    (void)state;
    static const struct {
        example e;
        const char *says;
    } cases[] = {
        {{0, {1, 1, 77, 0, 0}, 5, {0}, 8, {0}, 8}, "none of 0..9 (word 2 of 5 is 77)"},
        {{0, {1, 1, FERRY_BYTE, 0, -3}, 5, {0}, 8, {0}, 8}, "displacement (word 4 of 5 is -3)"},
        {{0, {1, 9, FERRY_BYTE, 0, 0}, 5, {0}, 8, {0}, 8}, "its count (word 1 of 5 is 9)"},
        {{0, {1, 1, FERRY_BYTE, 0}, 4, {0}, 8, {0}, 8}, "inside a field (it has 4 words)"},
        {{0, {1, 2, FERRY_STRUCT, 0, 0, 4, 3, 1, 1, FERRY_INT32, 0, 0}, 12, {0}, 8, {0}, 8},
         "by their stride (word 6 of 12 is 3)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char target[24];
        assert_int_equal(copy(&cases[i].e, target), FERRY_EINVAL);
        if (strstr(ferry_error_message(job.f[0]), cases[i].says) == NULL)
            fail_msg("case %zu: \"%s\"", i, ferry_error_message(job.f[0]));
    }
    const ferry_extent none = {0};
    assert_int_equal(ferry_fields_copy(job.f[0], none, none, NULL, 3, 0), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "3 words at NULL; expected 1 to"));
    assert_int_equal(ferry_fields_copy(job.f[0], none, none, NULL, 3, 16), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "16 is unknown; expected 0..15"));
}

/* Goal: malformed descriptors are refused before anything is written. Method: one of each kind. */
static void test_hostile_descriptors_are_refused(void **state)
{
    (void)state;
    static const example hostile[] = {
        {0, {0}, 0, {0}, 8, {0}, 8},
        {0, {1}, 1, {0}, 8, {0}, 8},
        {0, {-1}, 1, {0}, 8, {0}, 8},
        {0, {INT32_MAX}, 1, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_INT32, 0}, 4, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_INT32, 0, 0, 0}, 6, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_INT32, 5, 0}, 5, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_INT32, 0, 5}, 5, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_INT32, -1, 0}, 5, {0}, 8, {0}, 8},
        {0, {1, -1, FERRY_INT32, 0, 0}, 5, {0}, 8, {0}, 8},
        {0, {1, INT32_MAX, FERRY_INT64, 0, 0}, 5, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_STRUCT + 1, 0, 0}, 5, {0}, 8, {0}, 8},
        {0, {1, 1, -1, 0, 0}, 5, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_STRUCT, 0, 0}, 5, {0}, 8, {0}, 8},
        {0, {1, 1, FERRY_STRUCT, 0, 0, -4, 4, 0}, 8, {0}, 8, {0}, 8},
        {0, {1, INT32_MAX, FERRY_STRUCT, 0, 0, 0, 0, 1, 1, FERRY_BYTE, 0, 0}, 12, {0}, 8, {0}, 8},
        {16, {0}, 1, {0}, 8, {0}, 8},
        {-1, {0}, 1, {0}, 8, {0}, 8},
    };
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        unsigned char target[24], before[24];
        memset(target, 0x5a, sizeof(target));
        memcpy(before, target, sizeof(target));
        assert_int_equal(copy(&hostile[i], target), FERRY_EINVAL);
        assert_memory_equal(target, before, sizeof(target));
    }
    /* Deeper than 16, and counts that would take forever if nothing were refused. */
    int deep[6 * 40 + 1];
    for (int i = 0; i < 40; i++) {
        const int words[] = {1, INT32_MAX, FERRY_STRUCT, 0, 0, 0};
        memcpy(&deep[i * 6], words, sizeof(words));
    }
    unsigned char bytes[8] = {0};
    const ferry_extent all = {bytes, sizeof(bytes)};
    assert_int_equal(ferry_fields_copy(job.f[0], all, all, deep, 241, 0), FERRY_EINVAL);
    assert_int_equal(ferry_fields_copy(job.f[0], all, all, NULL, 5, 0), FERRY_EINVAL);
}

/* Goal: whatever the words are, nothing outside is touched, and it ends. Method: random small and
 * large words; the borders are checked, and by the sanitizers. */
static void test_random_descriptors_stay_inside(void **state)
{
    (void)state;
    enum { TRIES = 200000, ROOM = 64, BORDER = 64 };
    fy_random random;
    fy_random_init(&random, 1, 1);
    for (int i = 0; i < TRIES; i++) {
        int words[20];
        unsigned char *source = malloc(ROOM), target[BORDER + ROOM + BORDER];
        size_t length = fy_random_below(&random, 20) + 1;
        assert_non_null(source);
        memset(source, 1, ROOM);
        memset(target, 2, sizeof(target));
        for (size_t w = 0; w < length; w++)
            words[w] = fy_random_below(&random, 16) == 0 ? (int)fy_random_next(&random)
                                                         : (int)fy_random_below(&random, 9);
        (void)!ferry_fields_copy(job.f[0], (ferry_extent){target + BORDER, ROOM},
                                 (ferry_extent){source, ROOM}, words, length,
                                 (int)fy_random_below(&random, 16));
        for (int b = 0; b < BORDER; b++)
            assert_true(target[b] == 2 && target[BORDER + ROOM + b] == 2);
        free(source);
    }
}

/* Goal: ranks of one node need no conversion. */
static void test_transtab_between_equals(void **state)
{
    (void)state;
    int conversion;
    assert_int_equal(ferry_conversion_find(job.f[0], 0, 1, &conversion), 0);
    assert_int_equal(ferry_conversion_find(job.f[0], 0, 1, NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(job.f[0]), "conversion_find: the result is missing");
    assert_true(conversion == 0 || conversion == (FROM_BIG | TO_BIG));
    assert_int_equal(ferry_conversion_find(job.f[0], 0, 2, &conversion), FERRY_EINVAL);
    assert_int_equal(ferry_conversion_find(job.f[0], 0, 1, NULL), FERRY_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_gives_the_computed_bytes),
        cmocka_unit_test(test_longs_that_do_not_fit),
        cmocka_unit_test(test_errors_name_the_word),
        cmocka_unit_test(test_hostile_descriptors_are_refused),
        cmocka_unit_test(test_random_descriptors_stay_inside),
        cmocka_unit_test(test_transtab_between_equals),
    };
    return cmocka_run_group_tests(tests, open_job, close_job);
}
