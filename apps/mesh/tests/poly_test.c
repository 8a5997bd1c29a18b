/* Goal: every bad input gives an error that names the line and the value, or a stated repair.
 * Method: one small text per fault, and the words its message must have. */
#include "helper.h"

#include "cdt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQUARE "4 2 0 0\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n"
#define RING "1 1 2\n2 2 3\n3 3 4\n4 4 1\n"

typedef struct notes {
    char text[4096];
    int count;
} notes;

static void keep_note(void *arg, const char *line)
{
    notes *n = arg;
    size_t used = strlen(n->text);
    (void)snprintf(n->text + used, sizeof n->text - used, "%s\n", line);
    n->count++;
}

/* All the way to a triangulation. */
static int build(const char *text, notes *n, mesh_log *log)
{
    mesh_poly poly;
    mesh_pslg pslg;
    *n = (notes){{0}, 0};
    *log = (mesh_log){keep_note, n, {0}};
    if (test_pslg(text, &poly, &pslg, log) != 0) {
        return -1;
    }
    mesh_sub *sub = mesh_cdt_create(&pslg, log);
    int rc = sub == NULL ? -1 : sub->head.tri_count > 0 ? 0 : -2;
    mesh_sub_destroy(sub);
    mesh_pslg_fini(&pslg);
    mesh_poly_fini(&poly);
    return rc;
}

static void expect_error(const char *text, const char *words)
{
    notes n;
    mesh_log log;
    assert_int_equal(build(text, &n, &log), -1);
    if (strstr(log.error, words) == NULL) {
        fail_msg("'%s' does not say '%s'", log.error, words);
    }
}

