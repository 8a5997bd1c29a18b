/* Goal: bad input is refused with its values, and what waits in vain is told. Method: one rank
 * makes calls that are wrong, steps that lack messages, and messages that nobody takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/ferry.h>

static int steps_run;

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return calloc(1, 8);
}

static void *make_none(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return NULL;
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *inputs)
{
    (void)f, (void)e;
    steps_run += (int)inputs->count;
}

static int map_nowhere(void *arg, ferry_index index, int ranks)
{
    (void)arg;
    return index.at[0] == 2 ? ranks : 0;
}

static ferry_collection_options options_of(const ferry_object_ops *ops, int64_t extent)
{
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.extents[0] = extent;
    options.ops = ops;
    options.make = make;
    options.step = step;
    return options;
}

static ferry_object_ops flat(void)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "edge";
    ops.flat_bytes = 8;
    return ops;
}

static ferry *open_alone(void)
{
    ferry *f;
    assert_int_equal(ferry_open(NULL, &f), 0);
    return f;
}

static void assert_says(ferry *f, const char *text)
{
    if (strstr(ferry_error_message(f), text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, ferry_error_message(f));
}

static void test_create_refuses_bad_options(void **state)
{
    (void)state;
    ferry *f = open_alone();
    ferry_object_ops ops = flat(), bad = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection *c;
    ferry_collection_options o = options_of(&ops, 4);
    o.dims = 4;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "4 dimensions");
    o.dims = 2;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "extent 1 is 0");
    o.extents[1] = INT64_C(1) << 40;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "extent 1 is 1099511627776; expected 2 of 1 to 2^31");
    o = options_of(&ops, 0);
    o.map = FERRY_MAP_CURVE;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "needs extents");
    o = options_of(&bad, 4);
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "flat_bytes");
    bad = ops;
    bad.flags = 8;
    o = options_of(&bad, 4);
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "flags are 0x8");
    o = options_of(&ops, 4);
    o.make = NULL;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    o = options_of(&ops, 4);
    o.value_bytes = 24;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "value_bytes is 24 and combine is NULL, expected both or neither");
    o = options_of(&ops, 4);
    o.make = make_none;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_ENOMEM);
    assert_says(f, "gave no element (0)");
    o.make = make;
    o.map_fn = map_nowhere;
    assert_int_equal(ferry_collection_create(f, &o, &c), FERRY_EINVAL);
    assert_says(f, "no rank for (2)");
    assert_int_equal(ferry_close(f), 0);
}

static void test_messages_outside_are_refused(void **state)
{
    (void)state;
    ferry *f = open_alone();
    ferry_object_ops ops = flat();
    ferry_collection *c;
    ferry_collection_options o = options_of(&ops, 4);
    assert_int_equal(ferry_collection_create(f, &o, &c), 0);
    ferry_message message = {.word_count = 0};
    assert_int_equal(ferry_collection_send(c, ferry_index_of(4, 0, 0), &message, NULL),
                     FERRY_EINVAL);
    assert_says(f, "(4, 0, 0) is outside the collection of 4");
    assert_int_equal(ferry_collection_send(c, ferry_index_of(1, 0, 0), &message, NULL),
                     FERRY_EINVAL);
    assert_says(f, "handler 0");
    assert_int_equal(ferry_collection_insert(c, NULL, ferry_index_of(0, 1, 0), NULL, 0),
                     FERRY_EINVAL);
    message.word_count = 3;
    assert_int_equal(ferry_step_send(c, NULL, ferry_index_of(1, 0, 0), 0, &message, NULL),
                     FERRY_EINVAL);
    assert_says(f, "step_send: 3 words, at most 2");
    message.word_count = 0;
    message.size_bytes = 7;
    assert_int_equal(ferry_step_send(c, NULL, ferry_index_of(1, 0, 0), 0, &message, NULL),
                     FERRY_EINVAL);
    assert_says(f, "step_send: 7 bytes at NULL");
    assert_int_equal(ferry_step_send(c, NULL, ferry_index_of(1, 0, 0), 0, NULL, NULL),
                     FERRY_EINVAL);
    assert_says(f, "step_send: no message given");
    int first;
    assert_int_equal(ferry_spawn(f, 0, NULL, &first), FERRY_EINVAL);
    assert_says(f, "spawn: count is below 1");
    assert_int_equal(ferry_collection_home(c, ferry_index_of(-1, 0, 0)), FERRY_EINVAL);
    assert_int_equal(ferry_collection_destroy(c), 0);
    assert_int_equal(ferry_close(f), 0);
}

static void take(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)f, (void)object, (void)data, (void)source, (void)message;
}

static void test_calls_that_cannot_work_are_refused(void **state)
{
    (void)state;
    ferry *f = open_alone();
    ferry_object_ops ops = flat();
    ferry_collection *c;
    ferry_collection_options o = options_of(&ops, 4);
    ferry_message message = {.word_count = 0};
    ferry_section section = {{{0, 0, 0}}, {{3, 0, 0}}, {{-2, 0, 0}}};
    o.step = NULL;
    assert_int_equal(ferry_object_handler_register(f, "take", take, &message.handler), 0);
    assert_int_equal(ferry_collection_create(f, &o, &c), 0);
    assert_int_equal(ferry_collection_send_section(c, &section, &message), FERRY_EINVAL);
    assert_says(f, "stride 0 is -2; expected at least 1, or 0 for 1");
    section.stride.at[0] = 0;
    assert_int_equal(ferry_collection_send_section(c, &section, &message), 0);
    assert_int_equal(ferry_step_send(c, NULL, ferry_index_of(1, 0, 0), 0, &message, NULL),
                     FERRY_ESTATE);
    assert_says(f, "step_send: collection edge has no `step`");
    assert_int_equal(ferry_collection_remove(c, ferry_index_of(1, 0, 0)), 0);
    assert_int_equal(ferry_quiesce(f), 0);
    assert_int_equal(ferry_collection_remove(c, ferry_index_of(1, 0, 0)), FERRY_ENOENT);
    assert_says(f, "collection_remove: element (1) of edge was removed");
    assert_int_equal(ferry_collection_destroy(c), 0);
    assert_int_equal(ferry_close(f), 0);
}

static ferry_element *element_at(ferry_collection *c, int64_t i)
{
    ferry_element *e = NULL;
    while ((e = ferry_collection_next(c, e)) != NULL && e->index.at[0] != i)
        continue;
    assert_non_null(e);
    return e;
}

static void send_step(ferry_collection *c, int64_t from, int64_t to, uint64_t number)
{
    const ferry_message message = {.word_count = 0};
    assert_int_equal(
        ferry_step_send(c, element_at(c, from), ferry_index_of(to, 0, 0), number, &message, NULL),
        0);
}

static void check_says(ferry_collection *c, const char *text)
{
    ferry *f = ferry_collection_rank(c);
    assert_int_equal(ferry_quiesce(f), 0);
    assert_int_equal(ferry_collection_check(c), text != NULL ? FERRY_ESTATE : 0);
    if (text != NULL)
        assert_says(f, text);
}

static void test_check_tells_what_a_step_misses(void **state)
{
    (void)state;
    ferry *f = open_alone();
    ferry_object_ops ops = flat();
    ferry_collection *c;
    ferry_collection_options o = options_of(&ops, 4);
    const ferry_index from[] = {{{0, 0, 0}}, {{2, 0, 0}}, {{2, 0, 0}}};
    ferry_step needs = FERRY_STEP_DEFAULTS;
    steps_run = 0;
    assert_int_equal(ferry_collection_create(f, &o, &c), 0);
    needs.messages = 3;
    needs.from = from;
    assert_int_equal(ferry_step_next(element_at(c, 1), &needs), FERRY_EINVAL);
    assert_says(f, "(2) is listed twice");
    needs.messages = 2;
    assert_int_equal(ferry_step_next(element_at(c, 1), &needs), 0);
    assert_int_equal(ferry_step_next(element_at(c, 1), &needs), FERRY_ESTATE);
    send_step(c, 0, 1, 0);
    check_says(c, "step 0 of element (1) waits: it has 1 of 2 messages: there is none from (2)");
    send_step(c, 3, 1, 0); /* nobody asked for it */
    check_says(c, "from element (3): the step does not need it");
    send_step(c, 2, 1, 0);
    check_says(c, NULL);
    assert_int_equal(steps_run, 2);
    send_step(c, 2, 1, 0);
    check_says(c, "that step has run");
    send_step(c, 2, 3, 5);
    check_says(c, "element (3) has messages for step 5");
    assert_int_equal(ferry_collection_destroy(c), 0);
    assert_int_equal(ferry_close(f), 0);
}

