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

/* How far random boxes reach: less in many dimensions, where points are many. */
static int64_t reach_of(int dims)
{
    return dims > 3 ? 1 : REACH;
}

static ferry_region around(int dims)
{
    ferry_region r = {.dims = dims};
    r.low = ferry_point_all(-reach_of(dims) - (dims > 3 ? 1 : 3));
    r.high = ferry_point_all(reach_of(dims) + (dims > 3 ? 1 : 3));
    return r;
}

/* 1 to 3 dimensions, now and then up to 6. */
static int dice_dims(dice *d, int round)
{
    return (int)(round % 16 == 0 ? dice_between(d, 4, 6) : dice_between(d, 1, 3));
}

/* A value per dimension, the rest 0. */
static ferry_point dice_point(dice *d, int dims, int64_t low, int64_t high)
{
    ferry_point p = {{0}};
    for (int i = 0; i < dims; i++)
        p.at[i] = dice_between(d, low, high);
    return p;
}

/* Makes `box`, empty at first, the smallest one with `p` too. */
static void stretch(ferry_region *box, int dims, ferry_point p)
{
    if (box->dims == 0)
        *box = (ferry_region){.dims = dims, .low = p, .high = p};
    for (int i = 0; i < dims; i++) {
        if (p.at[i] < box->low.at[i])
            box->low.at[i] = p.at[i];
        if (p.at[i] > box->high.at[i])
            box->high.at[i] = p.at[i];
    }
}

/* Goal: intersect, bound, difference, contains and equal mean what sets of points mean.
 * Method: random pairs of boxes; every point around is looked up in operands and results. */
static void test_region_calculus_agrees_with_sets(void **state)
{
    (void)state;
    dice d = {1};
    for (int round = 0; round < ROUNDS; round++) {
        int dims = dice_dims(&d, round);
        ferry_region a = dice_region(&d, dims, reach_of(dims), true);
        ferry_region b = dice_region(&d, dims, reach_of(dims), true), smallest = {.dims = 0};
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
                stretch(&smallest, dims, p);
            int in_rest = 0;
            for (int i = 0; i < count; i++)
                in_rest += ferry_region_contains_point(rest[i], p);
            assert_int_equal(in_rest, of_a && !of_b);
            in_a += of_a;
            outside += of_a && !of_b;
        } while (ferry_region_next(&all, &p));
        assert_true(ferry_region_equal(hull, smallest));
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
        int dims = dice_dims(&d, round);
        ferry_region r = dice_region(&d, dims, reach_of(dims), false), reached = {.dims = 0};
        ferry_point by = dice_point(&d, dims, -2, 2), ratio = dice_point(&d, dims, 1, 3);
        int8_t axis[FERRY_DIMS_MAX];
        uint64_t grown = 1, fine = 1;
        for (int i = 0; i < dims; i++) {
            int k = (int)dice_between(&d, 0, i);
            axis[i] = axis[k];
            axis[k] = (int8_t)i;
        }
        ferry_region wide = ferry_region_grow(r, ratio), coarse = ferry_region_coarsen(r, ratio);
        ferry_region turned = ferry_region_permute(r, axis);
        ferry_region refined = ferry_region_refine(coarse, ratio);
        for (int i = 0; i < dims; i++) {
            grown *= ferry_region_extent(r, i) + 2 * (uint64_t)ratio.at[i];
            fine *= ferry_region_extent(coarse, i) * (uint64_t)ratio.at[i];
        }
        assert_true(ferry_region_contains(wide, r) && ferry_region_size(wide) == grown);
        assert_true(ferry_region_equal(ferry_region_shrink(wide, ratio), r));
        assert_int_equal(ferry_region_size(ferry_region_shift(r, by)), ferry_region_size(r));
        assert_int_equal(ferry_region_size(turned), ferry_region_size(r));
        assert_true(ferry_region_contains(refined, r) && ferry_region_size(refined) == fine);
        assert_true(ferry_region_equal(ferry_region_coarsen(refined, ratio), coarse));
        ferry_point p = r.low;
        do {
            ferry_point q = p, c = p, t = p;
            for (int i = 0; i < dims; i++) {
                q.at[i] += by.at[i];
                c.at[i] = (p.at[i] + 30 * ratio.at[i]) / ratio.at[i] - 30;
                t.at[i] = p.at[axis[i]];
            }
            assert_true(ferry_region_contains_point(ferry_region_shift(r, by), q));
            assert_true(ferry_region_contains_point(turned, t));
            stretch(&reached, dims, c);
        } while (ferry_region_next(&r, &p));
        assert_true(ferry_region_equal(coarse, reached));
    }
}

