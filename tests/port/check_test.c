/* Goal: a port whose tables are of another version of Ferry, or lack a function, is refused before
 * any of it is called. Method: change one version or function after another of a copy of the
 * template's tables, and open a rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "core/rank.h"
#include "port/template/template.h"

static void expect_refused(fy_port *port, const fy_port_ops *right, uint32_t *version,
                           const fy_port_ops *wrong, const char *table)
{
    const ferry_options options = FERRY_OPTIONS_DEFAULTS;
    ferry *f = NULL;
    uint32_t before = *version;
    *version = before + 1;
    port->ops = wrong;
    assert_int_equal(fy_rank_create(port, &options, &f), FERRY_ELAUNCH);
    assert_null(f);
    assert_non_null(strstr(fy_error_text(), table));
    *version = before;
    assert_int_equal(fy_port_check(port), 0);
    port->ops = right;
}

static void test_port_with_a_table_of_another_version_is_refused(void **state)
{
    (void)state;
    fy_template_job *job = fy_template_job_create(1, 1);
    fy_port *port;
    assert_non_null(job);
    assert_int_equal(fy_template_join(job, 0, &port), 0);
    const fy_port_ops *right = port->ops;
    fy_port_ops wrong = *right;
    expect_refused(port, right, &wrong.version, &wrong, "\"all\"");
    expect_refused(port, right, &wrong.transport.version, &wrong, "\"transport\"");
    expect_refused(port, right, &wrong.host.version, &wrong, "\"host\"");
    expect_refused(port, right, &wrong.heap.version, &wrong, "\"heap\"");
    expect_refused(port, right, &wrong.members.version, &wrong, "\"members\"");
    expect_refused(port, right, &wrong.diagnosis.version, &wrong, "\"diagnosis\"");
    port->ops->transport.close(port);
    fy_template_job_destroy(job);
}

#define LACKS(TABLE, NAME)                                                                         \
    do {                                                                                           \
        wrong = *right;                                                                            \
        wrong.TABLE.NAME = NULL;                                                                   \
        port->ops = &wrong;                                                                        \
        assert_int_equal(fy_rank_create(port, &options, &f), FERRY_ELAUNCH);                       \
        assert_string_equal(fy_error_text(), "port template: " #TABLE "." #NAME " is NULL");       \
    } while (0)

static void test_port_without_a_function_is_refused(void **state)
{
    (void)state;
    const ferry_options options = FERRY_OPTIONS_DEFAULTS;
    ferry *f = NULL;
    fy_template_job *job = fy_template_job_create(1, 1);
    fy_port *port;
    fy_port_ops wrong;
    assert_non_null(job);
    assert_int_equal(fy_template_join(job, 0, &port), 0);
    const fy_port_ops *right = port->ops;
    LACKS(transport, close);
    LACKS(transport, query);
    LACKS(transport, send);
    LACKS(transport, poll);
    LACKS(transport, pending);
    LACKS(transport, wait);
    LACKS(transport, wake);
    LACKS(transport, serve);
    LACKS(host, now);
    LACKS(host, cpu);
    LACKS(host, advance);
    LACKS(host, spawn);
    LACKS(host, join);
    LACKS(members, peer);
    LACKS(diagnosis, doing);
    LACKS(diagnosis, name_handler);
    port->ops = right;
    port->ops->transport.close(port);
    fy_template_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_port_without_a_function_is_refused),
        cmocka_unit_test(test_port_with_a_table_of_another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
