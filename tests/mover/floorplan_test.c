/* Floor plans: decompositions cover, maps share, weights are followed, and checks name what is
 * wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/mover_plan.h>

#include "dice.h"

/* Goal: every way to cut covers the domain without overlap. Method: random domains and counts. */
static void test_floorplan_decompositions_cover(void **state)
{
    (void)state;
    dice d = {11};
    const int rules = FERRY_FLOORPLAN_DISJOINT | FERRY_FLOORPLAN_INSIDE | FERRY_FLOORPLAN_COVER;
    for (int round = 0; round < 300; round++) {
        int dims = (int)dice_between(&d, 1, 6), count = (int)dice_between(&d, 1, 12);
        ferry_region domain = dice_region(&d, dims, dims > 4 ? 8 : 20, false);
        ferry_floorplan plan;
        ferry_point parts = ferry_floorplan_parts(domain, count);
        assert_int_equal(ferry_floorplan_cut(domain, parts, &plan), 0);
        assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, domain, rules), 0);
        ferry_floorplan_fini(&plan);
        assert_int_equal(ferry_floorplan_tile(domain, ferry_point_all(7), &plan), 0);
        assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, domain, rules), 0);
        ferry_floorplan_fini(&plan);
        if (ferry_region_size(domain) < 100)
            continue;
        assert_int_equal(ferry_floorplan_bisect(domain, count, NULL, NULL, &plan), 0);
        assert_int_equal(plan.count, count);
        assert_int_equal(ferry_floorplan_check(NULL, &plan, count, domain, rules), 0);
        ferry_floorplan_fini(&plan);
    }
    ferry_point parts = ferry_floorplan_parts(box(3, 64), 8);
    assert_true(parts.at[0] == 2 && parts.at[1] == 2 && parts.at[2] == 2);
    parts = ferry_floorplan_parts(ferry_region_sized(2, (int64_t[]){2, 100}), 7);
    assert_true(parts.at[0] == 1 && parts.at[1] == 7);
    parts = ferry_floorplan_parts(box(2, 8), 0);
    assert_true(parts.at[0] == 1 && parts.at[1] == 1);
}

/* Goal: a part made alone is the block of the whole cut; numbers beyond are empty.
 * Method: every number of a cut in 6 dimensions, one before and one after. */
static void test_floorplan_part_is_block_of_cut(void **state)
{
    (void)state;
    const ferry_region domain = ferry_region_shift(box(6, 5), ferry_point_all(-3));
    const ferry_point parts = {{1, 2, 3, 1, 5, 2}};
    ferry_floorplan plan;
    assert_int_equal(ferry_floorplan_cut(domain, parts, &plan), 0);
    assert_int_equal(plan.count, 60);
    for (size_t i = 0; i < plan.count; i++)
        assert_true(ferry_region_equal(ferry_floorplan_part(domain, parts, (int64_t)i),
                                       plan.blocks[i].region));
    assert_true(ferry_region_is_empty(ferry_floorplan_part(domain, parts, 60)));
    assert_true(ferry_region_is_empty(ferry_floorplan_part(domain, parts, -1)));
    assert_true(ferry_region_is_empty(ferry_floorplan_part(domain, ferry_point_all(0), 0)));
    ferry_floorplan_fini(&plan);
    assert_int_equal(ferry_floorplan_cut(domain, ferry_point_all(0), &plan), FERRY_EINVAL);
    assert_int_equal(ferry_floorplan_cut(domain, ferry_point_all(INT64_MAX), &plan), FERRY_EINVAL);
    assert_int_equal(ferry_floorplan_cut(box(2, 0), ferry_point_all(1), &plan), FERRY_EINVAL);
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_all(0), &plan), FERRY_EINVAL);
    assert_int_equal(ferry_floorplan_tile(box(2, 0), ferry_point_all(1), &plan), FERRY_EINVAL);
}

/* Goal: maps give each rank its share. Method: 16^2 blocks with random weights; counts and weights
 * per rank. */
