/* Regions: the calculus against counting points one by one, on small boxes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/mover_region.h>

#include "dice.h"

enum { ROUNDS = 4000, REACH = 4 };

static ferry_region around(int dims)
{
    ferry_region r = {.dims = dims};
    r.low = ferry_point_all(-REACH - 3);
    r.high = ferry_point_all(REACH + 3);
    return r;
}

/* Goal: intersect, bound, difference, contains and equal mean what sets of points mean.
 * Method: random pairs of boxes; every point around is looked up in operands and results. */
static void test_region_calculus_agrees_with_sets(void **state)
{
    (void)state;
    dice d = {1};
    for (int round = 0; round < ROUNDS; round++) {
        int dims = (int)dice_between(&d, 1, 3);
        ferry_region a = dice_region(&d, dims, REACH, true), b = dice_region(&d, dims, REACH, true);
        ferry_region both = ferry_region_intersect(a, b), hull = ferry_region_bound(a, b);
        ferry_region rest[2 * FERRY_DIMS_MAX];
        int count = ferry_region_difference(a, b, rest);
        ferry_region all = around(dims);
        ferry_point p = all.low;
        uint64_t in_a = 0, outside = 0;
        do {
            bool of_a = ferry_region_contains_point(a, p), of_b = ferry_region_contains_point(b, p);
            assert_int_equal(ferry_region_contains_point(both, p), of_a && of_b);
            if (of_a || of_b)
                assert_true(ferry_region_contains_point(hull, p));
            int in_rest = 0;
            for (int i = 0; i < count; i++)
                in_rest += ferry_region_contains_point(rest[i], p);
            assert_int_equal(in_rest, of_a && !of_b);
            in_a += of_a;
            outside += of_a && !of_b;
        } while (ferry_region_next(&all, &p));
        assert_int_equal(ferry_region_size(a), in_a);
        assert_int_equal(ferry_region_is_empty(a), in_a == 0);
        assert_int_equal(ferry_region_contains(b, a), outside == 0);
        assert_int_equal(ferry_region_equal(a, b),
                         ferry_region_contains(a, b) && ferry_region_contains(b, a));
    }
}

/* Goal: grow, shrink, shift, coarsen, refine and permute move points as their names say.
 * Method: as above, point by point. */
static void test_region_transformations_agree_with_points(void **state)
{
    (void)state;
    dice d = {2};
    for (int round = 0; round < ROUNDS; round++) {
        int dims = (int)dice_between(&d, 1, 3);
        ferry_region r = dice_region(&d, dims, REACH, false);
        ferry_point by = ferry_point_of(dice_between(&d, -2, 2), dice_between(&d, -2, 2),
                                        dice_between(&d, -2, 2));
        ferry_point ratio =
            ferry_point_of(dice_between(&d, 1, 3), dice_between(&d, 1, 3), dice_between(&d, 1, 3));
        int8_t axis[3] = {0, 1, 2};
        if (dims == 3 && round % 2)
            memcpy(axis, (int8_t[]){2, 0, 1}, sizeof axis);
        assert_true(ferry_region_equal(ferry_region_shrink(ferry_region_grow(r, ratio), ratio), r));
        assert_int_equal(ferry_region_size(ferry_region_shift(r, by)), ferry_region_size(r));
        ferry_region coarse = ferry_region_coarsen(r, ratio);
        ferry_region turned = ferry_region_permute(r, axis);
        assert_true(ferry_region_contains(ferry_region_refine(coarse, ratio), r));
        ferry_point p = r.low;
        do {
            ferry_point q = p, c = p, t = p;
            for (int i = 0; i < dims; i++) {
                q.at[i] += by.at[i];
                c.at[i] = (p.at[i] + 30 * ratio.at[i]) / ratio.at[i] - 30;
                t.at[i] = p.at[axis[i]];
            }
            assert_true(ferry_region_contains_point(ferry_region_shift(r, by), q));
            assert_true(ferry_region_contains_point(coarse, c));
            assert_true(ferry_region_contains_point(turned, t));
        } while (ferry_region_next(&r, &p));
    }
}