static void expect_repair(const char *text, const char *words)
{
    notes n;
    mesh_log log;
    if (build(text, &n, &log) != 0) {
        fail_msg("%s", log.error);
    }
    if (strstr(n.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", n.text, words);
    }
}

static void expect_clean(const char *text)
{
    notes n;
    mesh_log log;
    if (build(text, &n, &log) != 0) {
        fail_msg("%s", log.error);
    }
    assert_string_equal(n.text, "");
}

static void test_poly_reads_variants(void **state)
{
    (void)state;
    expect_clean(SQUARE "4 0\n" RING "0\n");
    expect_clean(
        "# a comment\n\n4 2 1 1 # here too\n0 0 0 7 1\n1 1e1 0 7 1\n2 10 10. 7 1\n3 0 +10 7 1\n"
        "4 1\n0 0 1 5\n1 1 2 5\n2 2 3 5\n3 3 0 5\n0\n");
    expect_clean(SQUARE "4 0\r\n" RING "0\n1\n1 5 5 1.5 0.1\n");
    expect_clean("8 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 4 4\n6 6 4\n7 6 6\n8 4 6\n8\n" RING
                 "5 5 6\n6 6 7\n7 7 8\n8 8 5\n1\n1 5 5\n");
}

static void test_poly_names_bad_values(void **state)
{
    (void)state;
    expect_error("", "the file ends where the number of vertices");
    expect_error("x 2 0 0\n", "test.poly:1: the number of vertices is 'x'");
    expect_error("-4 2\n", "test.poly:1: the number of vertices is -4");
    expect_error("99999999999999999999 2\n", "'99999999999999999999'");
    expect_error("999999999 2\n", "not between 0 and");
    expect_error("4 3 0 0\n", "the dimension is 3");
    expect_error("4 2 -1 0\n", "-1 attributes");
    expect_error("4 2\n5 0 0\n", "test.poly:2: the first vertex has number 5");
    expect_error("4 2\n1 0 0\n3 1 1\n", "test.poly:3: vertex number 3 where 2");
    expect_error("4 2\n1 nan 0\n", "test.poly:2: x is 'nan'");
    expect_error("4 2\n1 0 inf\n", "test.poly:2: y is 'inf'");
    expect_error("4 2\n1 0 1e400\n", "test.poly:2: y is '1e400'");
    expect_error("4 2\n1 0 3abc\n", "y is '3abc', not a number");
    expect_error("4 2\n1 0\n", "test.poly:2: y is missing");
    expect_error(SQUARE "4 0\n1 1 9\n", "test.poly:7: the segment's end is vertex 9, but");
    expect_error(SQUARE "4 0\n" RING "1\n1 inf 3\n", "test.poly:12: the hole's x is 'inf'");
    expect_error("0 2\n4 0\n", "the number of vertices is 0");
    expect_error(SQUARE "0\n0\n", "enclose nothing");
}

static void test_poly_notices_truncation(void **state)
{
    (void)state;
    const char whole[] = SQUARE "4 0\n" RING "0\n";
    expect_error("4 2\n1 0 0\n", "the file ends after 1 of 4 vertices");
    expect_error("50000000 2\n1 0 0\n", "the file ends after 1 of 50000000 vertices");
    expect_error(SQUARE "4 0\n1 1 2\n", "the file ends after 1 of 4 segments");
    expect_error(SQUARE "4 0\n" RING, "the file ends where the number of holes");
    for (size_t cut = 0; cut + 2 < sizeof whole - 1; cut++) {
        char part[sizeof whole];
        notes n;
        mesh_log log;
        memcpy(part, whole, cut);
        part[cut] = '\0';
        assert_int_equal(build(part, &n, &log), -1);
        assert_true(log.error[0] != '\0');
    }
}

static void test_poly_missing_files(void **state)
{
    (void)state;
    mesh_log log = {0};
    mesh_poly poly;
    assert_int_equal(mesh_poly_read("/nonexistent/x.poly", &poly, &log), -1);
    assert_non_null(strstr(log.error, "/nonexistent/x.poly: No such file"));
    assert_int_equal(mesh_poly_read("/", &poly, &log), -1);
    assert_true(log.error[0] != '\0');
}

static void test_poly_refuses_crossings(void **state)
{
    (void)state;
    expect_error("4 2\n1 0 0\n2 10 10\n3 10 0\n4 0 10\n4\n" RING "0\n",
                 "test.poly:9: this segment crosses the one on line 7 near (5, 5)");
    expect_error("6 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 -5 5\n6 5 5\n5\n" RING "5 5 6\n0\n",
                 "crosses");
}

static void test_poly_repairs_segments(void **state)
{
    (void)state;
    expect_repair(SQUARE "5 0\n" RING "5 2 1\n0\n",
                  "test.poly:11: the same segment as on line 7: dropped");
    expect_repair(SQUARE "5 0\n" RING "5 3 3\n0\n", "test.poly:11: a segment without length");
    expect_repair("6 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 5 0\n6 5 4\n5\n" RING "5 5 6\n0\n",
                  "test.poly:9: this segment passes through the point (5, 0): split there");
    expect_repair("5 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 10 0\n4\n1 1 2\n2 5 3\n3 3 4\n4 4 1\n0\n",
                  "test.poly:6: the same point as on line 3");
    expect_repair(
        "5 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 10 0.00001\n4\n1 1 2\n2 5 3\n3 3 4\n4 4 1\n0\n",
        "1 points closer than");
    /* The spike's two sides fall into one on the grid. */
    expect_repair(
        "6 2\n1 0 0\n2 10 0\n3 10 5\n4 15 5.00001\n5 10 5.00002\n6 0 10\n6\n1 1 2\n2 2 3\n3 3 4\n"
        "4 4 5\n5 5 6\n6 6 1\n0\n",
        "dropped");
}

static void test_poly_judges_rings(void **state)
{
    (void)state;
    const char base[] = "6 2\n1 0 0\n2 10 0\n3 10 10\n4 0 10\n5 4 4\n6 6 6\n";
    char text[512];
    (void)snprintf(text, sizeof text, "%s6\n%s5 5 6\n6 6 5\n1\n1 5 5\n", base, RING);
    expect_error(text, "test.poly:13: the ring that starts here has 2 distinct points");
    (void)snprintf(text, sizeof text, "%s5\n%s5 5 5\n1\n1 4 4\n", base, RING);
    expect_error(text, "has 1 distinct point ");
    (void)snprintf(text, sizeof text, "%s4\n%s1\n1 5 5\n", base, RING);
    expect_error(text, "the hole at (5, 5) is in no ring of its own");
    (void)snprintf(text, sizeof text, "%s4\n%s1\n1 10 5\n", base, RING);
    expect_error(text, "lies on a segment");
    (void)snprintf(text, sizeof text, "%s4\n%s1\n1 10.00000001 5\n", base, RING);
    expect_error(text, "lies on a segment, that of line 10");
    (void)snprintf(text, sizeof text, "%s4\n%s1\n1 50 5\n", base, RING);
    expect_repair(text, "lies outside everything: ignored");
    expect_error(SQUARE "3 0\n1 1 2\n2 2 3\n3 3 4\n0\n", "no ring is closed");
    expect_error("3 2\n1 5 5\n2 5 5\n3 5 5\n3\n1 1 2\n2 2 3\n3 3 1\n0\n",
                 "lie within 0 of one place");
    expect_error("3 2\n1 0 0\n2 5 5\n3 10 10\n3\n1 1 2\n2 2 3\n3 3 1\n0\n", "enclose nothing");
}

static void test_poly_survives_garbage(void **state)
{
    (void)state;
    uint32_t seed = 7;
    const char whole[] = SQUARE "5 0\n" RING "5 1 3\n1\n1 2 5\n";
    const char palette[] = "0123456789.-+e #\nnai,x";
    for (int round = 0; round < 3000; round++) {
        char text[sizeof whole];
        notes n;
        mesh_log log;
        memcpy(text, whole, sizeof whole);
        for (int k = 0; k < 1 + round % 4; k++) {
            text[test_random(&seed) % (sizeof whole - 1)] =
                palette[test_random(&seed) % (sizeof palette - 1)];
        }
        int rc = build(text, &n, &log);
        assert_true(rc == 0 || (rc == -1 && log.error[0] != '\0'));
    }
}

static void test_poly_sizing_values(void **state)
{
    (void)state;
    mesh_frame frame = {0.0, 0.0, 1.0};
    mesh_sizing sizing;
    mesh_log log = {0};
    mesh_feature f = {0.0, 0.0, 1.0, 0.5};
    assert_int_equal(mesh_sizing_make(&frame, 0.0, NULL, 0, &sizing, &log), -1);
    assert_int_equal(mesh_sizing_make(&frame, NAN, NULL, 0, &sizing, &log), -1);
    assert_int_equal(mesh_sizing_make(&frame, 1.0, &f, 1, &sizing, &log), -1);
    assert_non_null(strstr(log.error, "0.5"));
    f.factor = 4.0;
    assert_int_equal(mesh_sizing_make(&frame, 100.0, &f, 1, &sizing, &log), 0);
    assert_true(fabs(mesh_sizing_at(&sizing, 0.0, 0.0) - 25.0) < 1e-9);
    assert_true(fabs(mesh_sizing_at(&sizing, 1e6, 0.0) - 100.0) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_poly_reads_variants),
                                       cmocka_unit_test(test_poly_names_bad_values),
                                       cmocka_unit_test(test_poly_notices_truncation),
                                       cmocka_unit_test(test_poly_missing_files),
                                       cmocka_unit_test(test_poly_refuses_crossings),
                                       cmocka_unit_test(test_poly_repairs_segments),
                                       cmocka_unit_test(test_poly_judges_rings),
                                       cmocka_unit_test(test_poly_survives_garbage),
                                       cmocka_unit_test(test_poly_sizing_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
