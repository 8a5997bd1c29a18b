/* Goal: a plan gives back the entries that it was given, whatever they say, through changes of all
 * kinds, and those of halos take little memory.
 * Method: random entries, well formed or not, beside an array of the same; a cube of blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "dice.h"
#include "mover/plan/plan.h"
#include "mover/plan/shape.h"

enum { COUNT = 2000 };

/* As far as an entry says anything: coordinates beyond its dimensions do not count. */
static void assert_same(const ferry_plan *plan, size_t index, const ferry_plan_entry *wanted)
{
    const ferry_plan_entry found = ferry_plan_at(plan, index);
    const ferry_region *const regions[2][2] = {{&found.to, &wanted->to},
                                               {&found.from, &wanted->from}};
    assert_int_equal(found.source, wanted->source);
    assert_int_equal(found.target, wanted->target);
    assert_int_equal(found.relation, wanted->relation);
    assert_memory_equal(found.axis, wanted->axis, sizeof found.axis);
    assert_memory_equal(found.ratio, wanted->ratio, sizeof found.ratio);
    for (int side = 0; side < 2; side++) {
        const ferry_region *a = regions[side][0], *b = regions[side][1];
        assert_int_equal(a->dims, b->dims);
        for (int d = 0; d < fy_dims_kept(b->dims); d++)
            assert_true(a->low.at[d] == b->low.at[d] && a->high.at[d] == b->high.at[d]);
    }
}

static int64_t any_coordinate(dice *d)
{
    static const int64_t limits[] = {INT64_MIN, INT64_MAX, -FERRY_COORDINATE_MAX, 0};
    return dice_between(d, 0, 3) == 0 ? limits[dice_between(d, 0, 3)] : dice_between(d, -4, 4);
}

static ferry_region any_region(dice *d)
{
    ferry_region r = {.dims = (int32_t)dice_between(d, 0, FERRY_DIMS_MAX)};
    for (int i = 0; i < r.dims; i++) {
        r.low.at[i] = any_coordinate(d);
        r.high.at[i] = any_coordinate(d);
    }
    if (dice_between(d, 0, 50) == 0)
        r.dims = dice_between(d, 0, 1) ? -3 : INT32_MAX;
    return r;
}

static ferry_plan_entry any_entry(dice *d)
{
    ferry_plan_entry copy = {.source = (int32_t)dice_between(d, INT32_MIN, INT32_MAX),
                             .target = (int32_t)dice_between(d, -1, 3),
                             .to = any_region(d),
                             .from = any_region(d),
                             .relation = (uint8_t)dice_between(d, 0, 255)};
    for (int i = 0; i < FERRY_DIMS_MAX; i++) {
        copy.axis[i] = (int8_t)dice_between(d, INT8_MIN, INT8_MAX);
        copy.ratio[i] = (int32_t)dice_between(d, INT32_MIN, INT32_MAX);
    }
    return copy;
}

static bool has_even_target(void *arg, const ferry_plan_entry *copy)
{
    (*(size_t *)arg)++;
    return copy->target % 2 == 0;
}

static void test_plan_gives_back_what_it_got(void **state)
{
    (void)state;
    dice d = {7};
    ferry_plan plan = {0};
    ferry_plan_entry *copies = calloc(2 * COUNT, sizeof *copies);
    assert_non_null(copies);
    for (size_t i = 0; i < COUNT; i++) {
        copies[i] = any_entry(&d);
        if (i < COUNT / 2)
            copies[i].to.dims = copies[i].from.dims = 2; /* then wider ones come */
        assert_int_equal(ferry_plan_add(&plan, &copies[i]), 0);
        const size_t other = (size_t)dice_between(&d, 0, (int64_t)i);
        copies[other] = any_entry(&d);
        assert_int_equal(ferry_plan_set(&plan, other, &copies[other]), 0);
    }
    assert_int_equal(ferry_plan_append(&plan, &plan), 0);
    memcpy(copies + COUNT, copies, COUNT * sizeof *copies);
    assert_int_equal(plan.count, 2 * COUNT);
    for (size_t i = 0; i < plan.count; i++)
        assert_same(&plan, i, &copies[i]);
    for (size_t i = 0; i < 500; i++) {
        const size_t a = (size_t)dice_between(&d, 0, COUNT), b = (size_t)dice_between(&d, 0, COUNT);
        if (copies[a].to.dims <= FERRY_DIMS_MAX && copies[b].to.dims <= FERRY_DIMS_MAX &&
            copies[a].from.dims <= FERRY_DIMS_MAX && copies[b].from.dims <= FERRY_DIMS_MAX)
            assert_int_equal(fy_plan_compare(&plan, a, b), fy_copy_compare(&copies[a], &copies[b]));
    }
    size_t seen = 0, kept = 0;
    ferry_plan_filter(&plan, has_even_target, &seen);
    assert_int_equal(seen, 2 * COUNT);
    for (size_t i = 0; i < 2 * COUNT; i++)
        if (copies[i].target % 2 == 0)
            assert_same(&plan, kept++, &copies[i]);
    assert_int_equal(plan.count, kept);
    assert_int_equal(ferry_plan_at(&plan, kept).target, -1);
    assert_int_equal(ferry_plan_set(&plan, kept, &copies[0]), FERRY_EINVAL);
    ferry_plan_fini(&plan);
    assert_int_equal(ferry_plan_at(&plan, 0).to.dims, 0);
    free(copies);
}

