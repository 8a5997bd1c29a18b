/* Errors in motion plans: builders refuse what cannot be planned, and checks name it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/mover_plan.h>

#include "dice.h"

/* Goal: what cannot be planned is refused, and the plan is as before. Method: one fault at a time.
 */
static void test_plan_halo_refuses(void **state)
{
    (void)state;
    ferry_floorplan blocks;
    ferry_plan plan = {0};
    ferry_regions near = {0};
    assert_int_equal(ferry_floorplan_tile(box(2, 8), ferry_point_all(4), &blocks), 0);
    for (int fault = 0; fault < 7; fault++) {
        ferry_halo halo = FERRY_HALO_DEFAULTS;
        halo.low = halo.high = ferry_point_all(1);
        halo.periodic[1] = true;
        halo.domain = box(2, 8);
        blocks.dims = 2;
        if (fault == 1)
            halo.low.at[1] = -1;
        if (fault == 2)
            halo.high.at[0] = INT64_MAX;
        if (fault == 3)
            halo.domain = box(2, 0);
        if (fault == 4)
            halo.domain = box(3, 8);
        if (fault == 5)
            halo.low.at[1] = 65 * 8;
        if (fault == 6)
            blocks.dims = FERRY_DIMS_MAX + 1;
        const size_t before = plan.count, named = near.count;
        const int wanted = fault == 0 ? 0 : FERRY_EINVAL;
        assert_int_equal(ferry_plan_halo(&plan, &blocks, &halo, -1), wanted);
        assert_int_equal(ferry_halo_near(&blocks, &halo, &near), wanted);
        assert_int_equal(plan.count > before, fault == 0);
        assert_int_equal(near.count > named, fault == 0);
    }
    blocks.dims = 2;
    blocks.blocks[3].region.dims = 1;
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    assert_int_equal(ferry_plan_halo(&plan, &blocks, &halo, -1), FERRY_EINVAL);
    ferry_regions_fini(&near);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

static void check_images(int dims, int64_t extent, int64_t period, int64_t width, const char *says)
{
    ferry_floorplan blocks = {.dims = dims};
    ferry_plan plan = {0};
    ferry_regions near = {0};
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.low = halo.high = ferry_point_all(width);
    halo.domain = box(dims, period);
    for (int d = 0; d < dims; d++)
        halo.periodic[d] = true;
    assert_int_equal(ferry_floorplan_add(&blocks, box(dims, 1), 1), 0);
    assert_int_equal(ferry_floorplan_add(&blocks, box(dims, extent), 0), 0);
    for (int rank = -1; rank < 2; rank++) {
        const int error = ferry_plan_halo(&plan, &blocks, &halo, rank);
        assert_int_equal(error, says != NULL ? FERRY_EINVAL : 0);
        if (says != NULL)
            assert_string_equal(ferry_error_message(NULL), says);
    }
    assert_int_equal(ferry_halo_near(&blocks, &halo, &near), says != NULL ? FERRY_EINVAL : 0);
    assert_int_equal(plan.count > 0, says == NULL);
    assert_int_equal(near.count > 0, says == NULL);
    ferry_regions_fini(&near);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

/* Goal: a block that reaches into more images of a periodic domain than anybody means is refused at
 * once, on every rank, with block, width and period; many images are not.
 * Method: blocks over many periods, and widths of some in six dimensions (2 * 10^10 images). */
static void test_plan_halo_bounds_images(void **state)
{
    (void)state;
    check_images(2, 100, 8, 8, NULL);
    check_images(1, 32000, 1, 64, NULL);
    check_images(6, 1, 1, 2, NULL);
    check_images(
        1, 1000000, 1, 64,
        "plan_halo: block 1 [0:999999] with ghost cells of width 64 reaches into 1000128 images "
        "of the domain, 1000128 in dimension 0 where its period is 1: at most 65536");
    check_images(
        1, 10, 1, 1000000,
        "plan_halo: widths 1000000 and 1000000 in dimension 0 are over 64 times the period 1");
    check_images(
        6, 1, 1, 25,
        "plan_halo: block 0 [0:0,0:0,0:0,0:0,0:0,0:0] with ghost cells of width 25 reaches into "
        "17596287801 images of the domain, 51 in dimension 0 where its period is 1: at "
        "most 65536");
    check_images(1, FERRY_COORDINATE_MAX / 2 + 2, FERRY_COORDINATE_MAX / 2, 1,
                 "plan_halo: block 1 [0:1152921504606846977] is too near the limit");
    check_images(1, FERRY_COORDINATE_MAX / 2, FERRY_COORDINATE_MAX / 2, FERRY_COORDINATE_MAX / 2,
                 NULL);
}

/* Goal: intersection that cannot be are refused. Method: one fault at a time. */
static void test_plan_intersect_refuses(void **state)
{
    (void)state;
    ferry_floorplan a, b;
    ferry_plan plan = {0};
    assert_int_equal(ferry_floorplan_tile(box(2, 8), ferry_point_all(4), &a), 0);
    assert_int_equal(ferry_floorplan_tile(box(3, 8), ferry_point_all(4), &b), 0);
    for (int fault = 0; fault < 12; fault++) {
        ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
        intersection.relation = FERRY_REFINE;
        intersection.ratio[0] = intersection.ratio[1] = 2;
        intersection.permuted = true;
        intersection.axis[0] = 1;
        switch (fault) {
        case 1:
            intersection.ratio[1] = 0;
            break;
        case 2:
            intersection.axis[1] = 1;
            break;
        case 3:
            intersection.axis[1] = 2;
            break;
        case 4:
            intersection.axis[1] = -1;
            break;
        case 5:
            intersection.shift.at[0] = 3;
            break;
        case 6:
            intersection.low.at[0] = -1;
            break;
        case 7:
            intersection.high.at[1] = -1;
            break;
        case 8:
            intersection.high.at[1] = INT64_MAX;
            break;
        case 9:
            intersection.shift.at[0] = INT64_MIN;
            break;
        case 10:
            intersection.relation = (ferry_relation)(FERRY_COARSEN + 1);
            break;
        default:
            break;
        }
        const size_t before = plan.count;
        assert_int_equal(ferry_plan_intersect(&plan, &a, fault == 11 ? &b : &a, &intersection, -1),
                         fault == 0 ? 0 : FERRY_EINVAL);
        assert_int_equal(plan.count > before, fault == 0);
    }
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&a);
    ferry_floorplan_fini(&b);
}

/* Goal: no intersection overflows at the limits that are let through, and what lies beyond is
 * refused. Method: the largest ratio with the largest shift and widths. */
static void test_plan_intersect_at_the_limits(void **state)
{
    (void)state;
    ferry_floorplan a;
    ferry_plan plan = {0};
    assert_int_equal(ferry_floorplan_tile(box(2, 8), ferry_point_all(4), &a), 0);
    for (int relation = FERRY_PLAIN; relation <= FERRY_COARSEN; relation++) {
        ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
        intersection.relation = (ferry_relation)relation;
        intersection.ratio[0] = intersection.ratio[1] = INT32_MAX;
        const int64_t ratio = relation == FERRY_PLAIN ? 1 : INT32_MAX;
        int64_t far = FERRY_COORDINATE_MAX / 4 / ratio;
        intersection.low = intersection.high = ferry_point_all(far);
        intersection.shift = ferry_point_all(-(far - far % ratio));
        const int64_t room = FERRY_COORDINATE_MAX / 2 / ratio;
        a.blocks[0].region.low = ferry_point_all(-room);
        assert_int_equal(ferry_plan_intersect(&plan, &a, &a, &intersection, 0), 0);
        a.blocks[0].region.low = ferry_point_all(-room - 1);
        assert_int_equal(ferry_plan_intersect(&plan, &a, &a, &intersection, 0), FERRY_EINVAL);
        assert_non_null(strstr(ferry_error_message(NULL), "has a coordinate beyond"));
        a.blocks[0].region.low = ferry_point_all(0);
        intersection.shift = ferry_point_all((far + 1) * ratio);
        assert_int_equal(ferry_plan_intersect(&plan, &a, &a, &intersection, 0), FERRY_EINVAL);
        assert_non_null(strstr(ferry_error_message(NULL), "in dimension 0, expected widths"));
        intersection.shift = ferry_point_all(0);
        intersection.permuted = true;
        assert_int_equal(ferry_plan_intersect(&plan, &a, &a, &intersection, 0), FERRY_EINVAL);
        assert_non_null(
            strstr(ferry_error_message(NULL), "in dimension 1, expected each of 0 to 1"));
        intersection.permuted = false;
        intersection.ratio[0] = 0;
        if (relation != FERRY_PLAIN) {
            assert_int_equal(ferry_plan_intersect(&plan, &a, &a, &intersection, 0), FERRY_EINVAL);
            assert_non_null(strstr(ferry_error_message(NULL), "ratio 0 in dimension 0"));
        }
    }
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&a);
}

