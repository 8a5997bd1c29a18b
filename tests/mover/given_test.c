/* Goal: calls on floor plans, lists of regions, plans, grids and texts refuse a NULL, and name the
 * argument. Method: each of these arguments is NULL in turn; the others are good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

static ferry_floorplan floors;
static ferry_plan plan;
static ferry_regions list;

static void refused(int error, const char *says)
{
    assert_int_equal(error, FERRY_EINVAL);
    if (strstr(ferry_error_message(NULL), says) == NULL)
        fail_msg("\"%s\", expected \"%s\"", ferry_error_message(NULL), says);
}

static ferry_region line(void)
{
    return ferry_region_sized(1, (const int64_t[]){8});
}

static int open_plans(void **state)
{
    (void)state;
    floors = (ferry_floorplan){.dims = 1};
    return ferry_floorplan_add(&floors, line(), 0) + ferry_regions_add(&list, line()) +
           ferry_plan_copy(&plan, 0, line(), 0, line());
}

static int close_plans(void **state)
{
    (void)state;
    ferry_floorplan_fini(&floors);
    ferry_floorplan_fini(NULL);
    ferry_regions_fini(&list);
    ferry_regions_fini(NULL);
    ferry_plan_fini(&plan);
    ferry_plan_fini(NULL);
    return 0;
}

static void test_floor_plans_and_regions_name_what_is_missing(void **state)
{
    const ferry_point one = ferry_point_all(1);
    ferry_region region;
    ferry_point point;
    int dims;
    (void)state;
    refused(ferry_floorplan_add(NULL, line(), 0), "floorplan_add: plan is NULL");
    refused(ferry_floorplan_copy(NULL, &floors), "floorplan_copy: plan is NULL");
    refused(ferry_floorplan_copy(&floors, NULL), "floorplan_copy: out is NULL");
    refused(ferry_floorplan_cut(line(), one, NULL), "out is NULL");
    refused(ferry_floorplan_tile(line(), one, NULL), "out is NULL");
    refused(ferry_floorplan_bisect(line(), 2, NULL, NULL, NULL), "floorplan_bisect: out is NULL");
    refused(ferry_floorplan_map_block(NULL, 2), "floorplan_map_block: plan is NULL");
    refused(ferry_floorplan_map_cyclic(NULL, 2, 1), "floorplan_map_cyclic: plan is NULL");
    refused(ferry_floorplan_map_grid(NULL, one, one), "floorplan_map_grid: plan is NULL");
    refused(ferry_floorplan_map_curve(NULL, 2, NULL), "floorplan_map_curve: plan is NULL");
    refused(ferry_floorplan_map_bisect(NULL, 2, NULL), "floorplan_map_bisect: plan is NULL");
    assert_null(ferry_floorplan_block(NULL, 0));
    refused(ferry_regions_add(NULL, line()), "regions_add: list is NULL");
    refused(ferry_regions_subtract(NULL, line()), "regions_subtract: list is NULL");
    assert_int_equal(ferry_regions_size(NULL), 0);
    refused(ferry_region_parse(NULL, &region), "region_parse: text is NULL");
    refused(ferry_region_parse("[0:1]", NULL), "region_parse: out is NULL");
    refused(ferry_point_parse(NULL, &point, &dims), "point_parse: text is NULL");
    refused(ferry_point_parse("(1)", NULL, &dims), "point_parse: out is NULL");
    refused(ferry_point_parse("(1)", &point, NULL), "point_parse: dims is NULL");
}

static void test_plans_and_grids_name_what_is_missing(void **state)
{
    const ferry_plan_entry entry = ferry_plan_at(&plan, 0);
    const ferry_point none = ferry_point_all(0);
    const ferry_grid grid = {.region = line()};
    ferry_plan other = {0};
    ferry_plan_stats stats;
    (void)state;
    refused(ferry_plan_add(NULL, &entry), "plan_add: plan is NULL");
    refused(ferry_plan_add(&plan, NULL), "plan_add: copy is NULL");
    refused(ferry_plan_set(NULL, 0, &entry), "plan_set: plan is NULL");
    refused(ferry_plan_set(&plan, 0, NULL), "plan_set: copy is NULL");
    refused(ferry_plan_append(NULL, &plan), "plan_append: plan is NULL");
    refused(ferry_plan_append(&plan, NULL), "plan_append: other is NULL");
    refused(ferry_plan_compose(NULL, &plan, &other), "plan_compose: first is NULL");
    refused(ferry_plan_compose(&plan, NULL, &other), "plan_compose: second is NULL");
    refused(ferry_plan_compose(&plan, &plan, NULL), "plan_compose: out is NULL");
    refused(ferry_plan_account(NULL, &floors, &floors, &stats), "plan_account: plan is NULL");
    refused(ferry_plan_account(&plan, NULL, &floors, &stats), "plan_account: source is NULL");
    refused(ferry_plan_account(&plan, &floors, NULL, &stats), "plan_account: target is NULL");
    refused(ferry_plan_account(&plan, &floors, &floors, NULL),
            "plan_account: ferry_plan_stats: it is NULL");
    refused(ferry_plan_print(NULL, stderr), "plan_print: plan is NULL");
    refused(ferry_plan_print(&plan, NULL), "plan_print: out is NULL");
    refused(ferry_plan_check(NULL, NULL, &floors, none, &floors, none, false),
            "plan_check: plan is NULL");
    refused(ferry_plan_check(NULL, &plan, NULL, none, &floors, none, false),
            "plan_check: source is NULL");
    refused(ferry_plan_check(NULL, &plan, &floors, none, NULL, none, false),
            "plan_check: target is NULL");
    refused(ferry_plan_halo(NULL, &floors, NULL, 0), "plan_halo: plan is NULL");
    refused(ferry_plan_halo(&plan, NULL, NULL, 0), "plan_halo: blocks is NULL");
    refused(ferry_halo_near(NULL, NULL, &list), "halo_near: own is NULL");
    refused(ferry_halo_near(&floors, NULL, NULL), "halo_near: near is NULL");
    refused(ferry_plan_intersect(NULL, &floors, &floors, NULL, 0), "intersect: plan is NULL");
    refused(ferry_plan_intersect(&plan, NULL, &floors, NULL, 0), "intersect: source is NULL");
    refused(ferry_plan_intersect(&plan, &floors, NULL, NULL, 0), "intersect: target is NULL");
    refused(ferry_grid_move(NULL, &grid, &entry, NULL), "grid_move: target is NULL");
    refused(ferry_grid_move(&grid, NULL, &entry, NULL), "grid_move: source is NULL");
    refused(ferry_grid_move(&grid, &grid, NULL, NULL), "grid_move: copy is NULL");
    assert_int_equal(plan.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_floor_plans_and_regions_name_what_is_missing,
                                        open_plans, close_plans),
        cmocka_unit_test_setup_teardown(test_plans_and_grids_name_what_is_missing, open_plans,
                                        close_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