/* Entries added after turning round have shapes of their own, which are found again. */
static void test_plan_turns_round_and_goes_on(void **state)
{
    (void)state;
    dice d = {8};
    ferry_plan plan = {0};
    ferry_plan_entry first[64];
    for (int i = 0; i < 64; i++) {
        fy_copy_plain(&first[i]);
        first[i].source = i;
        first[i].target = 64 - i;
        first[i].relation = (uint8_t)dice_between(&d, FERRY_REFINE, FERRY_COARSEN);
        first[i].to = dice_region(&d, 3, 9, false);
        first[i].from = dice_region(&d, 3, 9, false);
        first[i].axis[0] = 1;
        first[i].axis[1] = 0;
        first[i].ratio[2] = 1 + i % 3;
        assert_int_equal(ferry_plan_add(&plan, &first[i]), 0);
    }
    const size_t shapes = plan.shapes->count;
    ferry_plan_reverse(&plan);
    for (size_t i = 0; i < 64; i++) {
        const ferry_plan_entry turned = ferry_plan_at(&plan, i);
        assert_int_equal(turned.source, first[i].target);
        assert_true(ferry_region_equal(turned.to, first[i].from));
        assert_int_equal(turned.relation,
                         first[i].relation == FERRY_REFINE ? FERRY_COARSEN : FERRY_REFINE);
        assert_int_equal(ferry_plan_add(&plan, &turned), 0);
    }
    assert_int_equal(plan.shapes->count, shapes);
    ferry_plan_reverse(&plan);
    for (size_t i = 0; i < 64; i++) {
        assert_same(&plan, i, &first[i]);
        assert_same(&plan, 64 + i, &first[i]);
    }
    ferry_plan_fini(&plan);
}

/* A program that empties a plan and fills it with other regions, again and again. */
static void test_plan_forgets_shapes_of_entries_that_are_gone(void **state)
{
    (void)state;
    ferry_plan plan = {0};
    for (int round = 1; round <= 100; round++) {
        plan.count = 0;
        for (int i = 0; i < 2; i++)
            assert_int_equal(ferry_plan_copy(&plan, 1, box(2, round + i), 2, box(2, round + i)), 0);
        assert_true(ferry_region_equal(ferry_plan_at(&plan, 1).to, box(2, round + 1)));
        assert_int_equal(plan.shapes->count, 2);
    }
    ferry_plan_fini(&plan);
}

/* Refuses allocation number *(int *)arg from now. */
static bool refuses(void *arg)
{
    return (*(int *)arg)-- == 0;
}

/* Goal: without memory a plan stays as it was, and takes what it refused later. Method: an entry
 * that needs new shapes, wider entries and an index, added, put in a place and appended, with each
 * allocation refused in turn. */
static void test_plan_is_as_before_without_memory(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++)
        for (int failing = 0, refused = 1; refused; failing++) {
            ferry_plan plan = {0}, other = {0};
            dice d = {9};
            ferry_plan_entry copies[10];
            for (int i = 0; i < 10; i++) {
                fy_copy_plain(&copies[i]);
                copies[i].source = copies[i].target = i;
                copies[i].to = copies[i].from = dice_region(&d, 1 + i / 8, 1000, false);
                if (i < 8)
                    assert_int_equal(ferry_plan_add(&plan, &copies[i]), 0);
            }
            assert_int_equal(ferry_plan_add(&other, &copies[8]), 0);
            assert_int_equal(ferry_plan_add(&other, &copies[9]), 0);
            ferry_plan_reverse(&plan);
            ferry_plan_reverse(&plan); /* there is no index then */
            for (refused = 0;; refused = 1) {
                int left = refused ? -1 : failing;
                fy_alloc_refuse(refuses, &left);
                const int error = what == 0   ? ferry_plan_add(&plan, &copies[8])
                                  : what == 1 ? ferry_plan_set(&plan, 3, &copies[8])
                                              : ferry_plan_append(&plan, &other);
                fy_alloc_refuse(NULL, NULL);
                if (error == 0)
                    break;
                assert_int_equal(error, FERRY_ENOMEM);
                assert_int_equal(plan.count, 8);
                for (size_t i = 0; i < 8; i++)
                    assert_same(&plan, i, &copies[i]);
            }
            for (size_t i = 0; i < 8; i++)
                assert_same(&plan, i, &copies[what == 1 && i == 3 ? 8 : i]);
            for (size_t i = 8; i < plan.count; i++)
                assert_same(&plan, i, &copies[i]);
            assert_int_equal(plan.count, 8 + (what == 0) + 2 * (what == 2));
            ferry_plan_fini(&plan);
            ferry_plan_fini(&other);
        }
}

static void test_plan_of_a_halo_is_small(void **state)
{
    (void)state;
    static const size_t bytes[] = {32, 48, 64};
    for (int dims = 1; dims <= 3; dims++) {
        ferry_floorplan blocks;
        ferry_plan plan = {0};
        ferry_halo halo = FERRY_HALO_DEFAULTS;
        halo.low = halo.high = ferry_point_all(1);
        halo.domain = box(dims, 80);
        halo.periodic[0] = true;
        assert_int_equal(ferry_floorplan_tile(halo.domain, ferry_point_all(8), &blocks), 0);
        assert_int_equal(ferry_plan_halo(&plan, &blocks, &halo, -1), 0);
        assert_int_equal(plan.entry_bytes, bytes[dims - 1]);
        assert_in_range(plan.shapes->count, 1, 8);
        ferry_plan_fini(&plan);
        ferry_floorplan_fini(&blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_gives_back_what_it_got),
        cmocka_unit_test(test_plan_turns_round_and_goes_on),
        cmocka_unit_test(test_plan_forgets_shapes_of_entries_that_are_gone),
        cmocka_unit_test(test_plan_is_as_before_without_memory),
        cmocka_unit_test(test_plan_of_a_halo_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
