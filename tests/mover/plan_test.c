/* Motion plans: the builders find exactly what comparing all pairs of blocks finds, and entries are
 * data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "mover/plan/plan.h"

/* A random tiling with random owners; some blocks are taken away, so it is irregular. */
static ferry_floorplan irregular(dice *d, ferry_region domain, int64_t extent, int ranks)
{
    ferry_floorplan plan, out = {.dims = domain.dims};
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_all(extent), &plan), 0);
    for (size_t i = 0; i < plan.count; i++)
        if (dice_between(d, 0, 4) > 0)
            assert_int_equal(ferry_floorplan_add(&out, plan.blocks[i].region,
                                                 (int)dice_between(d, 0, ranks - 1)),
                             0);
    ferry_floorplan_fini(&plan);
    return out;
}

/* All entries of a plan, read once. To be freed. */
static ferry_plan_entry *read_entries(const ferry_plan *plan)
{
    ferry_plan_entry *entries = malloc((plan->count + 1) * sizeof *entries);
    assert_non_null(entries);
    for (size_t i = 0; i < plan->count; i++)
        entries[i] = ferry_plan_at(plan, i);
    return entries;
}

/* How often entries write point `p` of `target` from point `q` of `source`, one to one. */
static int writes(const ferry_plan_entry *entries, size_t entry_count, int target, ferry_point p,
                  int source, ferry_point q)
{
    int count = 0;
    for (size_t i = 0; i < entry_count; i++) {
        const ferry_plan_entry c = entries[i];
        if (c.target != target || c.source != source || !ferry_region_contains_point(c.to, p))
            continue;
        bool same = true;
        for (int k = 0; k < c.to.dims; k++)
            same &= q.at[k] == c.from.low.at[k] + p.at[k] - c.to.low.at[k];
        count += same;
    }
    return count;
}

/* Goal: a halo has exactly the ghost points that other blocks and their periodic images own.
 * Method: all pairs of blocks, all ghost points, all images, on small random floor plans. */