static void test_messages_of_a_step_need_one_task(void **state)
{
    (void)state;
    ferry *f = open_alone();
    ferry_object_ops ops = flat();
    ferry_collection *c;
    ferry_collection_options o = options_of(&ops, 4);
    ferry_step needs = FERRY_STEP_DEFAULTS;
    ferry_stats before = FERRY_STATS_DEFAULTS, after = FERRY_STATS_DEFAULTS;
    steps_run = 0;
    assert_int_equal(ferry_balance_enable(f, true), 0);
    assert_int_equal(ferry_collection_create(f, &o, &c), 0);
    needs.messages = 3;
    assert_int_equal(ferry_step_next(element_at(c, 1), &needs), 0);
    assert_int_equal(ferry_quiesce(f), 0);
    assert_int_equal(ferry_stats_get(f, &before), 0);
    for (int64_t from = 0; from < 3; from++)
        send_step(c, from, 1, 0);
    check_says(c, NULL);
    assert_int_equal(steps_run, 3);
    assert_int_equal(ferry_stats_get(f, &after), 0);
    assert_int_equal(after.tasks - before.tasks, 1);
    assert_int_equal(after.messages_handled - before.messages_handled, 4); /* one is its own */
    assert_int_equal(ferry_collection_destroy(c), 0);
    assert_int_equal(ferry_close(f), 0);
}

