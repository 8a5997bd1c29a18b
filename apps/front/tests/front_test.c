/* Goal: neighbours have the same triangles, and the check finds every kind of wrong mesh. Method:
 * meshes that are right by construction (fan.h), of random sizings, and the same with one thing
 * changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "fan.h"

/* A sub-domain and its mesh. */
typedef struct piece {
    front_box box;
    front_surface surface;
    front_mesh mesh;
} piece;

static const front_domain domain = {{5, 4, 3}, {3, 2, 3}};

static double draw(unsigned *state, double least, double most)
{
    return least + (most - least) * rand_r(state) / RAND_MAX;
}

static front_sizing random_sizing(unsigned seed)
{
    front_sizing s = {.largest = draw(&seed, 0.2, 1), .grading = draw(&seed, 0.3, 1)};
    for (s.count = 0; s.count < 3; s.count++) {
        front_feature *feature = &s.features[s.count];
        for (int d = 0; d < 3; d++) {
            feature->low[d] = draw(&seed, -1, domain.cubes[d]);
            feature->high[d] = feature->low[d] + (d == s.count ? 0 : draw(&seed, 0, 2));
        }
        feature->radius = s.count == 2 ? draw(&seed, 0, 2) : 0;
        feature->size = draw(&seed, 0.1, 0.5);
    }
    return s;
}

static piece make(const front_sizing *s, int32_t index)
{
    piece p = {.box = front_domain_box(&domain, index)};
    assert_true(front_surface_make(&p.surface, s, &p.box));
    double(*points)[3] = malloc((size_t)p.surface.point_count * sizeof *points);
    assert_non_null(points);
    for (int32_t i = 0; i < p.surface.point_count; i++)
        for (int d = 0; d < 3; d++)
            points[i][d] = (double)p.surface.points[i][d] / FRONT_UNIT;
    assert_true(fan_make(&p.mesh, (const double(*)[3])points, p.surface.point_count,
                         (const int32_t(*)[3])p.surface.triangles, p.surface.triangle_count));
    free(points);
    return p;
}

static void release(piece *p)
{
    front_surface_fini(&p->surface);
    front_mesh_fini(&p->mesh);
}

static bool is_right(const piece *p, char error[FRONT_TEXT_BYTES])
{
    double volume;
    return front_check_mesh(&p->mesh, &p->surface, &p->box, &volume, error);
}

static int32_t interface_of(const piece *p, int axis, bool up, front_triangle **out)
{
    return front_mesh_interface(&p->mesh, axis, up ? p->box.high[axis] : p->box.low[axis], out);
}

static bool fits(const piece *p, const piece *q, int axis)
{
    char error[FRONT_TEXT_BYTES];
    front_triangle *ours, *theirs;
    int32_t count = interface_of(p, axis, true, &ours);
    int32_t other = interface_of(q, axis, false, &theirs);
    assert_true(count > 0);
    bool same = front_check_interface(ours, count, theirs, other, error);
    free(ours);
    free(theirs);
    return same;
}

static void test_neighbours_have_the_same_triangles(void **state)
{
    char error[FRONT_TEXT_BYTES];
    (void)state;
    for (unsigned seed = 1; seed <= 4; seed++) {
        front_sizing s = random_sizing(seed);
        for (int32_t i = 0; i < front_domain_count(&domain); i++) {
            piece p = make(&s, i);
            if (!is_right(&p, error))
                fail_msg("seed %u, sub-domain %d: %s", seed, i, error);
            for (int axis = 0; axis < 3; axis++) {
                int32_t next = front_domain_neighbour(&domain, i, axis, 1);
                piece q = make(&s, next < 0 ? i : next);
                if (next >= 0 && !fits(&p, &q, axis))
                    fail_msg("seed %u, sub-domains %d and %d", seed, i, next);
                release(&q);
            }
            release(&p);
        }
    }
}

static void test_an_interface_of_other_sizes_is_noticed(void **state)
{
    (void)state;
    front_sizing s = random_sizing(1), other = s;
    other.features[0].size *= 0.7;
    other.largest *= 0.5;
    piece p = make(&s, 0), q = make(&other, front_domain_neighbour(&domain, 0, 0, 1));
    assert_false(fits(&p, &q, 0));
    release(&p);
    release(&q);
}

static void test_one_moved_bit_of_an_interface_is_noticed(void **state)
{
    (void)state;
    front_sizing s = random_sizing(2);
    piece p = make(&s, 0), q = make(&s, front_domain_neighbour(&domain, 0, 0, 1));
    for (int32_t i = 0; i < q.surface.point_count; i++)
        if (q.mesh.points[i][0] == q.box.low[0] && q.mesh.points[i][1] > q.box.low[1]) {
            q.mesh.points[i][1] = nextafter(q.mesh.points[i][1], 0);
            break;
        }
    assert_false(fits(&p, &q, 0));
    release(&p);
    release(&q);
}

/* Changes to a right mesh, and a word of what the check says then. */
static void move_point(front_mesh *m)
{
    m->points[0][0] = nextafter(m->points[0][0], 100);
}

static void drop_tet(front_mesh *m)
{
    m->tet_count--;
}

static void turn_tet(front_mesh *m)
{
    int32_t held = m->tets[3][0];
    m->tets[3][0] = m->tets[3][1];
    m->tets[3][1] = held;
}

static void double_tet(front_mesh *m)
{
    memcpy(m->tets[0], m->tets[1], sizeof m->tets[0]);
}

static void name_no_point(front_mesh *m)
{
    m->tets[2][1] = m->point_count;
}

static void pull_middle_out(front_mesh *m)
{
    m->points[m->point_count - 1][2] += 10;
}

