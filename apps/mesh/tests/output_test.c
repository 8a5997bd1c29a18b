/* Goal: files are complete, of sane size, and failures are reported without leaving half a file.
 * Method: write each and look at its ends; write where it cannot be. */
#include "helper.h"

#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *size, file), *size);
    text[*size] = '\0';
    (void)fclose(file);
    return text;
}

static void expect_file(const char *path, const char *begin, const char *inside, const char *end,
                        size_t most)
{
    size_t size;
    char *text = slurp(path, &size);
    assert_true(size < most);
    assert_memory_equal(text, begin, strlen(begin));
    assert_non_null(strstr(text, inside));
    assert_string_equal(text + size - strlen(end), end);
    free(text);
    (void)remove(path);
}

static void test_output_files(void **state)
{
    (void)state;
    test_mesh m;
    mesh_log log = {0};
    char path[256];
    test_case c = {.file = "jutland.poly", .count = 12, .size = 1.0, .angle = 28.0};
    test_mesh_make(&m, &c);
    test_mesh_refine(&m, 0);
    for (int32_t i = 0; i < c.count; i++) {
        m.sub[i]->head.rank = i / 3;
    }
    mesh_picture picture = {&m.pslg, m.sub, c.count, 4, "A <title> & more", "subtitle", "km"};
    (void)snprintf(path, sizeof path, "mesh_output_%d", (int)getpid());
    assert_int_equal(mesh_write_svg(path, &picture, &log), 0);
    expect_file(path, "<svg ", "A &lt;title&gt; &amp; more", "</svg>\n", 8u << 20);
    assert_int_equal(mesh_write_vtu(path, &picture, &log), 0);
    expect_file(path, "<?xml", "Name=\"rank\"", "</VTKFile>\n", 32u << 20);
    assert_int_equal(mesh_write_svg("/nonexistent/x.svg", &picture, &log), -1);
    assert_non_null(strstr(log.error, "/nonexistent/x.svg"));
    if (access("/dev/full", W_OK) == 0) {
        (void)snprintf(path, sizeof path, "mesh_full_%d", (int)getpid());
        assert_int_equal(symlink("/dev/full", path), 0);
        assert_int_equal(mesh_write_vtu(path, &picture, &log), -1);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    test_mesh_fini(&m);
}

static void test_output_summary(void **state)
{
    (void)state;
    mesh_log log = {0};
    char path[256];
    mesh_rank_summary rank[2] = {{1.0, 0.0, 0.0, 5, 6, 7, 8, 9}, {0.25, 0.25, 0.5, 5, 6, 7, 8, 9}};
    mesh_check_result check = {.triangles = 10};
    mesh_summary summary = {.input = "a\"b\\c", .ranks = 2, .rank = rank, .check = &check};
    (void)snprintf(path, sizeof path, "mesh_summary_%d", (int)getpid());
    assert_int_equal(mesh_write_summary(path, &summary, &log), 0);
    expect_file(path, "{\n", "\"input\": \"a\\\"b\\\\c\"", "}\n", 1u << 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_output_files),
                                       cmocka_unit_test(test_output_summary)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
