/* Goal: whatever the input, the number of sub-domains, the order of work and of messages, the
 * refined mesh passes every check. Method: the serial driver with seeds, and random polygons. A
 * failure prints the case and its seed. */
#include "helper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sanitizer looks at each access. */
#ifdef FERRY_SANITIZED
enum { SEEDS = 4, STARS = 20 };
#else
enum { SEEDS = 12, STARS = 60 };
#endif

#define TURN 6.28318530717958647692

static void test_refine_data_in_turn(void **state)
{
    (void)state;
    const int32_t count[] = {1, 2, 9, 64, 256};
    const double angle[] = {0.0, 20.0, 25.0, 30.0, 32.0};
    for (size_t i = 0; i < 5; i++) {
        test_case c = {.file = "jutland.poly", .count = count[i], .size = 2.0, .angle = angle[i]};
        test_mesh_run(&c, 0);
        c.angle = angle[4 - i];
        c.feature = (mesh_feature){600.0, 6200.0, 10.0, 8.0};
        c.bisect = true;
        test_mesh_run(&c, 0);
    }
}

static void test_refine_any_order(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        test_case c = {.file = "jutland.poly",
                       .count = (int32_t)(1 + seed * seed % 50),
                       .size = 4.0,
                       .angle = 28.0,
                       .feature = {600.0, 6200.0, 5.0, 6.0}};
        test_mesh_run(&c, seed);
    }
    test_case c = {.file = "great-britain.poly", .count = 40, .size = 20.0, .angle = 30.0};
    test_mesh_run(&c, 99);
}

/* A split named before the one above it arrives does both; a second copy does nothing; nonsense is
 * refused. */
static void test_refine_splits_commute(void **state)
{
    (void)state;
    test_mesh m;
    test_case c = {.file = "jutland.poly", .count = 4, .size = 1000.0, .angle = 20.0};
    test_mesh_make(&m, &c);
    mesh_sub *sub = m.sub[0];
    assert_true(sub->head.shared_count > 0);
    int32_t id = sub->edge[0].id, pieces = sub->head.piece_count;
    assert_int_equal(mesh_sub_apply_split(sub, id, 5), 3);
    assert_int_equal(sub->head.piece_count, pieces + 3);
    assert_int_equal(mesh_sub_apply_split(sub, id, 5), 0);
    assert_int_equal(mesh_sub_apply_split(sub, id, 2), 0);
    assert_int_equal(mesh_sub_apply_split(sub, id, 1), 0);
    assert_int_equal(mesh_sub_apply_split(sub, id, 3), 1);
    assert_int_equal(mesh_sub_apply_split(sub, -1, 1), -1);
    assert_int_equal(mesh_sub_apply_split(sub, id, 0), -1);
    assert_int_equal(mesh_sub_apply_split(sub, id, UINT32_MAX), -1);
    assert_int_equal(mesh_sub_apply_split(sub, m.decomp.cut_count, 1), -1);
    test_mesh_fini(&m);
}

static void test_refine_damaged_pack_is_refused(void **state)
{
    (void)state;
    test_mesh m;
    test_case c = {.file = "jutland.poly", .count = 6, .size = 10.0, .angle = 25.0};
    uint32_t seed = 3;
    test_mesh_make(&m, &c);
    size_t size = mesh_sub_pack_size(m.sub[0]);
    char *bytes = malloc(size), *copy = malloc(size);
    assert_true(bytes != NULL && copy != NULL);
    mesh_sub_pack(m.sub[0], bytes);
    assert_null(mesh_sub_unpack(bytes, size - 1, NULL));
    assert_null(mesh_sub_unpack(bytes, 3, NULL));
    for (int round = 0; round < 500; round++) {
        mesh_splits splits = {0};
        memcpy(copy, bytes, size);
        copy[test_random(&seed) % size] ^= (char)(1 << test_random(&seed) % 8);
        mesh_sub *sub = mesh_sub_unpack(copy, size, NULL);
        if (sub != NULL) {
            (void)mesh_sub_refine(sub, &m.sizing, &m.quality, 200, &splits);
            mesh_splits_fini(&splits);
            mesh_sub_destroy(sub);
        }
    }
    free(bytes);
    free(copy);
    test_mesh_fini(&m);
}

/* A star with sharp points, with a square hole in its middle. */
static char *star_text(uint32_t *seed)
{
    int count = 5 + (int)(test_random(seed) % 40);
    size_t room = (size_t)(count + 4) * 128 + 256, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "%d 2 0 0\n", count + 4);
    for (int i = 0; i < count; i++) {
        double r = 2.0 + 98.0 * pow((test_random(seed) % 1000) / 1000.0, 2.0);
        used += (size_t)snprintf(text + used, room - used, "%d %.5f %.5f\n", i,
                                 r * cos(TURN * i / count), r * sin(TURN * i / count));
    }
    for (int i = 0; i < 4; i++) {
        used += (size_t)snprintf(text + used, room - used, "%d %.5f %.5f\n", count + i,
                                 0.9 * cos(TURN * i / 4), 0.9 * sin(TURN * i / 4));
    }
    used += (size_t)snprintf(text + used, room - used, "%d 0\n", count + 4);
    for (int i = 0; i < count + 4; i++) {
        int next = i < count ? (i + 1) % count : count + (i - count + 1) % 4;
        used += (size_t)snprintf(text + used, room - used, "%d %d %d\n", i, i, next);
    }
    (void)snprintf(text + used, room - used, "1\n0 0 0\n");
    return text;
}

