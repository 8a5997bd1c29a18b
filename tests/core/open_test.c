/* Goal: ferry_open gives the rank this process is, or says why it cannot. Method: set variables and
 * open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/ferry.h>

static int clear(void **state)
{
    (void)state;
    return unsetenv("FERRY_RANKS") + unsetenv("FERRY_THREADS") + unsetenv("FERRY_COMPUTE") +
           unsetenv("FERRY_JOB_FD");
}

static void test_open_alone_is_one_rank(void **state)
{
    (void)state;
    int mark = 0;
    const ferry_options options = {
        .size = sizeof(options), .ring_slots = 8, .heap_bytes = 8 << 20, .user_data = &mark};
    ferry *f;
    setenv("FERRY_COMPUTE", "spin", 1);
    assert_int_equal(ferry_open(&options, &f), 0);
    assert_int_equal(ferry_rank(f), 0);
    assert_int_equal(ferry_ranks(f), 1);
    assert_ptr_equal(ferry_user_data(f), &mark);
    uint64_t start = ferry_now(f);
    ferry_compute(f, 0.002);
    assert_true(ferry_now(f) - start >= 2000000);
    ferry_compute(f, -1);
    assert_int_equal(ferry_barrier(f), 0);
    assert_int_equal(ferry_quiesce(f), 0);
    assert_int_equal(ferry_close(f), 0);
}

static void test_open_says_why_it_cannot(void **state)
{
    (void)state;
    ferry *f;
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    assert_int_equal(ferry_open(NULL, NULL), FERRY_EINVAL);
    options.size = 3;
    assert_int_equal(ferry_open(&options, &f), FERRY_EINVAL);
    options = (ferry_options)FERRY_OPTIONS_DEFAULTS;
    options.ring_slots = 7;
    assert_int_equal(ferry_open(&options, &f), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "7"));
    setenv("FERRY_RANKS", "3", 1);
    assert_int_equal(ferry_open(NULL, &f), FERRY_ELAUNCH);
    assert_non_null(strstr(ferry_error_message(NULL), "ferry run -n 3"));
    setenv("FERRY_THREADS", "1", 1);
    assert_int_equal(ferry_open(NULL, &f), FERRY_ELAUNCH);
    setenv("FERRY_RANKS", "2000", 1);
    assert_int_equal(ferry_open(NULL, &f), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "from 1 to 1024"));
    unsetenv("FERRY_RANKS");
    unsetenv("FERRY_THREADS");
    setenv("FERRY_JOB_FD", "1", 1); /* not a segment */
    assert_true(ferry_open(NULL, &f) < 0);
}

static void test_strerror_names_codes(void **state)
{
    (void)state;
    assert_string_equal(ferry_strerror(FERRY_ERANGE), "FERRY_ERANGE");
    assert_string_equal(ferry_strerror(0), "FERRY_OK");
    assert_string_equal(ferry_version(), FERRY_VERSION);
    assert_string_equal(ferry_strerror(12), "FERRY_E(?)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_open_alone_is_one_rank, clear),
        cmocka_unit_test_setup(test_open_says_why_it_cannot, clear),
        cmocka_unit_test(test_strerror_names_codes),
    };
    return cmocka_run_group_tests(tests, NULL, clear);
}
