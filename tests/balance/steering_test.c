/* Steering chooses neighbours, threshold, asking ahead, and the scheduler of the next phase. Here
 * its choices are tested with given terms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balance/steer/inside.h"

/* Goal: the number of neighbours is the one whose search takes least, and the usual one if that
 * gains little. Method: all numbers are tried with the formula of docs/model.md. */
static void test_steer_neighbours_are_the_cheapest(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        const fy_steer_terms terms = {.answer = 100e-6 + 50e-6 * (i % 7),
                                      .startup = 5e-6 + 10e-6 * (i % 5),
                                      .light = 2 + 13 * (i % 11),
                                      .moves = i % 4,
                                      .mean = 1,
                                      .busy = i % 2 == 0 ? 0 : 1e-3 * (1 << i % 8)};
        double wait = terms.answer - terms.startup, usual = 0, least = 1e9;
        double chosen = fy_steer_neighbours(&terms), takes = 0;
        assert_true(chosen >= 1 && chosen <= 64 && chosen == (int)chosen);
        for (int k = 1; k <= 64; k++) {
            double search = (wait + k * terms.startup) * ((terms.light - 1) / k + 1 + terms.moves);
            least = search < least ? search : least;
            usual = k == 4 ? search : usual;
            takes = k == (int)chosen ? search : takes;
        }
        if (usual - least > 1.02 * terms.busy / 200 + 0.02 * usual)
            assert_true(takes < 1.02 * least);
        else
            assert_true(takes <= usual);
    }
}

/* Goal: few answers, or one that took no time, leave the usual number. */
static void test_steer_neighbours_without_a_measure(void **state)
{
    const fy_steer_terms none = {.light = 64, .mean = 1};
    const fy_steer_terms alone = {.answer = 1, .startup = .1, .light = 1, .mean = 1};
    const fy_steer_terms brief = {.answer = 1, .startup = .001, .light = 99, .mean = .1};
    (void)state;
    assert_true(fy_steer_neighbours(&none) == 4);
    assert_true(fy_steer_neighbours(&alone) == 4);
    assert_true(fy_steer_neighbours(&brief) == 4);
}

/* Goal: a rank asks ahead if tasks are short beside an answer, and many are taken. */
static void test_steer_threshold(void **state)
{
    fy_steer_terms t = {.answer = 200e-6, .moves = 20, .mean = 300e-6, .alpha = 4e-3, .load = 3};
    (void)state;
    assert_true(fy_steer_threshold(&t) == 3);
    t.moves = 5; /* 5 answers gain 2 ms: less than a heavy task */
    assert_true(fy_steer_threshold(&t) == 0);
    t.moves = 1e6;
    t.mean = 500e-6; /* longer than the two answers */
    assert_true(fy_steer_threshold(&t) == 0);
    t.mean = 70e-6; /* much shorter */
    assert_true(fy_steer_threshold(&t) == 0);
    t.mean = 300e-6;
    assert_true(fy_steer_ahead_us(&t) == 200);
    t.mean = 500e-6;
    assert_true(fy_steer_ahead_us(&t) == 0);
}

/* Goal: tasks are short for the default scheduler if several fit into the time of an answer, and
 * the answers of a phase take longer than a heavy task. */
static void test_steer_short_tasks(void **state)
{
    fy_steer_terms t = {.answer = 300e-6, .moves = 100, .mean = 2e-3, .alpha = 3e-3};
    (void)state;
    assert_true(fy_steer_short_us(&t) == 4 * 2e3);
    t.moves = 2;
    assert_true(fy_steer_short_us(&t) == 200);
    t.moves = 1e6;
    t.mean = 10e-3;
    assert_true(fy_steer_short_us(&t) == 200);
    t.mean = 1e-6; /* four of them are below the usual limit */
    assert_true(fy_steer_short_us(&t) == 200);
}

/* Goal: another scheduler is chosen only if it gains 2% of what the model says of the present one,
 * and of the time that has passed. */
static void test_steer_scheduler_needs_a_gain(void **state)
{
    fy_steer_outlook o = {.now = FY_PLAY_STEALING, .took_s = 10};
    (void)state;
    o.seconds[FY_PLAY_NONE] = 20;
    o.seconds[FY_PLAY_DIFFUSION] = 9;
    o.seconds[FY_PLAY_STEALING] = 10;
    o.seconds[FY_PLAY_FERRY] = 8;
    assert_int_equal(fy_steer_scheduler(&o), FY_PLAY_FERRY);
    o.seconds[FY_PLAY_FERRY] = -1; /* refused */
    assert_int_equal(fy_steer_scheduler(&o), FY_PLAY_DIFFUSION);
    o.took_s = 9.1; /* the phase took hardly longer */
    assert_int_equal(fy_steer_scheduler(&o), FY_PLAY_STEALING);
    o.took_s = 10;
    o.seconds[FY_PLAY_DIFFUSION] = 9.9;
    assert_int_equal(fy_steer_scheduler(&o), FY_PLAY_STEALING);
    o.seconds[FY_PLAY_FERRY] = 8.01;
    o.seconds[FY_PLAY_DIFFUSION] = 8; /* as good as the default, which comes first */
    assert_int_equal(fy_steer_scheduler(&o), FY_PLAY_FERRY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steer_neighbours_are_the_cheapest),
        cmocka_unit_test(test_steer_neighbours_without_a_measure),
        cmocka_unit_test(test_steer_threshold),
        cmocka_unit_test(test_steer_short_tasks),
        cmocka_unit_test(test_steer_scheduler_needs_a_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
