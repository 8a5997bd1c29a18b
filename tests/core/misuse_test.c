/* Goal: a call with an argument that is missing, or a value that it does not take, fails with an
 * error that names the call and the value, and the rank goes on. Method: makes such calls on a rank
 * that is alone, and looks at what each returned and said. */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/ferry.h>

static ferry *rank;

static int open_rank(void **state)
{
    const ferry_options options = {.size = sizeof options, .heap_bytes = 8 << 20};
    (void)state;
    return ferry_open(&options, &rank);
}

static int close_rank(void **state)
{
    (void)state;
    return ferry_close(rank);
}

static void refused(int error, int expected, const char *text)
{
    assert_int_equal(error, expected);
    if (strstr(ferry_error_message(rank), text) == NULL)
        fail_msg("\"%s\" does not say: %s", ferry_error_message(rank), text);
}

static ferry_object_type make_type(void)
{
    const ferry_object_ops ops = {.size = sizeof ops, .name = "cell", .flat_bytes = 8};
    ferry_object_type type;
    assert_int_equal(ferry_object_type_register(rank, &ops, &type), 0);
    return type;
}

static void test_misuse_of_objects_is_told(void **state)
{
    const ferry_object_ops ops = {.size = sizeof ops, .name = "cell", .flat_bytes = 8};
    ferry_object_type type = make_type();
    ferry_object_ops wrong = ops;
    ferry_object object;
    ferry_move_info info = {0};
    void *data = malloc(8);
    (void)state;
    refused(ferry_object_type_register(rank, NULL, &type), FERRY_EINVAL, "functions are missing");
    refused(ferry_object_type_register(rank, &ops, NULL), FERRY_EINVAL, "result is missing");
    wrong.flags = 6;
    refused(ferry_object_type_register(rank, &wrong, &type), FERRY_EINVAL, "flags are 0x6");
    refused(ferry_object_create(rank, type, NULL, &object), FERRY_EINVAL, "data are missing");
    refused(ferry_object_create(rank, type, data, NULL), FERRY_EINVAL, "result is missing");
    assert_int_equal(ferry_object_create(rank, type, data, &object), 0);
    refused(ferry_object_send(rank, object, NULL, NULL), FERRY_EINVAL, "no message given");
    const ferry_message unset = {.handler = {0}}, unknown = {.handler = {7}};
    refused(ferry_object_send(rank, object, &unset, NULL), FERRY_EINVAL,
            "object_send: no handler was given (it is {0}); expected one from "
            "ferry_object_handler_register");
    refused(ferry_object_send(rank, object, &unknown, NULL), FERRY_EINVAL, "handler 7");
    refused(ferry_object_locate(rank, object, NULL), FERRY_EINVAL, "result is missing");
    refused(ferry_object_uninstall(rank, object, 1, &info, &data), FERRY_EINVAL, "rank 1 of 1");
    refused(ferry_object_install(rank, NULL, data, 0), FERRY_EINVAL, "information is missing");
    info = (ferry_move_info){.bytes = data};
    refused(ferry_object_install(rank, &info, NULL, 0), FERRY_EINVAL, "data are missing");
    refused(ferry_object_install(rank, &info, data, 0), FERRY_EINVAL, "0 bytes of info, not as");
    assert_int_equal(ferry_object_destroy(rank, object), 0);
    refused(ferry_object_destroy(rank, object), FERRY_ENOENT, "is not on rank 0");
}

/* Destroys its object in three ways of which the first does. */
static void end(ferry *f, ferry_object object, void *data, int source, const ferry_message *message)
{
    (void)source, (void)message;
    assert_int_equal(ferry_object_destroy(f, object), 0);
    refused(ferry_object_destroy(f, object), FERRY_ENOENT, "is destroyed already on rank 0");
    refused(ferry_object_move(f, object, 0), FERRY_ENOENT, "is destroyed already on rank 0");
    assert_ptr_equal(ferry_object_data(f, object), data);
}