static void check_halo(dice *d, int dims, int64_t reach)
{
    ferry_region domain = box(dims, dims == 1 ? 20 : dims > 3 ? 3 : 9);
    ferry_floorplan blocks = irregular(d, domain, dice_between(d, 2, 4), 3);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.domain = domain;
    halo.faces_only = dice_between(d, 0, 1);
    uint64_t expected = 0, found = 0;
    for (int i = 0; i < dims; i++) {
        halo.low.at[i] = dice_between(d, 0, reach);
        halo.high.at[i] = dice_between(d, 0, reach);
        halo.periodic[i] = dice_between(d, 0, 1);
    }
    ferry_plan plan = {0};
    assert_int_equal(ferry_plan_halo(&plan, &blocks, &halo, -1), 0);
    ferry_plan_entry *entries = read_entries(&plan);
    for (size_t t = 0; t < blocks.count; t++) {
        ferry_region own = blocks.blocks[t].region, wide = own;
        for (int i = 0; i < dims; i++) {
            wide.low.at[i] -= halo.low.at[i];
            wide.high.at[i] += halo.high.at[i];
        }
        ferry_point p = wide.low;
        do {
            int outside = 0;
            ferry_point q = p;
            for (int i = 0; i < dims; i++) {
                outside += p.at[i] < own.low.at[i] || p.at[i] > own.high.at[i];
                int64_t extent = domain.high.at[i] + 1;
                if (halo.periodic[i])
                    q.at[i] = (p.at[i] + reach * extent) % extent;
            }
            if (outside == 0 || (halo.faces_only && outside > 1))
                continue;
            for (size_t s = 0; s < blocks.count; s++) {
                if (!ferry_region_contains_point(blocks.blocks[s].region, q))
                    continue;
                assert_int_equal(writes(entries, plan.count, (int)t, p, (int)s, q), 1);
                expected++;
            }
        } while (ferry_region_next(&wide, &p));
    }
    for (size_t i = 0; i < plan.count; i++)
        found += ferry_plan_entry_points(&entries[i]);
    free(entries);
    assert_int_equal(found, expected);
    const ferry_point ghosts = ferry_point_all(reach);
    assert_int_equal(ferry_plan_check(NULL, &plan, &blocks, ghosts, &blocks, ghosts, true), 0);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

static void test_plan_halo_equals_all_pairs(void **state)
{
    (void)state;
    dice d = {13};
    for (int round = 0; round < 150; round++)
        check_halo(&d, (int)dice_between(&d, 1, 3), 2);
    for (int round = 0; round < 20; round++)
        check_halo(&d, (int)dice_between(&d, 4, 6), 1);
    for (int round = 0; round < 20; round++)
        check_halo(&d, (int)dice_between(&d, 1, 2), 25); /* wider than blocks and domain */
}

static int by_contents(const void *a, const void *b)
{
    return fy_copy_compare(a, b);
}

static bool of_rank(const ferry_plan_entry *c, const ferry_floorplan *s, const ferry_floorplan *t,
                    int r)
{
    return s->blocks[c->source].owner == r || t->blocks[c->target].owner == r;
}

/* Goal: where blocks overlap, points of another are no ghosts of a block, and those beyond it are.
 * Method: a block and one that covers it and more, with and without corners. */
static void test_plan_halo_of_overlapping_blocks(void **state)
{
    (void)state;
    for (int faces = 0; faces < 2; faces++) {
        ferry_floorplan blocks = {.dims = 2};
        ferry_plan plan = {0};
        ferry_halo halo = FERRY_HALO_DEFAULTS;
        uint64_t points[2] = {0};
        halo.low = halo.high = ferry_point_all(2);
        halo.faces_only = faces;
        const ferry_region small = ferry_region_shift(box(2, 4), ferry_point_all(3));
        assert_int_equal(ferry_floorplan_add(&blocks, small, 0), 0);
        assert_int_equal(ferry_floorplan_add(&blocks, box(2, 10), 1), 0);
        assert_int_equal(ferry_plan_halo(&plan, &blocks, &halo, -1), 0);
        for (size_t i = 0; i < plan.count; i++) {
            const ferry_plan_entry c = ferry_plan_at(&plan, i);
            assert_true(ferry_region_is_empty(ferry_region_intersect(c.to, small)));
            assert_true(ferry_region_equal(c.to, c.from));
            points[c.target] += ferry_plan_entry_points(&c);
        }
        assert_int_equal(points[0], faces ? 4 * 2 * 4 : 8 * 8 - 4 * 4);
        assert_int_equal(points[1], 0);
        ferry_plan_fini(&plan);
        ferry_floorplan_fini(&blocks);
    }
}

/* Goal: ferry_halo_near names the places of all blocks that a halo of a rank's blocks connects.
 * Method: for each copy of the rank's plan the other block meets a region named. */
static void test_halo_near_names_what_a_plan_connects(void **state)
{
    (void)state;
    dice d = {15};
    for (int round = 0; round < 60; round++) {
        ferry_floorplan blocks = irregular(&d, box(2, 24), 4, 4), own = {.dims = 2};
        ferry_halo halo = FERRY_HALO_DEFAULTS;
        ferry_regions near = {0};
        ferry_plan plan = {0};
        halo.domain = box(2, 24);
        for (int i = 0; i < 2; i++) {
            halo.low.at[i] = dice_between(&d, 0, 9);
            halo.high.at[i] = dice_between(&d, 0, 9);
            halo.periodic[i] = dice_between(&d, 0, 1);
        }
        for (size_t i = 0; i < blocks.count; i++)
            if (blocks.blocks[i].owner == 1)
                assert_int_equal(ferry_floorplan_add(&own, blocks.blocks[i].region, 1), 0);
        assert_int_equal(ferry_halo_near(&own, &halo, &near), 0);
        assert_int_equal(ferry_plan_halo(&plan, &blocks, &halo, 1), 0);
        for (size_t i = 0; i < plan.count; i++) {
            const ferry_plan_entry copy = ferry_plan_at(&plan, i);
            const ferry_block *ends[] = {&blocks.blocks[copy.source], &blocks.blocks[copy.target]};
            for (int end = 0; end < 2; end++) {
                bool found = ends[end]->owner == 1;
                for (size_t k = 0; k < near.count && !found; k++)
                    found = !ferry_region_is_empty(
                        ferry_region_intersect(near.items[k], ends[end]->region));
                assert_true(found);
            }
        }
        ferry_plan_fini(&plan);
        ferry_regions_fini(&near);
        ferry_floorplan_fini(&own);
        ferry_floorplan_fini(&blocks);
    }
}

/* Goal: what a rank plans for itself is what touches it of the whole plan, once each.
 * Method: both plans as sorted lists of entries. */
static void compare_share(const ferry_plan *whole, const ferry_plan *own, const ferry_floorplan *s,
                          const ferry_floorplan *t, int rank)
{
    ferry_plan_entry *mine = calloc(whole->count + 1, sizeof *mine);
    ferry_plan_entry *sorted = calloc(own->count + 1, sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < whole->count; i++) {
        mine[count] = ferry_plan_at(whole, i);
        count += of_rank(&mine[count], s, t, rank);
    }
    assert_int_equal(own->count, count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = ferry_plan_at(own, i);
    qsort(mine, count, sizeof *mine, by_contents);
    qsort(sorted, count, sizeof *sorted, by_contents);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(fy_copy_compare(&mine[i], &sorted[i]), 0);
    free(mine);
    free(sorted);
}

static void test_plan_of_a_rank_is_its_share(void **state)
{
    (void)state;
    dice d = {14};
    for (int round = 0; round < 60; round++) {
        ferry_region domain = box(2, 24);
        ferry_floorplan a = irregular(&d, domain, 3, 4), b = irregular(&d, domain, 5, 4);
        ferry_halo halo = FERRY_HALO_DEFAULTS;
        halo.low = ferry_point_of(dice_between(&d, 0, 3), 1, 0);
        halo.high = ferry_point_of(1, dice_between(&d, 0, 3), 0);
        halo.domain = domain;
        halo.periodic[0] = halo.periodic[1] = round % 2;
        ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
        intersection.low = halo.low;
        intersection.high = ferry_point_of(dice_between(&d, 0, 3), dice_between(&d, 0, 3), 0);
        intersection.shift = ferry_point_of(dice_between(&d, -3, 3), 2, 0);
        intersection.relation = (ferry_relation)dice_between(&d, 0, 3);
        intersection.ratio[0] = 2;
        intersection.ratio[1] = 1;
        intersection.permuted = round % 3 == 0;
        intersection.axis[0] = 1;
        if (intersection.relation == FERRY_REFINE)
            intersection.shift.at[0] = 4;
        for (int kind = 0; kind < 2; kind++) {
            ferry_plan whole = {0};
            for (int rank = -1; rank < 4; rank++) {
                ferry_plan own = {0}, *plan = rank < 0 ? &whole : &own;
                int error = kind ? ferry_plan_intersect(plan, &a, &b, &intersection, rank)
                                 : ferry_plan_halo(plan, &a, &halo, rank);
                assert_int_equal(error, 0);
                if (rank >= 0)
                    compare_share(&whole, &own, &a, kind ? &b : &a, rank);
                ferry_plan_fini(&own);
            }
            ferry_plan_fini(&whole);
        }
        ferry_floorplan_fini(&a);
        ferry_floorplan_fini(&b);
    }
}

/* Goal: redistribution moves every common point once; reversed it moves back; two in a row compose.
 * Method: three decompositions of one domain. */
static void test_plan_intersect_moves_each_point_once(void **state)
{
    (void)state;
    ferry_region domain = box(2, 24);
    ferry_floorplan a, b, c;
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_of(5, 24, 0), &a), 0);
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_of(24, 7, 0), &b), 0);
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_of(11, 4, 0), &c), 0);
    assert_int_equal(ferry_floorplan_map_block(&b, 4), 0);
    ferry_plan ab = {0}, bc = {0}, ac = {0}, direct = {0};
    assert_int_equal(ferry_plan_intersect(&ab, &a, &b, NULL, -1), 0);
    assert_int_equal(ferry_plan_intersect(&bc, &b, &c, NULL, -1), 0);
    assert_int_equal(ferry_plan_intersect(&direct, &a, &c, NULL, -1), 0);
    assert_int_equal(ferry_plan_compose(&ab, &bc, &ac), 0);
    ferry_plan_stats stats = FERRY_PLAN_STATS_DEFAULTS;
    assert_int_equal(ferry_plan_account(&ab, &a, &b, &stats), 0);
    assert_int_equal(stats.points, 24 * 24);
    assert_int_equal(stats.pair_count, 3);
    assert_int_equal(stats.local_points, 24 * 7);
    assert_int_equal(stats.copies, 5 * 4);
    assert_int_equal(stats.local_copies, 5);
    for (int i = 0; i < 3; i++) {
        const ferry_plan_pair *pair = &stats.pairs[i];
        assert_true(pair->source == 0 && pair->target == i + 1 && pair->copies == 5);
        assert_int_equal(pair->points, 24 * (i == 2 ? 3 : 7));
    }
    free(stats.pairs);
    ferry_plan_entry elsewhere = ferry_plan_at(&ab, 0);
    const ferry_plan_entry first = elsewhere;
    elsewhere.target = 4;
    assert_int_equal(ferry_plan_set(&ab, 0, &elsewhere), 0);
    assert_int_equal(ferry_plan_account(&ab, &a, &b, &stats), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(NULL), "plan_account: entry 0: no target block 4");
    assert_int_equal(ferry_plan_account(&(ferry_plan){0}, &a, &b, NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(NULL), "plan_account: ferry_plan_stats: it is NULL");
    stats = (ferry_plan_stats){0};
    assert_int_equal(ferry_plan_account(&(ferry_plan){0}, &a, &b, &stats), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "its size is 0, expected"));
    assert_int_equal(ferry_plan_set(&ab, 0, &first), 0);
    ferry_plan_entry *composed = read_entries(&ac);
    for (size_t i = 0; i < ac.count; i++) {
        const ferry_plan_entry both = composed[i];
        const ferry_point p = both.to.low;
        int count = 0;
        for (size_t k = 0; k < direct.count; k++) {
            const ferry_plan_entry one = ferry_plan_at(&direct, k);
            count += one.target == both.target && one.source == both.source &&
                     ferry_region_contains_point(one.to, p);
        }
        assert_int_equal(count, 1);
        assert_int_equal(writes(composed, ac.count, both.target, p, both.source, p), 1);
    }
    free(composed);
    ferry_plan_reverse(&ab);
    assert_int_equal(
        ferry_plan_check(NULL, &ab, &b, ferry_point_all(0), &a, ferry_point_all(0), true), 0);
    assert_int_equal(ferry_plan_append(&ab, &ab), 0);
    assert_int_equal(
        ferry_plan_check(NULL, &ab, &b, ferry_point_all(0), &a, ferry_point_all(0), true),
        FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "overlap"));
    ferry_plan_fini(&ab);
    ferry_plan_fini(&bc);
    ferry_plan_fini(&ac);
    ferry_plan_fini(&direct);
    ferry_floorplan_fini(&a);
    ferry_floorplan_fini(&b);
    ferry_floorplan_fini(&c);
}