static void test_check_tells_reductions_and_messages(void **state)
{
    (void)state;
    ferry *f = open_alone();
    ferry_object_ops ops = flat();
    ferry_collection *c;
    ferry_collection_options o = options_of(&ops, 2);
    double one = 1;
    ferry_contribution sum = FERRY_CONTRIBUTION_DEFAULTS;
    ferry_step needs = FERRY_STEP_DEFAULTS;
    assert_int_equal(ferry_collection_create(f, &o, &c), 0);
    sum.values = &one;
    sum.count = 1;
    sum.reduction = FERRY_XOR;
    assert_int_equal(ferry_element_contribute(element_at(c, 0), &sum), FERRY_EINVAL);
    sum.reduction = FERRY_MAX;
    needs.reduction = true;
    assert_int_equal(ferry_step_next(element_at(c, 0), &needs), FERRY_ESTATE);
    assert_int_equal(ferry_element_contribute(element_at(c, 0), &sum), 0);
    check_says(c, "reduction 0 is incomplete: 1 of 2 elements contributed; element (1) did not");
    assert_int_equal(ferry_step_next(element_at(c, 0), &needs), 0);
    assert_int_equal(ferry_element_contribute(element_at(c, 0), &sum), FERRY_ESTATE);
    check_says(c, "step 0 of element (0) waits: reduction 0 is incomplete");
    sum.count = 0;
    assert_int_equal(ferry_element_contribute(element_at(c, 1), &sum), FERRY_EINVAL);
    sum.count = 1;
    assert_int_equal(ferry_element_contribute(element_at(c, 1), &sum), 0);
    check_says(c, NULL);
    assert_int_equal(ferry_collection_destroy(c), 0);
    o = options_of(&ops, 0);
    assert_int_equal(ferry_collection_create(f, &o, &c), 0);
    const ferry_message message = {.word_count = 0};
    assert_int_equal(ferry_step_send(c, NULL, ferry_index_of(-7, 0, 0), 0, &message, NULL), 0);
    check_says(c, "1 message waits for element (-7), which does not exist");
    assert_int_equal(ferry_collection_remove(c, ferry_index_of(-7, 0, 0)), 0);
    check_says(c, "1 message and 1 removal wait for element (-7), which does not exist");
    assert_int_equal(ferry_close(f), 0); /* with a collection and a message that waits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_refuses_bad_options),
        cmocka_unit_test(test_messages_outside_are_refused),
        cmocka_unit_test(test_calls_that_cannot_work_are_refused),
        cmocka_unit_test(test_check_tells_what_a_step_misses),
        cmocka_unit_test(test_messages_of_a_step_need_one_task),
        cmocka_unit_test(test_check_tells_reductions_and_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
