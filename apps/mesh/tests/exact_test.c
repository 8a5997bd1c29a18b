/* Goal: the predicates are right at the ends of the grid, where anything narrower would overflow.
 * Method: cases worked out by hand. */
#include "helper.h"

#define TOP ((1 << MESH_COORD_BITS) - 1)

static void test_exact_orientation(void **state)
{
    (void)state;
    mesh_point o = {0, 0}, e = {TOP, 0}, n = {0, TOP}, ne = {TOP, TOP};
    assert_true(mesh_orient(o, e, n) == (int64_t)TOP * TOP);
    assert_true(mesh_orient(o, n, e) == -(int64_t)TOP * TOP);
    assert_true(mesh_orient(o, ne, (mesh_point){TOP / 3, TOP / 3}) == 0);
    assert_true(mesh_orient(o, ne, (mesh_point){TOP / 3, TOP / 3 + 1}) > 0);
    assert_true(mesh_orient(o, ne, (mesh_point){TOP / 3 + 1, TOP / 3}) < 0);
}

static void test_exact_in_circle(void **state)
{
    (void)state;
    mesh_point a = {0, 0}, b = {TOP, 0}, c = {TOP, TOP}, d = {0, TOP};
    assert_false(mesh_in_circle(a, b, c, d));
    assert_true(mesh_in_circle(a, b, c, (mesh_point){0, TOP - 1}));
    assert_true(mesh_in_circle(a, b, c, (mesh_point){1, TOP}));
    assert_false(mesh_in_circle((mesh_point){1, 1}, (mesh_point){TOP, 1}, c, d));
    mesh_point p = {1000, 1005}, q = {995, 1000}, r = {1000, 995}, s = {1003, 1004};
    assert_false(mesh_in_circle(p, q, r, s)); /* on the circle of radius 5 */
    assert_true(mesh_in_circle(p, q, r, (mesh_point){1003, 1003}));
    assert_false(mesh_in_circle(p, q, r, (mesh_point){1004, 1004}));
}

static void test_exact_twelve_halvings(void **state)
{
    (void)state;
    mesh_point a = {MESH_GRAIN * 7, MESH_GRAIN * 3}, b = {MESH_GRAIN * 108, MESH_GRAIN * 1000};
    for (int i = 0; i < MESH_GRAIN_BITS; i++) {
        assert_true(mesh_can_halve(a, b));
        mesh_point m = mesh_middle(a, b);
        assert_true(mesh_orient(a, b, m) == 0);
        assert_true(mesh_length2(a, m) == mesh_length2(m, b));
        b = m;
    }
    assert_false(mesh_can_halve(a, b));
}

static void test_exact_dot(void **state)
{
    (void)state;
    mesh_point a = {0, 0}, b = {100, 0};
    assert_true(mesh_dot(a, b, (mesh_point){50, 49}) < 0);
    assert_true(mesh_dot(a, b, (mesh_point){50, 50}) == 0);
    assert_true(mesh_dot(a, b, (mesh_point){50, 51}) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_orientation), cmocka_unit_test(test_exact_in_circle),
        cmocka_unit_test(test_exact_twelve_halvings), cmocka_unit_test(test_exact_dot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
