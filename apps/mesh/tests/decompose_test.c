/* Goal: any number of sub-domains from 1 to 512 covers the domain, in connected parts with sound
 * shared edges. Method: areas are summed exactly, parts are walked, both owners of each edge are
 * compared. */
#include "helper.h"

#include <stdlib.h>
#include <string.h>

static void check_area(const test_mesh *m, int64_t coarse)
{
    int64_t sum = 0;
    for (int32_t s = 0; s < m->decomp.count; s++) {
        const mesh_sub *sub = m->sub[s];
        assert_true(sub->head.tri_count > 0);
        for (int32_t t = 0; t < sub->head.tri_count; t++) {
            const int32_t *v = sub->tri[t].v;
            int64_t turn = mesh_orient(sub->point[v[0]], sub->point[v[1]], sub->point[v[2]]);
            assert_true(turn > 0);
            sum += turn;
        }
    }
    assert_true(sum == coarse);
}

/* Every triangle is reached from the first without leaving the sub-domain. */
static void check_connected(const mesh_sub *sub)
{
    int32_t count = sub->head.tri_count, depth = 0, reached = 0;
    uint8_t *seen = calloc((size_t)count, 1);
    int32_t *stack = malloc((size_t)count * sizeof *stack);
    assert_true(seen != NULL && stack != NULL);
    seen[0] = 1;
    stack[depth++] = 0;
    while (depth > 0) {
        const mesh_tri *tri = &sub->tri[stack[--depth]];
        reached++;
        for (int i = 0; i < 3; i++) {
            if (tri->n[i] >= 0 && !seen[tri->n[i]]) {
                seen[tri->n[i]] = 1;
                stack[depth++] = tri->n[i];
            }
        }
    }
    assert_int_equal(reached, count);
    free(seen);
    free(stack);
}

static void check_shared(const test_mesh *m)
{
    for (int32_t s = 0; s < m->decomp.count; s++) {
        const mesh_sub *sub = m->sub[s];
        for (int32_t e = 0; e < sub->head.shared_count; e++) {
            const mesh_edge *edge = &sub->edge[e];
            const mesh_sub *other = m->sub[edge->neighbour];
            int32_t k = 0;
            assert_true(edge->neighbour != s);
            while (k < other->head.shared_count && other->edge[k].id != edge->id) {
                k++;
            }
            assert_true(k < other->head.shared_count);
            assert_int_equal(other->edge[k].neighbour, s);
        }
    }
}

static int64_t coarse_area(const mesh_sub *sub)
{
    int64_t sum = 0;
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        const int32_t *v = sub->tri[t].v;
        sum += mesh_orient(sub->point[v[0]], sub->point[v[1]], sub->point[v[2]]);
    }
    return sum;
}

static void run(const char *file, int32_t count, bool bisect)
{
    test_mesh m;
    test_case c = {.file = file, .count = count, .size = 30.0, .angle = 25.0, .bisect = bisect};
    test_mesh_make(&m, &c);
    check_area(&m, coarse_area(m.decomp.coarse));
    for (int32_t s = 0; s < count; s++) {
        check_connected(m.sub[s]);
    }
    check_shared(&m);
    test_mesh_fini(&m);
}

/* A sanitizer looks at each access. */
#ifdef FERRY_SANITIZED
enum { STEP = 3 };
#else
enum { STEP = 1 };
#endif

static void test_decompose_one_to_512(void **state)
{
    (void)state;
    const int32_t count[] = {1,  2,  3,  4,   5,   7,   8,   13,  16,  31,
                             32, 33, 64, 100, 127, 128, 200, 256, 511, 512};
    for (size_t i = 0; i < sizeof count / sizeof count[0]; i += STEP) {
        run("jutland.poly", count[i], i % 2 == 0);
        run("great-britain.poly", count[i], i % 2 != 0);
    }
}

static void test_decompose_is_repeatable(void **state)
{
    (void)state;
    test_mesh a, b;
    test_case c = {.file = "jutland.poly", .count = 37, .size = 3.0, .angle = 25.0};
    test_mesh_make(&a, &c);
    test_mesh_make(&b, &c);
    for (int32_t s = 0; s < c.count; s++) {
        size_t size = mesh_sub_pack_size(a.sub[s]);
        char *pa = malloc(size), *pb = malloc(size);
        assert_true(pa != NULL && pb != NULL && size == mesh_sub_pack_size(b.sub[s]));
        mesh_sub_pack(a.sub[s], pa);
        mesh_sub_pack(b.sub[s], pb);
        assert_memory_equal(pa, pb, size);
        free(pa);
        free(pb);
    }
    test_mesh_fini(&a);
    test_mesh_fini(&b);
}

static void test_decompose_refuses_nonsense(void **state)
{
    (void)state;
    mesh_poly poly;
    mesh_pslg pslg;
    mesh_decomp decomp;
    mesh_log log = {0};
    mesh_sizing sizing = {.size = 1e9};
    mesh_decompose_options options = {.count = 0, .work_share = 0.5, .avoid_metis = false};
    const char *square = "4 2\n1 0 0\n2 1 0\n3 1 1\n4 0 1\n4\n1 1 2\n2 2 3\n3 3 4\n4 4 1\n0\n";
    assert_int_equal(test_pslg(square, &poly, &pslg, &log), 0);
    assert_int_equal(mesh_decompose(&pslg, &sizing, &options, &decomp, &log), -1);
    assert_non_null(strstr(log.error, "0 sub-domains"));
    options.count = MESH_SUBDOMAINS_MAX + 1;
    assert_int_equal(mesh_decompose(&pslg, &sizing, &options, &decomp, &log), -1);
    options.count = 512;
    assert_int_equal(mesh_decompose(&pslg, &sizing, &options, &decomp, &log), 0);
    assert_null(mesh_decomp_sub(&decomp, &sizing, 512, &log));
    mesh_decomp_fini(&decomp);
    mesh_pslg_fini(&pslg);
    mesh_poly_fini(&poly);
}

static void test_decompose_islands(void **state)
{
    (void)state;
    const char *two = "8 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 20 0\n6 30 0\n7 30 10\n8 20 10\n8\n"
                      "1 1 2\n2 2 3\n3 3 4\n4 4 1\n5 5 6\n6 6 7\n7 7 8\n8 8 5\n0\n";
    for (int32_t count = 1; count < 12; count++) {
        test_case c = {
            .text = two, .count = count, .size = 1.0, .angle = 28.0, .bisect = count % 2 == 0};
        test_mesh_run(&c, (uint32_t)count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decompose_one_to_512),
                                       cmocka_unit_test(test_decompose_is_repeatable),
                                       cmocka_unit_test(test_decompose_refuses_nonsense),
                                       cmocka_unit_test(test_decompose_islands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