/* Goal: empty regions are as documented. Method: each function on boxes empty in one dimension, and
 * on those of none. */
static void test_region_empty_is_one(void **state)
{
    (void)state;
    const ferry_region none = {.dims = 0}, full = box(2, 3);
    const ferry_region thin = ferry_region_make(2, (int64_t[]){0, 5}, (int64_t[]){9, 4});
    ferry_region rest[2 * FERRY_DIMS_MAX];
    assert_true(ferry_region_is_empty(none) && ferry_region_is_empty(thin));
    assert_true(ferry_region_equal(none, thin) && !ferry_region_equal(thin, full));
    assert_int_equal(ferry_region_size(thin), 0);
    assert_int_equal(ferry_region_extent(thin, 1), 0);
    assert_true(ferry_region_contains(full, thin) && ferry_region_contains(none, thin));
    assert_false(ferry_region_contains(thin, full));
    assert_false(ferry_region_contains_point(none, ferry_point_all(0)));
    assert_true(ferry_region_equal(ferry_region_bound(thin, full), full));
    assert_true(ferry_region_equal(ferry_region_bound(full, none), full));
    assert_true(ferry_region_is_empty(ferry_region_bound(full, box(3, 3))));
    assert_true(ferry_region_is_empty(ferry_region_intersect(full, box(3, 3))));
    assert_false(ferry_region_contains(box(3, 3), full));
    assert_int_equal(ferry_region_difference(thin, full, rest), 0);
    assert_int_equal(ferry_region_difference(full, thin, rest), 1);
    assert_int_equal(ferry_region_difference(full, box(3, 3), rest), 1);
    assert_true(ferry_region_is_empty(ferry_region_coarsen(thin, ferry_point_all(2))));
    assert_true(ferry_region_is_empty(ferry_region_refine(thin, ferry_point_all(2))));
    assert_true(ferry_region_is_empty(ferry_region_sized(2, (int64_t[]){3, 0})));
    assert_true(ferry_region_is_empty(ferry_region_sized(2, (int64_t[]){3, INT64_MIN})));
    const ferry_point two = ferry_point_all(2);
    assert_true(ferry_region_is_empty(ferry_region_shrink(full, two)));
    assert_true(ferry_region_equal(ferry_region_grow(ferry_region_shrink(full, two), two), full));
    ferry_regions list = {0};
    assert_int_equal(ferry_regions_add(&list, thin), 0);
    assert_int_equal(list.count, 0);
    ferry_regions_fini(&list);
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
    ferry_region corner = ferry_region_shift(far, ferry_point_all(INT64_MIN));
    assert_true(corner.low.at[0] == -FERRY_COORDINATE_MAX && corner.high.at[0] == 0);
    assert_int_equal(ferry_region_extent(corner, 1), 2);
    corner = ferry_region_grow(corner, ferry_point_all(INT64_MIN));
    assert_true(ferry_region_is_empty(corner));
    ferry_region fine = ferry_region_refine(far, ferry_point_all(INT64_MAX));
    assert_true(ferry_region_equal(fine, ferry_region_make(2, (int64_t[]){INT64_MIN, INT64_MIN},
                                                           (int64_t[]){INT64_MAX, INT64_MAX})));
    ferry_region coarse = ferry_region_coarsen(far, ferry_point_all(INT64_MAX));
    assert_true(coarse.low.at[0] == -1 && coarse.high.at[0] == 0);
    assert_true(ferry_region_equal(ferry_region_coarsen(far, ferry_point_all(-1)), far));
    assert_true(ferry_region_equal(ferry_region_refine(far, ferry_point_all(INT64_MIN)), far));
    ferry_regions list = {0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(ferry_regions_add(&list, ferry_region_make(1, far.low.at, far.high.at)),
                         0);
    assert_true(ferry_regions_size(&list) == UINT64_MAX);
    ferry_regions_fini(&list);
    assert_true(ferry_region_is_empty(ferry_region_make(7, more.low.at, more.high.at)));
    assert_true(ferry_region_is_empty(ferry_region_permute(far, (int8_t[]){0, 0})));
    assert_int_equal(ferry_region_size(ferry_region_sized(2, (int64_t[]){10, 5})), 50);
}

/* Goal: regions that no function makes, with corners at the ends of the type or dimensions that
 * cannot be, neither overflow nor are read beyond their end. Method: every function, under the
 * sanitizers too. */
static void test_region_of_any_contents_is_safe(void **state)
{
    (void)state;
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    static const int32_t dims[] = {INT32_MIN,          -1,       0, 1, FERRY_DIMS_MAX,
                                   FERRY_DIMS_MAX + 1, INT32_MAX};
    static const int8_t axis[FERRY_DIMS_MAX] = {0, 1, 2, 3, 4, 5};
    const size_t n = sizeof ends / sizeof *ends;
    char text[400];
    for (size_t i = 0; i < n * n * n; i++) {
        const ferry_region r = {dims[i / n / n], ferry_point_all(ends[i % n]),
                                ferry_point_all(ends[i / n % n])};
        const bool none = r.dims < 1 || r.dims > FERRY_DIMS_MAX;
        const ferry_region all = ferry_region_make(1, &ends[0], &ends[n - 1]);
        ferry_region rest[2 * FERRY_DIMS_MAX];
        assert_int_equal(ferry_region_is_empty(r), none || r.low.at[0] > r.high.at[0]);
        assert_int_equal(ferry_region_size(r) == 0, ferry_region_is_empty(r));
        assert_int_equal(ferry_region_contains_point(r, r.low), !ferry_region_is_empty(r));
        assert_true(ferry_region_equal(r, r) && ferry_region_contains(r, r));
        assert_in_range(ferry_region_difference(r, all, rest), 0, 2 * FERRY_DIMS_MAX);
        assert_true(ferry_region_format(r, text, sizeof text) < (int)sizeof text);
        for (size_t w = 0; w < n; w++) {
            const ferry_point by = ferry_point_all(ends[w]);
            const ferry_region made[] = {
                ferry_region_grow(r, by),       ferry_region_shrink(r, by),
                ferry_region_shift(r, by),      ferry_region_refine(r, by),
                ferry_region_intersect(r, all), ferry_region_bound(r, all),
                ferry_region_permute(r, axis),  ferry_region_coarsen(r, by),
            };
            for (size_t k = 0; k < 4 && !ferry_region_is_empty(made[k]); k++)
                assert_in_range(made[k].high.at[0] + FERRY_COORDINATE_MAX, 0,
                                2 * FERRY_COORDINATE_MAX);
        }
    }
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
    memset(cut, 'x', sizeof cut);
    assert_int_equal(ferry_region_format(r, cut, 1), 9);
    assert_int_equal(cut[0], 0);
    assert_int_equal(cut[1], 'x');
    assert_int_equal(ferry_region_format(r, NULL, 0), 9);
    assert_int_equal(ferry_region_format((ferry_region){.dims = 0}, text, sizeof text), 2);
    assert_string_equal(text, "[]");
    assert_int_equal(ferry_region_parse(text, &r), 0);
    assert_int_equal(r.dims, 0);
    const ferry_point limit = ferry_point_all(FERRY_COORDINATE_MAX);
    ferry_region all = {.dims = 6, .low = ferry_point_all(-FERRY_COORDINATE_MAX), .high = limit};
    assert_int_equal(ferry_region_format(all, text, sizeof text), 247);
    assert_int_equal(ferry_region_parse(text, &r), 0);
    assert_memory_equal(&r, &all, sizeof r);
    const char *bad[] = {"",
                         "[",
                         "[1]",
                         "[1:2",
                         "[1:2,]",
                         "1:2",
                         "[1:2] x",
                         "[a:b]",
                         "[0:99999999999999999999]",
                         "[0:2305843009213693953]",
                         "[-2305843009213693953:0]",
                         "[- 1:2]",
                         "[1:2 3:4]",
                         "[,1:2]",
                         "[0:1,0:1,0:1,0:1,0:1,0:1,0:1]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ferry_region_parse(bad[i], &r), FERRY_EINVAL);
        snprintf(text, sizeof text, "region_parse: \"%s\" is no region", bad[i]);
        assert_non_null(strstr(ferry_error_message(NULL), text));
    }
    int dims;
    ferry_point p;
    const char *bad_points[] = {"",      "(1,2",  "(1,)",  "1,2",
                                "(1) x", "(1:2)", "(1 2)", "(1,2,3,4,5,6,7)"};
    for (size_t i = 0; i < sizeof bad_points / sizeof *bad_points; i++) {
        assert_int_equal(ferry_point_parse(bad_points[i], &p, &dims), FERRY_EINVAL);
        snprintf(text, sizeof text, "point_parse: \"%s\" is no point", bad_points[i]);
        assert_non_null(strstr(ferry_error_message(NULL), text));
    }
    assert_int_equal(ferry_point_parse(" ( ) ", &p, &dims), 0);
    assert_int_equal(dims, 0);
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
        cmocka_unit_test(test_region_empty_is_one),
        cmocka_unit_test(test_region_extremes_are_cut_to_the_limit),
        cmocka_unit_test(test_region_of_any_contents_is_safe),
        cmocka_unit_test(test_region_text_comes_back),
        cmocka_unit_test(test_region_list_subtracts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