/* Goal: no argument overflows. Method: extremes, under the undefined-behaviour sanitizer too. */
static void test_region_extremes_are_cut_to_the_limit(void **state)
{
    (void)state;
    ferry_region far = ferry_region_make(2, (int64_t[]){INT64_MIN, -1}, (int64_t[]){INT64_MAX, 1});
    assert_true(far.low.at[0] == -FERRY_COORDINATE_MAX && far.high.at[0] == FERRY_COORDINATE_MAX);
    ferry_region more = ferry_region_grow(far, ferry_point_all(INT64_MAX));
    assert_true(more.high.at[1] == FERRY_COORDINATE_MAX);
    assert_true(ferry_region_is_empty(ferry_region_shrink(far, ferry_point_all(INT64_MAX))));
    assert_true(ferry_region_size(more) == UINT64_MAX);
    (void)ferry_region_shift(far, ferry_point_all(INT64_MIN));
    (void)ferry_region_refine(far, ferry_point_all(INT64_MAX));
    assert_true(ferry_region_is_empty(ferry_region_make(7, more.low.at, more.high.at)));
    assert_true(ferry_region_is_empty(ferry_region_permute(far, (int8_t[]){0, 0})));
    assert_int_equal(ferry_region_size(ferry_region_sized(2, (int64_t[]){10, 5})), 50);
}

/* Goal: text and back is the same; what is no region is refused; cuts stay within the buffer.
 * Method: random regions, then a list of bad texts. */
static void test_region_text_comes_back(void **state)
{
    (void)state;
    dice d = {3};
    char text[400], cut[8];
    for (int round = 0; round < ROUNDS; round++) {
        int dims = (int)dice_between(&d, 1, 6), found;
        ferry_region r = dice_region(&d, dims, 1000000, true), back;
        int length = ferry_region_format(r, text, sizeof text);
        assert_int_equal((size_t)length, strlen(text));
        assert_int_equal(ferry_region_format(r, cut, sizeof cut), length);
        assert_int_equal(strlen(cut), length < 7 ? length : 7);
        assert_int_equal(ferry_region_parse(text, &back), 0);
        assert_memory_equal(&back, &r, sizeof r);
        ferry_point p;
        ferry_point_format(r.low, dims, text, sizeof text);
        assert_int_equal(ferry_point_parse(text, &p, &found), 0);
        assert_int_equal(found, dims);
        assert_memory_equal(&p, &r.low, sizeof p);
    }
    ferry_region r = ferry_region_make(2, (int64_t[]){0, 0}, (int64_t[]){9, 4});
    ferry_region_format(r, text, sizeof text);
    assert_string_equal(text, "[0:9,0:4]");
    const char *bad[] = {"",
                         "[",
                         "[1]",
                         "[1:2",
                         "[1:2,]",
                         "1:2",
                         "[1:2] x",
                         "[a:b]",
                         "[0:99999999999999999999]",
                         "[0:1,0:1,0:1,0:1,0:1,0:1,0:1]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ferry_region_parse(bad[i], &r), FERRY_EINVAL);
    int dims;
    ferry_point p;
    assert_int_equal(ferry_point_parse("(1,2", &p, &dims), FERRY_EINVAL);
    assert_int_equal(ferry_region_parse(" [ -3 : 4 ]", &r), 0);
    assert_int_equal(ferry_region_size(r), 8);
}

/* Goal: taking regions out of a list leaves exactly the points of none of them.
 * Method: one box, random boxes taken out, points counted. */
static void test_region_list_subtracts(void **state)
{
    (void)state;
    dice d = {4};
    for (int round = 0; round < 200; round++) {
        int dims = (int)dice_between(&d, 1, 3);
        ferry_regions list = {0};
        ferry_region all = around(dims), taken[5];
        assert_int_equal(ferry_regions_add(&list, all), 0);
        for (int i = 0; i < 5; i++) {
            taken[i] = dice_region(&d, dims, REACH, true);
            assert_int_equal(ferry_regions_subtract(&list, taken[i]), 0);
        }
        ferry_point p = all.low;
        uint64_t left = 0;
        do {
            bool out = false;
            size_t in = 0;
            for (int i = 0; i < 5; i++)
                out |= ferry_region_contains_point(taken[i], p);
            for (size_t i = 0; i < list.count; i++)
                in += ferry_region_contains_point(list.items[i], p);
            assert_int_equal(in, !out);
            left += !out;
        } while (ferry_region_next(&all, &p));
        assert_int_equal(ferry_regions_size(&list), left);
        ferry_regions_fini(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_region_calculus_agrees_with_sets),
        cmocka_unit_test(test_region_transformations_agree_with_points),
        cmocka_unit_test(test_region_extremes_are_cut_to_the_limit),
        cmocka_unit_test(test_region_text_comes_back),
        cmocka_unit_test(test_region_list_subtracts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
