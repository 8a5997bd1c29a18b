/* Goal: the checker notices. Method: a mesh that passes is damaged in one way per test, and the
 * check for that must fail. */
#include "helper.h"

#include "check_input.h"
#include "kernel.h"

#include <stdlib.h>

static void make_sound(test_mesh *m)
{
    mesh_check_result r;
    test_case c = {.file = "jutland.poly", .count = 5, .size = 8.0, .angle = 26.0};
    test_mesh_make(m, &c);
    test_mesh_refine(m, 0);
    assert_int_equal(test_mesh_check(m, &r), 0);
    assert_int_equal(r.triangles - r.edges + r.points, 1);
}

static void expect_fault(test_mesh *m, mesh_check_kind kind)
{
    mesh_check_result r;
    mesh_log log = {0};
    mesh_check_input in = {.pslg = &m->pslg,
                           .decomp = &m->decomp,
                           .sub = m->sub,
                           .sizing = &m->sizing,
                           .quality = &m->quality,
                           .poly = &m->poly};
    assert_int_equal(mesh_check(&in, &r, &log), 1);
    assert_true(r.faults[kind] > 0);
    test_mesh_fini(m);
}

static bool is_inner(const mesh_tri *tri)
{
    return tri->n[0] >= 0 && tri->n[1] >= 0 && tri->n[2] >= 0;
}

static void test_check_orientation(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    int32_t *v = m.sub[2]->tri[7].v, swap = v[0];
    v[0] = v[1];
    v[1] = swap;
    expect_fault(&m, MESH_CHECK_ORIENTATION);
}

static void test_check_overlap(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    m.sub[1]->tri[3] = m.sub[1]->tri[4];
    expect_fault(&m, MESH_CHECK_OVERLAP);
}

static void test_check_missing_triangle(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        const mesh_check_kind expected[3] = {MESH_CHECK_BOUNDARY, MESH_CHECK_AREA,
                                             MESH_CHECK_EULER};
        test_mesh m;
        make_sound(&m);
        mesh_sub *sub = m.sub[3];
        for (int32_t t = 0; t < sub->head.tri_count; t++) {
            if (is_inner(&sub->tri[t])) {
                sub->tri[t] = sub->tri[--sub->head.tri_count];
                break;
            }
        }
        expect_fault(&m, expected[kind]);
    }
}

/* The file says something else than what was made from it. */
static void test_check_input(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    double far = 100.0 * MESH_GRAIN / m.pslg.frame.scale;
    m.poly.vertex[m.poly.segment[500].a].x += far;
    expect_fault(&m, MESH_CHECK_INPUT);
    /* A lake that the mesh does not have. */
    make_sound(&m);
    m.poly.hole = malloc(sizeof *m.poly.hole);
    assert_non_null(m.poly.hole);
    mesh_point p = m.sub[2]->point[m.sub[2]->tri[0].v[0]];
    m.poly.hole[0] = (mesh_poly_vertex){mesh_frame_x(&m.pslg.frame, p.x) + 0.01,
                                        mesh_frame_y(&m.pslg.frame, p.y), 0};
    m.poly.hole_count = 1;
    expect_fault(&m, MESH_CHECK_INPUT);
}

/* The file's area is known, and to a fraction that a lost lake would exceed. */
static void test_check_measures_the_file(void **state)
{
    (void)state;
    test_mesh m;
    mesh_domain domain;
    mesh_table table;
    mesh_input_faults f;
    make_sound(&m);
    assert_int_equal(mesh_domain_init(&domain, &m.pslg), 0);
    assert_int_equal(mesh_table_init(&table, m.sub, m.decomp.count), 0);
    assert_int_equal(mesh_check_against(&m.poly, &m.pslg, &domain, &table, &f), 0);
    double mesh2 = (double)domain.area2;
    assert_true(f.measured && f.places > 0 && f.wrong == 0 && f.strayed == 0);
    assert_true(f.area2 > mesh2 - f.allowed2 && f.area2 < mesh2 + f.allowed2);
    assert_true(f.allowed2 < 0.005 * mesh2);
    mesh_table_fini(&table);
    mesh_domain_fini(&domain);
    test_mesh_fini(&m);
}

static void test_check_conformity(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    assert_int_equal(mesh_halve(m.sub[0], 1, NULL, NULL), 0); /* a shared piece, on one side only */
    expect_fault(&m, MESH_CHECK_CONFORMITY);
}

static void test_check_delaunay(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    mesh_sub *sub = m.sub[4];
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        int32_t u = sub->tri[t].n[0];
        if (!is_inner(&sub->tri[t])) {
            continue;
        }
        int32_t p = sub->tri[t].v[0], q = sub->tri[u].v[mesh_slot_of(sub, u, t)];
        mesh_point pp = sub->point[p], pq = sub->point[q];
        if (mesh_orient(pp, sub->point[sub->tri[t].v[1]], pq) > 0 &&
            mesh_orient(pp, pq, sub->point[sub->tri[t].v[2]]) > 0) {
            mesh_flip(sub, t, 0);
            break;
        }
    }
    expect_fault(&m, MESH_CHECK_DELAUNAY);
}

static void test_check_size(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    m.sizing.size *= 0.7;
    expect_fault(&m, MESH_CHECK_SIZE);
}

static void test_check_angle(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    m.quality.angle_deg = 40.0;
    expect_fault(&m, MESH_CHECK_ANGLE);
}

static void test_check_moved_corner(void **state)
{
    (void)state;
    test_mesh m;
    make_sound(&m);
    /* One unit is less than a micrometre here; the area and the border notice. */
    mesh_sub *sub = m.sub[0];
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        if (sub->tri[t].n[0] < 0 && sub->edge[sub->piece[~sub->tri[t].n[0]].edge].id < 0) {
            sub->point[sub->tri[t].v[1]].x += 1;
            break;
        }
    }
    expect_fault(&m, MESH_CHECK_BOUNDARY);
}

static void test_check_counts_holes(void **state)
{
    (void)state;
    test_mesh m;
    mesh_check_result r;
    test_case c = {
        .text = "8 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 4 4\n6 6 4\n7 6 6\n8 4 6\n8\n1 1 2\n2 2 3\n"
                "3 3 4\n4 4 1\n5 5 6\n6 6 7\n7 7 8\n8 8 5\n1\n1 5 5\n",
        .count = 6,
        .size = 1.0,
        .angle = 30.0};
    test_mesh_make(&m, &c);
    test_mesh_refine(&m, 0);
    assert_int_equal(test_mesh_check(&m, &r), 0);
    assert_int_equal(r.points - r.edges + r.triangles, 0);
    test_mesh_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_check_orientation),
                                       cmocka_unit_test(test_check_overlap),
                                       cmocka_unit_test(test_check_missing_triangle),
                                       cmocka_unit_test(test_check_input),
                                       cmocka_unit_test(test_check_measures_the_file),
                                       cmocka_unit_test(test_check_conformity),
                                       cmocka_unit_test(test_check_delaunay),
                                       cmocka_unit_test(test_check_size),
                                       cmocka_unit_test(test_check_angle),
                                       cmocka_unit_test(test_check_moved_corner),
                                       cmocka_unit_test(test_check_counts_holes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