/* A change to a good entry, and what the check must say of it. */
typedef struct misfit {
    void (*spoil)(ferry_plan_entry *copy);
    const char *says;
} misfit;

static void no_source(ferry_plan_entry *copy)
{
    copy->source = -1;
}

static void no_target(ferry_plan_entry *copy)
{
    copy->target = 4;
}

static void source_outside(ferry_plan_entry *copy)
{
    copy->from.low.at[0]--;
}

static void target_outside(ferry_plan_entry *copy)
{
    copy->to.high.at[1] += 20;
}

static void empty(ferry_plan_entry *copy)
{
    copy->from.high.at[0] = copy->from.low.at[0] - 1;
}

static void other_dims(ferry_plan_entry *copy)
{
    copy->to.dims = 1;
}

static void other_size(ferry_plan_entry *copy)
{
    copy->to.high.at[0]--;
}

static void axis_twice(ferry_plan_entry *copy)
{
    copy->axis[1] = 0;
}

static void axis_beyond(ferry_plan_entry *copy)
{
    copy->axis[0] = 2;
}

static void no_ratio(ferry_plan_entry *copy)
{
    copy->relation = FERRY_SAMPLE;
    copy->ratio[0] = 0;
}

static void sample_short(ferry_plan_entry *copy)
{
    copy->relation = FERRY_SAMPLE;
    copy->ratio[0] = 2;
}