static void test_misuse_in_a_handler_is_told(void **state)
{
    ferry_message message = {.word_count = 0};
    ferry_object object;
    (void)state;
    assert_int_equal(ferry_object_handler_register(rank, "end", end, &message.handler), 0);
    assert_int_equal(ferry_object_create(rank, make_type(), malloc(8), &object), 0);
    assert_int_equal(ferry_object_send(rank, object, &message, NULL), 0);
    assert_int_equal(ferry_quiesce(rank), 0);
    assert_int_equal(ferry_object_count(rank), 0);
}

static void test_misuse_of_balancing_is_told(void **state)
{
    ferry_object_type type = make_type();
    ferry_object object;
    (void)state;
    refused(ferry_balance_choose(rank, "none such"), FERRY_EINVAL, "no scheduler \"none such\"");
    refused(ferry_balance_add(
                rank, (ferry_object){0},
                &(ferry_balance_options){sizeof(ferry_balance_options), 1, 0, NULL, NULL, 0}),
            FERRY_ENOENT, "is not on rank 0");
    assert_int_equal(ferry_object_create(rank, type, malloc(8), &object), 0);
    refused(ferry_balance_add(
                rank, object,
                &(ferry_balance_options){sizeof(ferry_balance_options), -2, 0, NULL, NULL, 0}),
            FERRY_EINVAL, "is -2, expected 0 or more");
    refused(ferry_balance_add(rank, object,
                              &(ferry_balance_options){sizeof(ferry_balance_options), INFINITY, 0,
                                                       NULL, NULL, 0}),
            FERRY_EINVAL, "is inf, expected 0 or more");
    refused(ferry_balance_add(rank, object, &(ferry_balance_options){.size = 3}), FERRY_EINVAL,
            "its size is 3, expected 48");
    const ferry_object nobody[] = {{0}, {UINT64_C(0x12300000001)}, {UINT64_C(5) << 32}};
    ferry_balance_options options = FERRY_BALANCE_OPTIONS_DEFAULTS;
    options.dependency_count = 3;
    refused(ferry_balance_add(rank, object, &options), FERRY_EINVAL, "3 dependencies at (nil)");
    options.dependencies = nobody;
    refused(ferry_balance_add(rank, object, &options), FERRY_EINVAL,
            "dependency 2 is 0000000500000000, no object");
    options.granularity = NAN;
    refused(ferry_balance_add(rank, object, &options), FERRY_EINVAL, "granularity is nan");
    assert_int_equal(ferry_balance_add(rank, object,
                                       &(ferry_balance_options){sizeof(ferry_balance_options), 1, 0,
                                                                NULL, NULL, 0}),
                     0);
    refused(ferry_balance_add(
                rank, object,
                &(ferry_balance_options){sizeof(ferry_balance_options), -2, 0, NULL, NULL, 0}),
            FERRY_ESTATE, "is scheduled already");
    refused(ferry_scheduler_register(rank, NULL), FERRY_EINVAL, "scheduler is missing");
    ferry_scheduler scheduler = {.size = 3};
    refused(ferry_scheduler_register(rank, &scheduler), FERRY_EINVAL, "its size is 3, expected");
    scheduler.size = sizeof scheduler;
    refused(ferry_scheduler_register(rank, &scheduler), FERRY_EINVAL, "has no name");
    scheduler.name = "mine";
    refused(ferry_scheduler_register(rank, &scheduler), FERRY_EINVAL, "has no create");
}

static void test_misuse_of_collectives_and_words_is_told(void **state)
{
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    ferry_atomic change = {.verb = (ferry_atomic_verb)44};
    (void)state;
    refused(ferry_collective_run(rank, NULL), FERRY_EINVAL, "ferry_collective: it is NULL");
    what.size = 3;
    refused(ferry_collective_run(rank, &what), FERRY_EINVAL, "its size is 3, expected");
    what.size = sizeof what;
    what.kind = (ferry_collective_kind)55;
    refused(ferry_collective_run(rank, &what), FERRY_EINVAL, "kind 55 is unknown");
    refused(ferry_atomic_update(rank, 0, &change, NULL, NULL), FERRY_EINVAL, "verb 44 is unknown");
    double value = 1;
    refused(ferry_allreduce(rank, (ferry_type)6, FERRY_SUM, &value, &value, 1), FERRY_EINVAL,
            "type 6 is unknown; expected 0..5");
    refused(ferry_allreduce(rank, FERRY_DOUBLE, FERRY_XOR, &value, &value, 1), FERRY_EINVAL,
            "type 0 with reduction 7 is unknown; expected 1..4, for integers 1..7");
}