static void test_refine_random_stars(void **state)
{
    (void)state;
    uint32_t seed = 11;
    for (int i = 0; i < STARS; i++) {
        char *text = star_text(&seed);
        test_case c = {.text = text,
                       .count = 1 + i % 12,
                       .size = 5.0 + i % 7,
                       .angle = 20.0 + i % 11,
                       .bisect = i % 3 == 0};
        test_mesh_run(&c, i % 2 == 0 ? 0 : (uint32_t)i);
        free(text);
    }
}

static void test_refine_needles(void **state)
{
    (void)state;
    const double degrees[] = {45.0, 30.0, 15.0, 5.0, 2.0, 1.0, 0.3};
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        for (int k = 0; k < 3; k++) {
            double a = degrees[i] * TURN / 360.0, l = k == 0 ? 100.0 : k == 1 ? 61.7 : 23.1;
            double xy[] = {0.0, 0.0, 100.0, 0.0, l * cos(a), l * sin(a)};
            char *text = test_ring_text(xy, 3);
            test_case c = {
                .text = text, .count = 1 + (int32_t)i % 4, .size = 20.0, .angle = 20.0 + 5.0 * k};
            test_mesh_run(&c, (uint32_t)i);
            free(text);
        }
    }
}

/* Simple polygons whose points come nearer to other segments than the grid can tell. */
static void test_refine_below_the_grid(void **state)
{
    (void)state;
    /* The tip of a needle passes a vertex. */
    const double tip[] = {13416.8567, -5087.3005, 13503.3151, -4952.1205, 13504.4756,
                          -4962.7631, 13502.7348, -4946.5191, 14049.0472, -4534.6308};
    /* A bay behind a channel that the grid closes: it stays water. */
    const double bay[] = {0.0,     0.0,  100.0, 0.0,   100.0, 100.0, 50.0001, 100.0,
                          50.0001, 80.0, 70.0,  60.0,  50.0,  40.0,  30.0,    60.0,
                          50.0,    80.0, 50.0,  100.0, 0.0,   100.0};
    /* A spike across a bay to the other shore: A, B, A. */
    const double spike[] = {0.0,  0.0,  100.0, 0.0,  100.0, 100.0, 70.0, 100.0, 70.0,  40.0, 30.0,
                            40.0, 30.0, 90.0,  70.0, 90.0,  30.0,  90.0, 30.0,  100.0, 0.0,  100.0};
    const struct {
        const double *xy;
        int count;
        double size;
    } shape[] = {{tip, 5, 30.0}, {bay, 11, 9.0}, {spike, 11, 9.0}};
    for (size_t i = 0; i < 3; i++) {
        char *text = test_ring_text(shape[i].xy, shape[i].count);
        for (int32_t count = 1; count < 9; count += 3) {
            test_case c = {.text = text, .count = count, .size = shape[i].size, .angle = 27.0};
            test_mesh_run(&c, (uint32_t)count);
        }
        free(text);
    }
}

static void test_refine_inner_segments(void **state)
{
    (void)state;
    /* A square with a cross inside that does not reach the border, a slit from it, and a lone
     * diagonal. */
    const char *text =
        "12 2\n1 0 0\n2 100 0\n3 100 100\n4 0 100\n5 30 50\n6 70 50\n7 50 50\n8 50 70\n9 50 30\n"
        "10 0 20\n11 20 25\n12 90 93\n10\n1 1 2\n2 2 3\n3 3 4\n4 4 10\n5 10 1\n6 5 7\n7 7 6\n"
        "8 8 7\n9 7 9\n10 10 11\n0\n";
    for (int32_t count = 1; count < 20; count += 3) {
        test_case c = {.text = text, .count = count, .size = 6.0, .angle = 29.0};
        test_mesh_run(&c, (uint32_t)count);
    }
}

static void test_refine_memory_per_triangle(void **state)
{
    (void)state;
    test_mesh m;
    test_case c = {.file = "jutland.poly", .count = 4, .size = 1.0, .angle = 28.0};
    size_t bytes = 0;
    int64_t tris = 0;
    test_mesh_make(&m, &c);
    test_mesh_refine(&m, 0);
    for (int32_t i = 0; i < c.count; i++) {
        bytes += mesh_sub_memory(m.sub[i]);
        tris += m.sub[i]->head.tri_count;
    }
    assert_true((double)bytes / (double)tris < 80.0);
    test_mesh_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refine_data_in_turn),
                                       cmocka_unit_test(test_refine_any_order),
                                       cmocka_unit_test(test_refine_splits_commute),
                                       cmocka_unit_test(test_refine_damaged_pack_is_refused),
                                       cmocka_unit_test(test_refine_random_stars),
                                       cmocka_unit_test(test_refine_needles),
                                       cmocka_unit_test(test_refine_below_the_grid),
                                       cmocka_unit_test(test_refine_inner_segments),
                                       cmocka_unit_test(test_refine_memory_per_triangle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