static void lose_points(front_mesh *m)
{
    for (int32_t i = 0; i < m->tet_count; i++)
        for (int c = 0; c < 4; c++)
            m->tets[i][c] = c;
    m->tet_count = 1;
    m->point_count = 4;
}

static void test_each_kind_of_wrong_mesh_is_noticed(void **state)
{
    static const struct {
        void (*change)(front_mesh *m);
        const char *says;
    } cases[] = {
        {move_point, "of the surface was moved"},
        {drop_tet, "the volumes add up to"},
        {turn_tet, "expected more than 0"},
        {double_tet, "the volumes add up to|overlap|boundary"},
        {name_no_point, "has a corner"},
        {pull_middle_out, "expected more than 0"},
        {lose_points, "the volumes add up to|expected more than 0"},
    };
    (void)state;
    front_sizing s = {.largest = 0.5, .grading = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char error[FRONT_TEXT_BYTES], says[FRONT_TEXT_BYTES];
        bool said = false;
        piece p = make(&s, 4);
        assert_true(is_right(&p, error));
        cases[i].change(&p.mesh);
        assert_false(is_right(&p, error));
        (void)snprintf(says, sizeof says, "%s", cases[i].says);
        for (char *word = strtok(says, "|"); word != NULL; word = strtok(NULL, "|"))
            said = said || strstr(error, word) != NULL;
        if (!said)
            fail_msg("case %zu: %s", i, error);
        release(&p);
    }
}

/* All volumes are right, but one square of the surface is cut along its other diagonal. */
static void test_another_boundary_is_noticed(void **state)
{
    char error[FRONT_TEXT_BYTES];
    (void)state;
    front_sizing s = {.largest = 1, .grading = 1};
    front_domain one = {{1, 1, 1}, {1, 1, 1}};
    piece p = {.box = front_domain_box(&one, 0)};
    assert_true(front_surface_make(&p.surface, &s, &p.box));
    double points[32][3];
    assert_in_range(p.surface.point_count, 14, 32);
    for (int32_t i = 0; i < p.surface.point_count; i++)
        for (int d = 0; d < 3; d++)
            points[i][d] = (double)p.surface.points[i][d] / FRONT_UNIT;
    /* The first four triangles are a fan of one face: two triangles cover it too. */
    int32_t(*t)[3] = p.surface.triangles;
    int32_t merged[64][3] = {{t[0][0], t[0][1], t[0][2]}};
    int32_t kept = 0, centre = t[0][0];
    int32_t rim[4], rims = 0;
    for (int32_t i = 0; i < p.surface.triangle_count; i++)
        if (t[i][0] != centre)
            memcpy(merged[kept++], t[i], sizeof t[i]);
    for (int32_t at = t[0][1]; rims < 4; rims++)
        for (int32_t i = 0; i < 4; i++)
            if (t[i][1] == at) {
                rim[rims] = at;
                at = t[i][2];
                break;
            }
    memcpy(merged[kept++], (int32_t[]){rim[0], rim[1], rim[2]}, sizeof merged[0]);
    memcpy(merged[kept++], (int32_t[]){rim[0], rim[2], rim[3]}, sizeof merged[0]);
    assert_true(fan_make(&p.mesh, (const double(*)[3])points, p.surface.point_count,
                         (const int32_t(*)[3])merged, kept));
    assert_false(is_right(&p, error));
    assert_non_null(strstr(error, "its boundary has 22 triangles, its surface 24"));
    release(&p);
}

static void test_points_belong_to_one_sub_domain(void **state)
{
    (void)state;
    const double inner[3] = {0.5, 0.5, 0.5}, corner[3] = {1, 2, 1}, last[3] = {5, 4, 3};
    assert_int_equal(front_domain_owner(&domain, inner), 0);
    assert_int_equal(front_domain_owner(&domain, corner), 0);
    assert_int_equal(front_domain_owner(&domain, last), front_domain_count(&domain) - 1);
    for (int32_t i = 0; i < front_domain_count(&domain); i++) {
        front_box box = front_domain_box(&domain, i);
        double middle[3];
        for (int d = 0; d < 3; d++)
            middle[d] = (box.low[d] + box.high[d]) / 2.0;
        assert_int_equal(front_domain_owner(&domain, middle), i);
    }
}

static void test_spots_fill_the_box(void **state)
{
    (void)state;
    for (unsigned seed = 30; seed < 40; seed++) {
        front_sizing s = random_sizing(seed);
        front_box box = front_domain_box(&domain, (int32_t)seed % front_domain_count(&domain));
        front_spots spots;
        double volume = 0, whole = 1;
        assert_true(front_spots_make(&spots, &s, &box));
        assert_int_equal(front_spots_count(&s, &box), spots.count);
        for (int32_t i = 0; i < spots.count; i++) {
            double size = spots.spots[i].size, half = size / 2, low[3], high[3];
            for (int d = 0; d < 3; d++) {
                low[d] = spots.spots[i].at[d] - half;
                high[d] = spots.spots[i].at[d] + half;
            }
            assert_true(size <= front_sizing_least(&s, low, high));
            volume += size * size * size;
        }
        for (int d = 0; d < 3; d++)
            whole *= box.high[d] - box.low[d];
        assert_true(volume == whole);
        front_spots_fini(&spots);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_have_the_same_triangles),
        cmocka_unit_test(test_an_interface_of_other_sizes_is_noticed),
        cmocka_unit_test(test_one_moved_bit_of_an_interface_is_noticed),
        cmocka_unit_test(test_each_kind_of_wrong_mesh_is_noticed),
        cmocka_unit_test(test_another_boundary_is_noticed),
        cmocka_unit_test(test_points_belong_to_one_sub_domain),
        cmocka_unit_test(test_spots_fill_the_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