static void test_floorplan_maps_share_weights(void **state)
{
    (void)state;
    enum { RANKS = 7 };
    ferry_floorplan plan;
    double weights[256], sum = 0;
    dice d = {12};
    assert_int_equal(ferry_floorplan_tile(box(2, 64), ferry_point_all(4), &plan), 0);
    for (size_t i = 0; i < plan.count; i++)
        sum += weights[i] = (double)dice_between(&d, 1, 10);
    for (int which = 0; which < 5; which++) {
        int error = which == 0   ? ferry_floorplan_map_block(&plan, RANKS)
                    : which == 1 ? ferry_floorplan_map_cyclic(&plan, RANKS, 2)
                    : which == 2 ? ferry_floorplan_map_bisect(&plan, RANKS, weights)
                    : which == 3 ? ferry_floorplan_map_curve(&plan, RANKS, weights)
                                 : ferry_floorplan_map_grid(&plan, ferry_point_all(16),
                                                            ferry_point_of(7, 1, 1));
        assert_int_equal(error, 0);
        double share[RANKS] = {0};
        for (size_t i = 0; i < plan.count; i++)
            share[plan.blocks[i].owner] += weights[i];
        for (int r = 0; r < RANKS; r++)
            assert_true(share[r] > 0.7 * sum / RANKS && share[r] < 1.4 * sum / RANKS);
        if (which == 2 || which == 3)
            for (int r = 0; r < RANKS; r++)
                assert_true(share[r] > sum / RANKS - 25 && share[r] < sum / RANKS + 25);
    }
    /* Weights below 0 count as 0; without any weight blocks count. */
    for (int which = 0; which < 4; which++) {
        int share[RANKS] = {0};
        for (int i = 0; i < 256; i++)
            weights[i] = which < 2 ? 0 : i < 64 ? -1 : 1;
        assert_int_equal(which % 2 ? ferry_floorplan_map_bisect(&plan, RANKS, weights)
                                   : ferry_floorplan_map_curve(&plan, RANKS, weights),
                         0);
        for (int i = 0; i < 256; i++) {
            assert_in_range(plan.blocks[i].owner, 0, RANKS - 1);
            share[plan.blocks[i].owner] += which < 2 || weights[i] > 0;
        }
        for (int r = 0; r < RANKS; r++)
            assert_in_range(share[r], (which < 2 ? 256 : 192) / RANKS - 3,
                            (which < 2 ? 256 : 192) / RANKS + 3);
    }
    assert_int_equal(ferry_floorplan_map_block(&plan, 0), FERRY_EINVAL);
    assert_int_equal(ferry_floorplan_map_grid(&plan, ferry_point_all(3), ferry_point_all(1)),
                     FERRY_EINVAL);
    const ferry_point cut = ferry_point_all(16);
    assert_int_equal(ferry_floorplan_map_grid(&plan, cut, ferry_point_all(0)), FERRY_EINVAL);
    assert_int_equal(ferry_floorplan_map_grid(&plan, cut, ferry_point_of(1 << 16, 1 << 15, 1)),
                     FERRY_EINVAL);
    assert_int_equal(ferry_floorplan_map_grid(&plan, cut, ferry_point_of(4, 3, 1)), 0);
    for (int i = 0; i < 256; i++)
        assert_int_equal(plan.blocks[i].owner, i / 16 % 4 * 3 + i % 16 % 3);
    ferry_floorplan_fini(&plan);
}

