/* Goal: a death is told before anything fails for it, and an operation's end never before the call
 * that starts it has returned, nor when that has failed. Method: as event_test.c; the death is
 * marked at the moment that matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "port/shm/layout.h"
#include "ranks.h"

enum { RANKS = 2, SENDS_MAX = 1000 };

typedef struct scene {
    test_job job;
    bool told;                /* of the death */
    int errors, before_event; /* that failed; before the event */
} scene;

static void see(ferry *f, void *arg, const ferry_receipt *receipt)
{
    scene *s = ferry_user_data(f);
    ++*(int *)arg;
    s->errors += receipt->error == FERRY_EPEER;
    s->before_event += receipt->error == FERRY_EPEER && !s->told;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    (void)event;
    ((scene *)arg)->told = true;
}

static void mark_dead(ferry *f, void *arg, const ferry_receipt *receipt)
{
    const scene *s = arg;
    (void)f;
    (void)receipt;
    fy_controls_mark(s->job.segment->base, RANKS, 1, SHM_DEAD);
}

static void scene_open(scene *s, uint32_t slots, uint32_t bytes)
{
    *s = (scene){.told = false};
    job_open(&s->job, RANKS, slots, bytes);
    for (int i = 0; i < RANKS; i++)
        ferry_user_data_set(s->job.f[i], s);
    assert_int_equal(ferry_peer_watch(s->job.f[0], on_peer, s), 0);
}

static void test_event_failure_follows_the_death(void **state)
{
    (void)state;
    static char message[300000];
    char *buffer = malloc(sizeof(message));
    scene s;
    int sent = 0, received = 0;
    scene_open(&s, 0, 0);
    const ferry_track out = {.size = sizeof(out), .failed = see, .failed_arg = &sent};
    const ferry_track in = {.size = sizeof(in),
                            .completed = see,
                            .completed_arg = &received,
                            .failed = see,
                            .failed_arg = &received};
    assert_int_equal(ferry_send(s.job.f[1], 0, 5, message, sizeof(message), &out), 0);
    job_settle(&s.job);
    /* It is offered here. The port knows of the death when the receive asks for it, the rank does
     * not. */
    mark_dead(s.job.f[0], &s, NULL);
    assert_int_equal(ferry_receive(s.job.f[0], 1, 5, buffer, sizeof(message), &in), 0);
    while (received == 0)
        fy_progress(s.job.f[0], true);
    assert_true(s.told);
    assert_int_equal(s.errors, 1);
    assert_int_equal(s.before_event, 0);
    job_close(&s.job);
    assert_int_equal(received, 1);
    free(buffer);
}

static void test_event_none_comes_of_a_call_that_fails(void **state)
{
    (void)state;
    scene s;
    int ends[SENDS_MAX] = {0}, error = 0, count = 0;
    scene_open(&s, 2, 1024);
    ferry *f = s.job.f[0];
    /* The one that finds no room times out while it waits, then its target dies. */
    const ferry_track death = {.size = sizeof(death),
                               .timed_out = mark_dead,
                               .timed_out_arg = &s,
                               .timeout_ns = 20 * 1000 * 1000};
    assert_int_equal(ferry_receive(f, 0, 1, NULL, 0, &death), 0);
    char data[64] = {0};
    for (; error == 0 && count < SENDS_MAX; count++) {
        const ferry_track track = {.size = sizeof(track),
                                   .completed = see,
                                   .completed_arg = &ends[count],
                                   .timed_out = see,
                                   .timed_out_arg = &ends[count],
                                   .failed = see,
                                   .failed_arg = &ends[count],
                                   .timeout_ns = 1000 * 1000};
        error = ferry_send(f, 1, 2, data, sizeof(data), &track);
        assert_int_equal(ends[count], 0);
    }
    assert_int_equal(error, FERRY_EPEER);
    while (!s.told)
        fy_progress(f, true);
    for (int i = 0; i < 10; i++)
        fy_progress(f, true);
    job_close(&s.job);
    assert_int_equal(ends[count - 1], 0);
    for (int i = 0; i < count - 1; i++)
        assert_int_equal(ends[i], 1);
    assert_true(count > 1);
}

/* The argument of the function may be on the program's stack. */
static void test_event_closing_tells_of_no_death(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 0, 0);
    mark_dead(s.job.f[0], &s, NULL);
    assert_int_equal(fy_rank_close(s.job.f[0]), 0);
    assert_false(s.told);
    fy_rank_destroy(s.job.f[1]);
    fy_segment_unmap(s.job.segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_closing_tells_of_no_death),
        cmocka_unit_test(test_event_failure_follows_the_death),
        cmocka_unit_test(test_event_none_comes_of_a_call_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