static void test_misuse_of_counts_is_told(void **state)
{
    const size_t most = SIZE_MAX, one = 1;
    const int twice[] = {0, 0};
    char byte = 0;
    ferry_group *group;
    (void)state;
    refused(ferry_alltoallv(rank, &byte, &most, &byte, &most), FERRY_EINVAL,
            "alltoallv: 18446744073709551615 values are too many");
    refused(ferry_alltoallv(rank, NULL, &one, &byte, &one), FERRY_EINVAL,
            "alltoallv: 1 values at NULL");
    char three[3] = {0};
    refused(ferry_alltoallv(rank, three, &(size_t){3}, &byte, &one), FERRY_EINVAL,
            "alltoallv: the piece of rank 0 has 1 values, expected 3");
    refused(ferry_allgather(rank, &byte, most, &byte), FERRY_EINVAL,
            "allgather: 18446744073709551615 values are too many");
    refused(ferry_group_create(rank, NULL, twice, 2, &group), FERRY_EINVAL,
            "group_create: 2 ranks at 0x");
    refused(ferry_group_create(rank, NULL, twice, -1, &group), FERRY_EINVAL,
            "group_create: -1 ranks at 0x");
    refused(ferry_group_create(rank, NULL, &(int){1}, 1, &group), FERRY_EINVAL,
            "group_create: rank 1 is not in the parent");
}

/* The result of a handler that ends the thread on which it runs. */
static struct {
    atomic_bool ran;
    int error;
    char text[128];
} ended;

static void end_background(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    ended.error = ferry_background_end(f);
    (void)snprintf(ended.text, sizeof ended.text, "%s", ferry_error_message(f));
    atomic_store(&ended.ran, true);
}

static void test_misuse_background_end_on_its_own_thread_is_told(void **state)
{
    ferry_message message = {0};
    (void)state;
    assert_int_equal(
        ferry_handler_register(rank, "end_background", end_background, &message.handler), 0);
    assert_int_equal(ferry_request_send(rank, 0, &message, NULL), 0);
    assert_int_equal(ferry_background_begin(rank), 0);
    while (!atomic_load(&ended.ran))
        sched_yield();
    assert_int_equal(ferry_background_end(rank), 0);
    assert_int_equal(ended.error, FERRY_ESTATE);
    assert_string_equal(ended.text, "background_end: not allowed inside a handler or callback");
    refused(ferry_background_end(rank), FERRY_ESTATE, "background_end: not begun");
}

static void test_misuse_in_the_wrong_order_is_told(void **state)
{
    (void)state;
    refused(ferry_background_end(rank), FERRY_ESTATE, "background_end: not begun");
    refused(ferry_trace_stop(rank, NULL, NULL), FERRY_ESTATE, "no trace was started");
    assert_int_equal(ferry_trace_start(rank, 16, 0), 0);
    refused(ferry_trace_stop(rank, NULL, NULL), FERRY_EINVAL, "a result is missing");
    refused(ferry_stats_get(rank, NULL), FERRY_EINVAL, "stats_get: the result is NULL");
    assert_int_equal(ferry_close(NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(NULL), "close: no rank given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_misuse_of_objects_is_told, open_rank, close_rank),
        cmocka_unit_test_setup_teardown(test_misuse_in_a_handler_is_told, open_rank, close_rank),
        cmocka_unit_test_setup_teardown(test_misuse_of_balancing_is_told, open_rank, close_rank),
        cmocka_unit_test_setup_teardown(test_misuse_of_collectives_and_words_is_told, open_rank,
                                        close_rank),
        cmocka_unit_test_setup_teardown(test_misuse_of_counts_is_told, open_rank, close_rank),
        cmocka_unit_test_setup_teardown(test_misuse_background_end_on_its_own_thread_is_told,
                                        open_rank, close_rank),
        cmocka_unit_test_setup_teardown(test_misuse_in_the_wrong_order_is_told, open_rank,
                                        close_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