/* Goal: entries of every kind print and, but for samples, turn round into ones that the check
 * takes; composing refuses them. Method: one intersection of each relation with axes turned. */
static void test_plan_prints_and_reverses_every_relation(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "0: 0 on [0:3,0:1] <= 0 on [0:1,0:3] axes 1,0\n",
        "0: 0 on [0:3,0:1] <= 0 on [0:2,0:9] sample 3,2 axes 1,0\n",
        "0: 0 on [0:3,0:1] <= 0 on [0:0,0:1] refine 3,2 axes 1,0\n",
        "0: 0 on [0:3,0:1] <= 0 on [0:3,0:11] coarsen 3,2 axes 1,0\n",
    };
    ferry_floorplan source = {.dims = 2}, target = {.dims = 2};
    const ferry_point none = ferry_point_all(0);
    assert_int_equal(ferry_floorplan_add(&source, box(2, 20), 0), 0);
    assert_int_equal(ferry_floorplan_add(&target, ferry_region_sized(2, (int64_t[]){4, 2}), 0), 0);
    for (int relation = FERRY_PLAIN; relation <= FERRY_COARSEN; relation++) {
        ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
        ferry_plan plan = {0}, composed = {0};
        intersection.relation = (ferry_relation)relation;
        intersection.ratio[0] = 3;
        intersection.ratio[1] = 2;
        intersection.permuted = true;
        intersection.axis[0] = 1;
        assert_int_equal(ferry_plan_intersect(&plan, &source, &target, &intersection, -1), 0);
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        assert_int_equal(ferry_plan_print(&plan, out), 0);
        fclose(out);
        assert_string_equal(text, lines[relation]);
        free(text);
        assert_int_equal(ferry_plan_check(NULL, &plan, &source, none, &target, none, true), 0);
        assert_int_equal(ferry_plan_compose(&plan, &plan, &composed), FERRY_EINVAL);
        assert_non_null(strstr(ferry_error_message(NULL), "the first plan has an entry that"));
        const ferry_plan_entry before = ferry_plan_at(&plan, 0);
        ferry_plan_reverse(&plan);
        assert_int_equal(ferry_plan_check(NULL, &plan, &target, none, &source, none, true),
                         relation == FERRY_SAMPLE ? FERRY_EINVAL : 0);
        ferry_plan_reverse(&plan);
        ferry_plan_entry now = ferry_plan_at(&plan, 0);
        assert_int_equal(fy_copy_compare(&before, &now), 0);
        now.axis[0] = 100;
        now.axis[1] = -100;
        assert_int_equal(ferry_plan_set(&plan, 0, &now), 0);
        ferry_plan_reverse(&plan);
        assert_int_equal(ferry_plan_check(NULL, &plan, &target, none, &source, none, true),
                         FERRY_EINVAL);
        ferry_plan_fini(&plan);
    }
    ferry_floorplan_fini(&source);
    ferry_floorplan_fini(&target);
}