/* Goal: a wrong floor plan is refused with the blocks' numbers. Method: one fault at a time. */
static void test_floorplan_check_names_blocks(void **state)
{
    (void)state;
    ferry_region domain = box(2, 16);
    ferry_floorplan plan;
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_all(4), &plan), 0);
    plan.blocks[5].region.high.at[0]++;
    assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, domain, FERRY_FLOORPLAN_DISJOINT),
                     FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "block 5"));
    assert_non_null(strstr(ferry_error_message(NULL), "block 9"));
    plan.blocks[5].region.high.at[0] -= 2;
    assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, domain, FERRY_FLOORPLAN_COVER),
                     FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "[7:7,4:7]"));
    assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, box(2, 15), FERRY_FLOORPLAN_INSIDE),
                     FERRY_EINVAL);
    assert_non_null(
        strstr(ferry_error_message(NULL), "block 3 [0:3,12:15] is not inside [0:14,0:14]"));
    assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, box(3, 16), FERRY_FLOORPLAN_COVER),
                     FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "3 dimensions, expected 2"));
    plan.blocks[2].region.dims = 1;
    assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, domain, 0), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "block 2 has 1 dimensions, expected 2"));
    plan.blocks[2].region = box(2, 0);
    assert_int_equal(ferry_floorplan_check(NULL, &plan, 1, domain, 0), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "block 2 [0:-1,0:-1] is empty"));
    plan.blocks[2].region = box(2, 4);
    plan.blocks[3].owner = 4;
    assert_int_equal(ferry_floorplan_check(NULL, &plan, 4, domain, 0), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "block 3"));
    ferry_floorplan_fini(&plan);
}

/* Goal: recursive bisection follows a given weight. Method: all weight in one half. */
static double right_half(void *arg, ferry_region r)
{
    ferry_region *half = arg;
    return (double)ferry_region_size(ferry_region_intersect(r, *half));
}

static void test_floorplan_bisection_follows_weight(void **state)
{
    (void)state;
    ferry_region domain = box(1, 100);
    ferry_region half = domain;
    half.low.at[0] = 60;
    ferry_floorplan plan, copy;
    assert_int_equal(ferry_floorplan_bisect(domain, 4, right_half, &half, &plan), 0);
    for (size_t i = 0; i < plan.count; i++)
        assert_true(right_half(&half, plan.blocks[i].region) == 10);
    assert_int_equal(ferry_floorplan_copy(&plan, &copy), 0);
    assert_int_equal(copy.count, 4);
    assert_memory_equal(copy.blocks, plan.blocks, 4 * sizeof *plan.blocks);
    ferry_floorplan_fini(&copy);
    ferry_floorplan_fini(&plan);
}

/* Goal: bisection makes its boxes wherever the weight is and however few the indices are; more
 * boxes than indices are refused. Method: all weight in one corner; every count for small boxes. */
