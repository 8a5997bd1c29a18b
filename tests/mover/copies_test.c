/* Goal: entries come back as they were kept, of every kind and at the limits of coordinates, and
 * those of a halo take few bytes. Method: random entries, in an order of their own, and the halo of
 * a cube of blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "mover/plan/plan.h"
#include "mover/run/copies.h"

static bool same_region(const ferry_region *a, const ferry_region *b)
{
    bool same = a->dims == b->dims;
    for (int d = 0; d < a->dims && same; d++)
        same = a->low.at[d] == b->low.at[d] && a->high.at[d] == b->high.at[d];
    return same;
}

static bool same_copy(const ferry_plan_entry *a, const ferry_plan_entry *b)
{
    return a->source == b->source && a->target == b->target && a->relation == b->relation &&
           same_region(&a->to, &b->to) && same_region(&a->from, &b->from) &&
           memcmp(a->axis, b->axis, sizeof a->axis) == 0 &&
           memcmp(a->ratio, b->ratio, sizeof a->ratio) == 0;
}

static ferry_plan_entry random_copy(dice *d)
{
    static const int64_t reaches[] = {10, 100000, FERRY_COORDINATE_MAX};
    const int64_t reach = reaches[dice_between(d, 0, 2)];
    ferry_plan_entry copy = {.source = (int32_t)dice_between(d, 0, INT32_MAX),
                             .target = (int32_t)dice_between(d, 0, 1000)};
    fy_copy_plain(&copy);
    copy.to = dice_region(d, (int)dice_between(d, 1, FERRY_DIMS_MAX), reach, false);
    copy.from = dice_region(d, (int)dice_between(d, 1, FERRY_DIMS_MAX), reach, false);
    if (dice_between(d, 0, 1) == 0)
        return copy;
    copy.relation = (uint8_t)dice_between(d, FERRY_PLAIN, FERRY_COARSEN);
    for (int i = 0; i < FERRY_DIMS_MAX; i++) {
        copy.axis[i] = (int8_t)dice_between(d, 0, FERRY_DIMS_MAX - 1);
        copy.ratio[i] = (int32_t)dice_between(d, 1, INT32_MAX);
    }
    return copy;
}

static void test_copies_come_back(void **state)
{
    enum { COUNT = 3000 };
    dice d = {1};
    fy_copies list = {0};
    ferry_plan plan = {0};
    ferry_plan_entry *copies = calloc(COUNT, sizeof *copies);
    uint32_t *which = calloc(COUNT, sizeof *which);
    (void)state;
    assert_true(copies != NULL && which != NULL);
    for (int i = 0; i < COUNT; i++) {
        copies[i] = random_copy(&d);
        which[i] = (uint32_t)(COUNT - 1 - i);
        assert_int_equal(ferry_plan_add(&plan, &copies[i]), 0);
    }
    assert_int_equal(fy_copies_make(&list, &plan, which, COUNT), 0);
    fy_copies_walk walk = {.list = &list};
    for (int i = 0; i < COUNT; i++)
        assert_true(fy_copies_next(&walk) && same_copy(&walk.copy, &copies[which[i]]));
    assert_false(fy_copies_next(&walk));
    assert_int_equal(walk.at, list.size_bytes);
    fy_copies_fini(&list);
    ferry_plan_fini(&plan);
    free(copies);
    free(which);
}

static void test_copies_of_a_halo_are_small(void **state)
{
    ferry_floorplan blocks;
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    fy_copies list = {0};
    (void)state;
    halo.low = halo.high = ferry_point_all(1);
    halo.domain = box(3, 256);
    halo.periodic[0] = true;
    assert_int_equal(ferry_floorplan_tile(halo.domain, ferry_point_all(32), &blocks), 0);
    assert_int_equal(ferry_plan_halo(&plan, &blocks, &halo, -1), 0);
    uint32_t *which = calloc(plan.count, sizeof *which);
    assert_non_null(which);
    for (size_t i = 0; i < plan.count; i++)
        which[i] = (uint32_t)i;
    assert_int_equal(fy_copies_make(&list, &plan, which, plan.count), 0);
    free(which);
    assert_in_range(list.size_bytes, 1, 24 * plan.count);
    print_message("%zu copies, %.1f bytes each\n", list.count,
                  (double)list.size_bytes / (double)list.count);
    fy_copies_fini(&list);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_come_back),
        cmocka_unit_test(test_copies_of_a_halo_are_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