static void sample_between(ferry_plan_entry *copy)
{
    copy->relation = FERRY_SAMPLE;
    copy->ratio[0] = 2;
    copy->from.high.at[0] += 3;
}

static void coarse_long(ferry_plan_entry *copy)
{
    copy->relation = FERRY_COARSEN;
    copy->ratio[0] = 2;
}

static void sample_far(ferry_plan_entry *copy)
{
    copy->relation = FERRY_SAMPLE;
    copy->ratio[0] = INT32_MAX;
}

static void no_relation(ferry_plan_entry *copy)
{
    copy->relation = FERRY_COARSEN + 1;
}

/* Goal: the check finds every kind of mistake, and names entry and block. Method: the second of two
 * good entries is spoiled in each way. */
static void test_plan_check_finds_every_misfit(void **state)
{
    (void)state;
    static const misfit misfits[] = {
        {no_source, "entry 1: no source block -1 of 4"},
        {no_target, "entry 1: no target block 4 of 4"},
        {source_outside, "entry 1: source region [-1:2,0:2] is not inside block 0"},
        {target_outside, "entry 1: target region [10:12,0:22] is not inside block 2"},
        {empty, "entry 1: source region [0:-1,0:2] is empty"},
        {other_dims, "entry 1: target region"},
        {other_size, "entry 1: source block 0 on [0:2,0:2] does not fit target block 2"},
        {axis_twice, "entry 1: axis[1] is 0; expected each of 0 to 1 once"},
        {axis_beyond, "entry 1: axis[0] is 2; expected each of 0 to 1 once"},
        {no_ratio, "entry 1: ratio[0] is 0; expected 1 or more"},
        {sample_short, "entry 1: source block 0"},
        {sample_between, "entry 1: source block 0"},
        {coarse_long, "entry 1: source block 0"},
        {sample_far, "entry 1: source block 0"},
        {no_relation, "entry 1: relation 4; expected FERRY_PLAIN (0) to FERRY_COARSEN (3)"},
    };
    const ferry_point none = ferry_point_all(0);
    ferry_floorplan blocks;
    ferry_plan plan = {0};
    assert_int_equal(ferry_floorplan_tile(box(2, 20), ferry_point_all(10), &blocks), 0);
    ferry_region from = box(2, 3), to = ferry_region_shift(from, ferry_point_of(10, 0, 0));
    assert_int_equal(
        ferry_plan_copy(&plan, 1, ferry_region_shift(from, ferry_point_of(0, 10, 0)), 0, from), 0);
    assert_int_equal(ferry_plan_copy(&plan, 2, to, 0, from), 0);
    assert_int_equal(ferry_plan_check(NULL, &plan, &blocks, none, &blocks, none, true), 0);
    const ferry_plan_entry good = ferry_plan_at(&plan, 1);
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        ferry_plan_entry bad = good;
        misfits[i].spoil(&bad);
        assert_int_equal(ferry_plan_set(&plan, 1, &bad), 0);
        assert_int_equal(ferry_plan_check(NULL, &plan, &blocks, none, &blocks, none, false),
                         FERRY_EINVAL);
        if (strstr(ferry_error_message(NULL), misfits[i].says) == NULL)
            fail_msg("misfit %zu: \"%s\"", i, ferry_error_message(NULL));
    }
    /* Regions without memory may be as large as coordinates go. */
    const ferry_region huge = {2, ferry_point_all(-FERRY_COORDINATE_MAX),
                               ferry_point_all(FERRY_COORDINATE_MAX)};
    ferry_floorplan wide = {.dims = 2};
    assert_int_equal(ferry_floorplan_add(&wide, huge, 0), 0);
    ferry_plan far = {0};
    assert_int_equal(ferry_plan_copy(&far, 0, huge, 0, huge), 0);
    assert_int_equal(ferry_plan_check(NULL, &far, &wide, none, &wide, none, true), 0);
    for (int relation = FERRY_SAMPLE; relation <= FERRY_COARSEN; relation++) {
        ferry_plan_entry copy = ferry_plan_at(&far, 0);
        copy.relation = (uint8_t)relation;
        copy.ratio[1] = INT32_MAX;
        assert_int_equal(ferry_plan_set(&far, 0, &copy), 0);
        assert_int_equal(ferry_plan_check(NULL, &far, &wide, none, &wide, none, true),
                         FERRY_EINVAL);
    }
    ferry_plan_fini(&far);
    ferry_floorplan_fini(&wide);
    assert_int_equal(ferry_plan_set(&plan, 1, &good), 0);
    assert_int_equal(ferry_plan_set(&plan, plan.count, &good), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "plan_set: entry 2 of 2 does not exist"));
    assert_int_equal(ferry_plan_add(&plan, &good), 0);
    assert_int_equal(ferry_plan_check(NULL, &plan, &blocks, none, &blocks, none, false), 0);
    assert_int_equal(ferry_plan_check(NULL, &plan, &blocks, none, &blocks, none, true),
                     FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "entries 1 [10:12,0:2] and 2"));
    assert_non_null(strstr(ferry_error_message(NULL), "target block 2"));
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_halo_refuses),
        cmocka_unit_test(test_plan_halo_bounds_images),
        cmocka_unit_test(test_plan_intersect_refuses),
        cmocka_unit_test(test_plan_intersect_at_the_limits),
        cmocka_unit_test(test_plan_check_finds_every_misfit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
