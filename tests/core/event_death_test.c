/* Goal: a death is told before anything fails for it, and an operation's end never before the call
 * that starts it has returned, nor when that has failed. A quiescence ends although a death is
 * heard of in it. Method: as event_test.c; the death is marked at the moment that matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
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

enum { RESTING = 3 };

static struct {
    fy_port_ops ops;
    const fy_port_ops *before;
    test_job job;
    pthread_t threads[RESTING];
    const _Atomic uint32_t *changes; /* that rank 0 does not see yet */
    bool early;                      /* rank 1 completes the departure before rank 0 comes */
    bool slept;
    atomic_bool knows, ended; /* rank 1, of the death of rank 2; the epoch, at rank 0 */
    atomic_bool told;         /* rank 1: it has completed the departure */
    atomic_bool returned;     /* rank 1 */
} night;

static void night_reveal(void)
{
    night.job.f[0]->peers.changes = night.changes;
}

/* A rank that waits is at rest. Then rank 2 dies, and rank 1 may hear of it. Rank 0 hears of it
 * after it has begun a wave. */
static void night_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    ferry *const *f = night.job.f;
    if (port == f[2]->head.port)
        pthread_exit(NULL);
    if (port == f[0]->head.port && f[0]->quiescence.begun > 0)
        night_reveal();
    if (port == f[0]->head.port || night.slept) {
        night.before->transport.wait(port, thread, deadline_ns);
        return;
    }
    CHECK(pthread_join(night.threads[2], NULL) == 0);
    fy_controls_mark(night.job.segment->base, RESTING, 2, SHM_DEAD);
    night.slept = true;
}

/* Only rank 1 asks before the epoch has ended at rank 0. A rank gives up after a few thousand
 * looks. Rank 1 may make so many while rank 0 is stopped between its line and its look at the
 * others. So rank 1 counts none here. */
static bool night_silent(fy_port *port, int rank)
{
    (void)port;
    (void)rank;
    atomic_store(&night.knows, true);
    if (night.early || atomic_load(&night.ended))
        return true;
    night.job.f[1]->peers.looks = 0;
    return false;
}

static void night_goes_on(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)arg, (void)event;
    if (f == night.job.f[1])
        atomic_store(&night.told, true);
}

static void *night_rest(void *arg)
{
    CHECK(ferry_quiesce(arg) == 0);
    atomic_store(&night.returned, true);
    return NULL;
}

/* Ranks 1 and 2 come to the quiescence, and rank 2 dies there. */
static void night_open(bool early)
{
    static const _Atomic uint32_t unchanged;
    memset(&night, 0, sizeof(night));
    night.early = early;
    job_open(&night.job, RESTING, 0, 0);
    ferry *const *f = night.job.f;
    for (int i = 0; i < RESTING; i++)
        assert_int_equal(ferry_peer_watch(f[i], night_goes_on, NULL), 0);
    night.before = f[1]->head.ops;
    night.ops = *night.before;
    night.ops.transport.wait = night_wait;
    night.ops.heap.await = NULL; /* ranks call night_wait instead */
    night.ops.members.silent = night_silent;
    for (int i = early ? 0 : 1; i < RESTING; i++)
        f[i]->head.ops = &night.ops;
    night.changes = f[0]->peers.changes;
    f[0]->peers.changes = &unchanged;
    f[0]->peers.changes_seen = 0;
    for (int i = 2; i > 0; i--)
        assert_int_equal(pthread_create(&night.threads[i], NULL, night_rest, f[i]), 0);
}

static void night_close(void)
{
    night_reveal();
    atomic_store(&night.ended, true);
    while (!atomic_load(&night.returned))
        fy_progress(night.job.f[0], true);
    assert_int_equal(pthread_join(night.threads[1], NULL), 0);
    job_close(&night.job);
}

/* Rank 2 has come to the quiescence when it dies. Rank 1 hears of that while it waits there, and
 * cannot complete the departure before the epoch has ended. Rank 0 hears of it last. */
static void test_event_death_at_the_end_of_a_quiescence(void **state)
{
    (void)state;
    night_open(false);
    while (!atomic_load(&night.knows))
        continue;
    assert_int_equal(ferry_quiesce(night.job.f[0]), 0);
    night_close();
}

/* Rank 1 has completed the departure, so its line of the board says that it is not at rest. Rank 0
 * rests there, and asks rank 1 by a wave of the ranks that it knows, before it hears of the death.
 */
static void test_event_death_heard_of_after_a_wave(void **state)
{
    (void)state;
    night_open(true);
    while (!atomic_load(&night.told))
        continue;
    assert_int_equal(ferry_quiesce(night.job.f[0]), 0);
    assert_true(night.job.f[0]->quiescence.begun > 1);
    night_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_closing_tells_of_no_death),
        cmocka_unit_test(test_event_death_at_the_end_of_a_quiescence),
        cmocka_unit_test(test_event_death_heard_of_after_a_wave),
        cmocka_unit_test(test_event_failure_follows_the_death),
        cmocka_unit_test(test_event_none_comes_of_a_call_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
