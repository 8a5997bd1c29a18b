#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/random.h"
#include "base/table.h"

typedef struct slot {
    uint64_t key;
    uint64_t value;
} slot;

/* Goal: the table does what a map does, through growth and removal. Method: random operations on
 * few keys, compared with an array after each. */
static void test_table_agrees_with_a_model(void **state)
{
    (void)state;
    enum { KEYS = 500, OPERATIONS = 200000 };
    uint64_t model[KEYS] = {0};
    size_t count = 0;
    fy_table table;
    fy_random random;
    fy_random_init(&random, 7, 1);
    assert_int_equal(fy_table_init(&table, sizeof(slot)), 0);
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t key = 1 + fy_random_below(&random, KEYS - 1);
        slot *found = fy_table_find(&table, key);
        assert_int_equal(found != NULL ? found->value : 0, model[key]);
        if (found != NULL && fy_random_below(&random, 2) == 0) {
            fy_table_remove(&table, found);
            model[key] = 0;
            count--;
        } else if (found == NULL) {
            void *added = NULL;
            assert_int_equal(fy_table_insert(&table, key, &added), 0);
            assert_int_equal(((slot *)added)->value, 0);
            ((slot *)added)->value = model[key] = fy_random_next(&random) | 1;
            count++;
        }
        assert_int_equal(table.count, count);
    }
    size_t index = 0;
    size_t walked = 0;
    for (slot *at; (at = fy_table_next(&table, &index)) != NULL; walked++)
        assert_int_equal(at->value, model[at->key]);
    assert_int_equal(walked, count);
    fy_table_fini(&table);
}

/* Goal: equal seeds and streams give equal numbers, others do not; bounds are kept. Method: compare
 * and draw. */
static void test_random_repeats_for_its_seed(void **state)
{
    (void)state;
    fy_random a, b, c;
    fy_random_init(&a, 1, 2);
    fy_random_init(&b, 1, 2);
    fy_random_init(&c, 1, 3);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t number = fy_random_next(&a);
        assert_int_equal(number, fy_random_next(&b));
        equal += number == fy_random_next(&c);
    }
    assert_int_equal(equal, 0);
    int seen[10] = {0};
    for (int i = 0; i < 10000; i++)
        seen[fy_random_below(&a, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(seen[i], 800, 1200);
    assert_int_equal(fy_random_below(&a, 0), 0);
}

/* Goal: links come out in the order they went in; removal works anywhere. Method: three links. */
static void test_list_keeps_order(void **state)
{
    (void)state;
    fy_link list, links[3];
    fy_list_init(&list);
    for (int i = 0; i < 3; i++) {
        fy_list_init(&links[i]);
        fy_list_insert(&list, &links[i]);
    }
    fy_list_remove(&links[1]);
    fy_list_remove(&links[1]);
    assert_true(fy_list_empty(&links[1]));
    assert_ptr_equal(fy_list_pop(&list), &links[0]);
    assert_ptr_equal(fy_list_pop(&list), &links[2]);
    assert_null(fy_list_pop(&list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_agrees_with_a_model),
        cmocka_unit_test(test_random_repeats_for_its_seed),
        cmocka_unit_test(test_list_keeps_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