static bool to_block(void *arg, const ferry_plan_entry *copy)
{
    return copy->target == *(int *)arg;
}

/* Goal: a program may add, print and filter entries; misfits are named. Method: a small plan. */
static void test_plan_is_data(void **state)
{
    (void)state;
    ferry_floorplan blocks;
    ferry_region domain = box(1, 20);
    assert_int_equal(ferry_floorplan_tile(domain, ferry_point_all(10), &blocks), 0);
    ferry_plan plan = {0};
    ferry_region to = ferry_region_make(1, (int64_t[]){10}, (int64_t[]){12});
    assert_int_equal(ferry_plan_copy(&plan, 1, to, 0, ferry_region_sized(1, (int64_t[]){3})), 0);
    assert_int_equal(ferry_plan_copy(&plan, 1, to, 0, ferry_region_sized(1, (int64_t[]){4})),
                     FERRY_EINVAL);
    assert_string_equal(ferry_error_message(NULL),
                        "plan_copy: [0:3] and [10:12] have different numbers of points");
    assert_int_equal(ferry_plan_copy(&plan, 1, box(1, 0), 0, (ferry_region){.dims = 0}), 0);
    assert_int_equal(ferry_plan_copy(&plan, 1, box(1, 0), 0, box(1, 1)), FERRY_EINVAL);
    assert_int_equal(plan.count, 1);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(ferry_plan_print(&plan, out), 0);
    fclose(out);
    assert_string_equal(text, "0: 1 on [10:12] <= 0 on [0:2]\n");
    free(text);
    ferry_plan_entry copy = ferry_plan_at(&plan, 0);
    copy.to.high.at[0] = 25;
    assert_int_equal(ferry_plan_add(&plan, &copy), 0);
    assert_int_equal(ferry_plan_check(NULL, &plan, &blocks, ferry_point_all(0), &blocks,
                                      ferry_point_all(0), true),
                     FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "entry 1"));
    int other = 0;
    ferry_plan_filter(&plan, to_block, &other);
    assert_int_equal(plan.count, 0);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_halo_equals_all_pairs),
        cmocka_unit_test(test_plan_halo_of_overlapping_blocks),
        cmocka_unit_test(test_halo_near_names_what_a_plan_connects),
        cmocka_unit_test(test_plan_of_a_rank_is_its_share),
        cmocka_unit_test(test_plan_intersect_moves_each_point_once),
        cmocka_unit_test(test_plan_prints_and_reverses_every_relation),
        cmocka_unit_test(test_plan_is_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