static void test_floorplan_bisection_always_makes_its_boxes(void **state)
{
    (void)state;
    const int rules = FERRY_FLOORPLAN_DISJOINT | FERRY_FLOORPLAN_INSIDE | FERRY_FLOORPLAN_COVER;
    const int64_t shapes[][3] = {{3, 1, 1}, {3, 2, 1}, {2, 2, 2}, {5, 3, 2}, {4, 4, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ferry_region domain = ferry_region_sized(3, shapes[i]), heavy = domain;
        const int size = (int)ferry_region_size(domain);
        ferry_floorplan plan;
        heavy.low = domain.high;
        for (int count = 1; count <= size; count++)
            for (int weighted = 0; weighted < 2; weighted++) {
                assert_int_equal(ferry_floorplan_bisect(domain, count, weighted ? right_half : NULL,
                                                        &heavy, &plan),
                                 0);
                assert_int_equal(plan.count, count);
                assert_int_equal(ferry_floorplan_check(NULL, &plan, count, domain, rules), 0);
                ferry_floorplan_fini(&plan);
            }
        assert_int_equal(ferry_floorplan_bisect(domain, size + 1, NULL, NULL, &plan), FERRY_EINVAL);
        assert_int_equal(ferry_floorplan_bisect(domain, 0, NULL, NULL, &plan), FERRY_EINVAL);
    }
}

static void expect_text(int error, const char *text)
{
    assert_int_equal(error, FERRY_EINVAL);
    assert_string_equal(ferry_error_message(NULL), text);
}

/* Goal: each call that refuses its arguments says which value was wrong, for the thread.
 * Method: one wrong value per call. */
static void test_floorplan_calls_say_what_was_wrong(void **state)
{
    (void)state;
    const ferry_region domain = box(2, 8);
    ferry_floorplan plan;
    expect_text(ferry_floorplan_cut(domain, ferry_point_of(2, 0, 0), &plan),
                "floorplan_cut: 0 parts in dimension 1, expected 1 or more");
    expect_text(ferry_floorplan_cut(box(2, 0), ferry_point_all(1), &plan),
                "floorplan_cut: the domain of 2 dimensions is empty");
    expect_text(ferry_floorplan_cut(domain, ferry_point_all(65536), &plan),
                "floor plan: 4294967296 parts, expected at most 2147483647");
    expect_text(ferry_floorplan_tile(domain, ferry_point_all(-1), &plan),
                "floorplan_tile: extent -1 in dimension 0, expected 1 to 2305843009213693952");
    expect_text(ferry_floorplan_bisect(domain, 65, NULL, NULL, &plan),
                "floorplan_bisect: 65 boxes of a domain of 64 indices, expected 1 or more, and no "
                "more boxes than indices");
    assert_int_equal(ferry_floorplan_cut(domain, ferry_point_all(2), &plan), 0);
    expect_text(ferry_floorplan_add(&plan, box(3, 1), 0),
                "floorplan_add: the region has 3 dimensions, expected 2 as the plan");
    expect_text(ferry_floorplan_map_block(&plan, 0),
                "floorplan_map_block: 0 ranks, expected 1 or more");
    expect_text(ferry_floorplan_map_cyclic(&plan, 2, 0),
                "floorplan_map_cyclic: chunks of 0 blocks, expected 1 or more");
    expect_text(ferry_floorplan_map_grid(&plan, ferry_point_all(3), ferry_point_all(1)),
                "floorplan_map_grid: 9 parts, expected 4, one for each block");
    expect_text(ferry_floorplan_map_grid(&plan, ferry_point_all(2), ferry_point_all(0)),
                "floorplan_map_grid: 0 ranks, expected 1 to 2147483647");
    int32_t numbers[] = {0, 1, 2, 3};
    plan.numbers = numbers;
    expect_text(ferry_floorplan_map_curve(&plan, 2, NULL),
                "floorplan_map_curve: the plan is a share, expected a whole plan");
    expect_text(ferry_floorplan_add(&plan, box(2, 1), 0),
                "floorplan_add: the plan is a share, expected a whole plan");
    plan.numbers = NULL;
    ferry_floorplan_fini(&plan);
}

/* Goal: weights by which no block can be placed are refused, and no owner changes. */
static void test_map_refuses_weights(void **state)
{
    (void)state;
    const double wrong[][3] = {{1, INFINITY, 1}, {1e308, 1e308, 1}, {-1, NAN, INFINITY}};
    const int64_t extent = 30;
    ferry_floorplan plan;
    const ferry_region domain = ferry_region_sized(1, &extent);
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_all(10), &plan), 0);
    for (int i = 0; i < 3; i++)
        plan.blocks[i].owner = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(ferry_floorplan_map_bisect(&plan, 2, wrong[i]), FERRY_EINVAL);
        assert_int_equal(ferry_floorplan_map_curve(&plan, 2, wrong[i]), FERRY_EINVAL);
        for (int k = 0; k < 3; k++)
            assert_int_equal(plan.blocks[k].owner, 7);
    }
    expect_text(ferry_floorplan_map_curve(&plan, 2, wrong[0]),
                "floorplan_map_curve: the sum of the weights is infinite from block 1 on, which "
                "has inf; expected a finite sum");
    ferry_floorplan_fini(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floorplan_decompositions_cover),
        cmocka_unit_test(test_floorplan_part_is_block_of_cut),
        cmocka_unit_test(test_floorplan_maps_share_weights),
        cmocka_unit_test(test_floorplan_check_names_blocks),
        cmocka_unit_test(test_floorplan_bisection_follows_weight),
        cmocka_unit_test(test_floorplan_bisection_always_makes_its_boxes),
        cmocka_unit_test(test_floorplan_calls_say_what_was_wrong),
        cmocka_unit_test(test_map_refuses_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
