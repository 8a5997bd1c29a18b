/* Goal: all ranks are told of a loss. Dropped requests, damaged frames and handlers that differ
 * fail ferry_quiesce and collectives on every rank, with the reason. So does a rank that is in
 * another call. Method: ranks as threads; frames that no rank sends are put in by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/fail.h"
#include "core/kinds.h"
#include "core/leave.h"
#include "core/outgoing.h"
#include "core/work.h"
#include "port/shm/layout.h"
#include "ranks.h"

enum { RANKS = 5 };

typedef struct failing_rank {
    fy_segment *segment;
    test_body *body;
    void *arg;
    int rank, error;
    atomic_int *in_body;
    pthread_t thread;
} failing_rank;

/* A loss fails ferry_close too. If no error is expected, the rank is freed, as is that of a program
 * whose main function fails. No rank is freed before all have seen what they look for. */
static void *run_failing_rank(void *arg)
{
    const failing_rank *r = arg;
    ferry *f = open_rank(r->segment, r->rank, "stealing");
    r->body(f, r->arg);
    atomic_fetch_sub(r->in_body, 1);
    while (atomic_load(r->in_body) > 0)
        (void)ferry_poll(f);
    if (r->error != 0)
        CHECK(ferry_close(f) == r->error);
    else
        fy_rank_destroy(f);
    return NULL;
}

/* `*out` becomes the segment that they run in, before they do. */
static void run_failing_ranks_in(int ranks, test_body *body, void *arg, int error, fy_segment **out)
{
    failing_rank all[RANKS];
    atomic_int in_body = ranks;
    fy_segment *segment = make_segment(ranks, 0, 0);
    *out = segment;
    for (int i = 0; i < ranks; i++) {
        all[i] = (failing_rank){.segment = segment,
                                .body = body,
                                .arg = arg,
                                .rank = i,
                                .error = error,
                                .in_body = &in_body};
        CHECK(pthread_create(&all[i].thread, NULL, run_failing_rank, &all[i]) == 0);
    }
    for (int i = 0; i < ranks; i++)
        CHECK(pthread_join(all[i].thread, NULL) == 0);
    fy_segment_unmap(segment);
}

static void run_failing_ranks(int ranks, test_body *body, void *arg, int error)
{
    fy_segment *segment;
    run_failing_ranks_in(ranks, body, arg, error, &segment);
}

static void ignore(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
}

static void expect(ferry *f, int error, int expected, const char *text)
{
    if (error != expected || strstr(ferry_error_message(f), text) == NULL)
        fprintf(stderr, "rank %d: %s: %s; expected %s: %s\n", ferry_rank(f), ferry_strerror(error),
                ferry_error_message(f), ferry_strerror(expected), text);
    CHECK(error == expected);
    CHECK(strstr(ferry_error_message(f), text) != NULL);
}

/* The loss is reported again by each later call. */
static void expect_all(ferry *f, int expected, const char *text)
{
    uint64_t value = 1, all[RANKS];
    for (int i = 0; i < 2; i++) {
        expect(f, ferry_quiesce(f), expected, text);
        expect(f, ferry_barrier(f), expected, text);
        expect(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &value, &value, 1), expected, text);
        expect(f, ferry_gather(f, 0, &value, sizeof(value), all), expected, text);
        expect(f, ferry_broadcast(f, 0, &value, sizeof(value)), expected, text);
    }
}

/* Registers the handlers in another order on rank `*arg`. */
static void register_in_another_order(ferry *f, void *arg)
{
    bool odd = ferry_rank(f) == *(const int *)arg;
    ferry_handler handler;
    CHECK(ferry_handler_register(f, "first", ignore, &handler) == 0);
    CHECK(ferry_handler_register(f, odd ? "third" : "second", ignore, &handler) == 0);
    CHECK(ferry_handler_register(f, odd ? "second" : "third", ignore, &handler) == 0);
    expect_all(f, FERRY_EINVAL, "handler 7 is \"");
    CHECK(strstr(ferry_error_message(f), "\"second\"") != NULL);
    CHECK(strstr(ferry_error_message(f), "\"third\"") != NULL);
}

static void test_loss_other_handlers_are_named(void **state)
{
    (void)state;
    for (int odd = 0; odd < 3; odd++)
        run_failing_ranks(RANKS, register_in_another_order, &odd, FERRY_EINVAL);
}

/* Rank `*arg` registers its second handler only when a collective has failed for that. */
static void register_later(ferry *f, void *arg)
{
    bool late = ferry_rank(f) == *(const int *)arg;
    ferry_handler handler;
    CHECK(ferry_handler_register(f, "first", ignore, &handler) == 0);
    if (!late)
        CHECK(ferry_handler_register(f, "second", ignore, &handler) == 0);
    expect(f, ferry_barrier(f), FERRY_EINVAL, "\"second\"");
    expect(f, ferry_barrier(f), FERRY_EINVAL, "missing");
    if (late)
        CHECK(ferry_handler_register(f, "second", ignore, &handler) == 0);
    CHECK(ferry_barrier(f) == 0);
    CHECK(ferry_quiesce(f) == 0);
}

/* Goal: handlers that differ fail the collectives that are made meanwhile, and nothing after. */
static void test_loss_handlers_that_agree_later(void **state)
{
    (void)state;
    for (int late = 0; late < 3; late++)
        run_ranks(RANKS, 0, 0, register_later, &late);
}

/* Rank 1 knows the handler too late: the request was dropped. */
static void drop_a_request(ferry *f, void *arg)
{
    atomic_int *sent = arg;
    ferry_handler late;
    if (ferry_rank(f) == 1) {
        while (atomic_load(sent) == 0)
            (void)ferry_poll(f);
        while (f->loss.error == 0)
            (void)ferry_poll(f);
    }
    CHECK(ferry_handler_register(f, "late", ignore, &late) == 0);
    if (ferry_rank(f) == 0) {
        const ferry_message m = {.handler = late};
        CHECK(ferry_request_send(f, 1, &m, NULL) == 0);
        atomic_store(sent, 1);
    }
    expect_all(f, FERRY_ELOST, "rank 1 dropped a request from rank 0 for handler 6");
}

static void test_loss_dropped_requests_fail_all(void **state)
{
    (void)state;
    atomic_int sent = 0;
    run_failing_ranks(RANKS, drop_a_request, &sent, FERRY_ELOST);
}

/* A frame that counts as work, and is damaged. */
static void damage_a_frame(ferry *f, void *arg)
{
    const fy_frame frames[] = {
        {.kind = FY_KIND_COLLECTIVE, .word_count = 1, .handler = 9},
        {.kind = 250, .word_count = 1, .handler = 9},
        {.kind = FY_KIND_LOSS, .word_count = 1, .handler = 9},
        {.kind = FY_KIND_WAVE, .word_count = 1, .handler = 9},
    };
    int which = *(const int *)arg;
    fy_lane lane = frames[which].kind == FY_KIND_WAVE ? FY_CONTROL : FY_DATA;
    if (ferry_rank(f) == 2) {
        fy_work_created(f, 1);
        CHECK(fy_work_leaves(f, 3, 1) == 0);
        CHECK(fy_send(f, lane, 3, &frames[which]) == 0);
    }
    expect_all(f, FERRY_ELOST, "rank 3 dropped a malformed frame from rank 2");
    CHECK(strstr(ferry_error_message(f), "handler 9") != NULL);
}

static void test_loss_damaged_frames_fail_all(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++)
        run_failing_ranks(RANKS, damage_a_frame, &which, FERRY_ELOST);
}

typedef struct odd_call {
    int rank, how;
    bool late; /* all quiesce before, and the others come so late that they are asked for it */
} odd_call;

static void sleep_ms(int ms)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* One rank makes a collective that the others do not make before their ferry_quiesce. */
static void call_another(ferry *f, void *arg)
{
    static const char *const names[] = {"ferry_barrier", "ferry_allreduce", "ferry_gather"};
    const odd_call *c = arg;
    char text[64], data[8192 * RANKS], part[8192] = {0};
    int error;
    if (c->late && ferry_rank(f) != c->rank)
        sleep_ms(10);
    if (c->late)
        CHECK(ferry_quiesce(f) == 0);
    if (ferry_rank(f) != c->rank)
        error = ferry_quiesce(f);
    else if (c->how == 0)
        error = ferry_barrier(f);
    else if (c->how == 1)
        error = ferry_allreduce(f, FERRY_BYTE, FERRY_MAX, part, data, sizeof(part));
    else
        error = ferry_gather(f, c->rank, part, sizeof(part), data);
    CHECK(error == FERRY_EINVAL);
    (void)snprintf(text, sizeof(text), "rank %d called %s", c->rank, names[c->how]);
    expect(f, error, FERRY_EINVAL, text);
    expect(f, error, FERRY_EINVAL, "called ferry_quiesce");
}

static void test_loss_quiesce_against_a_collective(void **state)
{
    (void)state;
    for (int rank = 0; rank < RANKS; rank++)
        for (int how = 0; how < 3; how++)
            run_failing_ranks(RANKS, call_another, &(odd_call){rank, how, false}, 0);
    run_failing_ranks(2, call_another, &(odd_call){0, 0, true}, 0);
    run_failing_ranks(RANKS, call_another, &(odd_call){0, 0, true}, 0);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)arg, (void)event;
}

typedef struct waiting_case {
    int call, odd;
    bool died;
    fy_segment *segment;
    atomic_int ended; /* ranks whose call has failed */
} waiting_case;

enum { CALLS = 5 };

/* Makes call `call`; large values do not fit the boards that small ones go by. */
static int make_call(ferry *f, int call)
{
    static const char part[8192];
    char all[sizeof(part) * RANKS];
    uint64_t value = 1;
    switch (call) {
    case 0:
        return ferry_barrier(f);
    case 1:
        return ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &value, &value, 1);
    case 2:
        return ferry_allreduce(f, FERRY_BYTE, FERRY_MAX, part, all, sizeof(part));
    case 3:
        return ferry_allgather(f, part, sizeof(part), all);
    default:
        return ferry_quiesce(f);
    }
}

/* Polls until the other ranks are done, so that nothing else goes wrong. */
static void stay(ferry *f, waiting_case *w, int others)
{
    while (atomic_load(&w->ended) < others)
        (void)ferry_poll(f);
}

/* Rank `odd` goes while the others wait for it; there is no launcher that ends the job for it. */
static void go_while_others_wait(ferry *f, void *arg)
{
    waiting_case *w = arg;
    if (ferry_rank(f) == w->odd) {
        sleep_ms(3);
        fy_controls_mark(w->segment->base, RANKS, (uint32_t)w->odd, w->died ? SHM_DEAD : SHM_LEFT);
        while (atomic_load(&w->ended) < RANKS - 1)
            sleep_ms(1);
        return;
    }
    char text[64];
    (void)snprintf(text, sizeof(text), "rank %d %s", w->odd,
                   w->died ? "has died" : "has left the job");
    expect(f, make_call(f, w->call), FERRY_EPEER, text);
    expect_all(f, FERRY_EPEER, text);
    atomic_fetch_add(&w->ended, 1);
}

static void test_loss_of_a_rank_fails_those_that_wait(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS * 4; i++) {
        waiting_case w = {.call = i % CALLS, .odd = i % RANKS, .died = i / CALLS % 2 == 0};
        run_failing_ranks_in(RANKS, go_while_others_wait, &w, 0, &w.segment);
    }
}

/* Rank `odd` drops a message, or the one after it does, while the others wait. */
static void drop_while_others_wait(ferry *f, void *arg)
{
    waiting_case *w = arg;
    int rank = ferry_rank(f), next = (w->odd + 1) % RANKS;
    const char *text = w->died ? "dropped a malformed frame" : "on purpose";
    if (rank == w->odd) {
        sleep_ms(3);
        const fy_frame frame = {.kind = 250, .word_count = 1, .handler = 9};
        if (w->died)
            CHECK(fy_send(f, FY_DATA, next, &frame) == 0);
        else
            fy_loss_note(f, FERRY_ELOST, "rank %d dropped something, on purpose", rank);
        stay(f, w, RANKS - 1);
        return;
    }
    expect(f, make_call(f, w->call), FERRY_ELOST, text);
    atomic_fetch_add(&w->ended, 1);
    stay(f, w, RANKS - 1);
}

static void test_loss_of_a_message_fails_those_that_wait(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS * 2; i++) {
        waiting_case w = {.call = i % CALLS, .odd = i % RANKS, .died = i / CALLS % 2 == 0};
        run_failing_ranks_in(RANKS, drop_while_others_wait, &w, 0, &w.segment);
    }
}

/* A rank that ends alone says so, before its port does. */
static void end_while_others_wait(ferry *f, void *arg)
{
    waiting_case *w = arg;
    if (ferry_rank(f) == w->odd) {
        sleep_ms(3);
        fy_loss_end(f, 0x1203);
        stay(f, w, RANKS - 1);
        return;
    }
    char text[64];
    (void)snprintf(text, sizeof(text), "rank %d ended with exit status 3", w->odd);
    expect(f, make_call(f, w->call), FERRY_EPEER, text);
    expect_all(f, FERRY_EPEER, text);
    atomic_fetch_add(&w->ended, 1);
    stay(f, w, RANKS - 1);
}

static void test_loss_of_a_rank_that_ends_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        waiting_case w = {.call = i, .odd = i};
        run_failing_ranks_in(RANKS, end_while_others_wait, &w, 0, &w.segment);
    }
}

/* One rank has another scheduler, or turns migration off where the others turn it on. */
static void turn_phases(ferry *f, void *arg)
{
    const odd_call *c = arg;
    bool odd = ferry_rank(f) == c->rank;
    if (odd && c->how == 0)
        CHECK(ferry_balance_choose(f, "none") == 0);
    int error = ferry_balance_enable(f, !odd || c->how == 0);
    char text[96];
    (void)snprintf(text, sizeof(text),
                   "rank %d called ferry_balance_enable (%s) with scheduler "
                   "\"%s\"",
                   c->rank, c->how == 0 ? "on" : "off", c->how == 0 ? "none" : "stealing");
    expect(f, error, FERRY_EINVAL, text);
    expect(f, error, FERRY_EINVAL, "called ferry_balance_enable (on) with scheduler \"stealing\"");
}

static void test_loss_phases_must_agree(void **state)
{
    (void)state;
    for (int rank = 0; rank < RANKS; rank++)
        for (int how = 0; how < 2; how++)
            run_failing_ranks(RANKS, turn_phases, &(odd_call){rank, how, false}, 0);
}

/* Rank `odd` says that it ends, and goes; the program goes on. */
static void end_while_others_go_on(ferry *f, void *arg)
{
    waiting_case *w = arg;
    CHECK(ferry_peer_watch(f, on_peer, NULL) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == w->odd) {
        fy_loss_end(f, 0x0300);
        while (f->head.slow_lanes != 0)
            (void)ferry_poll(f);
        fy_controls_mark(w->segment->base, RANKS, (uint32_t)w->odd, SHM_DEAD);
        while (atomic_load(&w->ended) < RANKS - 1)
            sleep_ms(1);
        return;
    }
    CHECK(ferry_quiesce(f) == 0);
    CHECK(ferry_barrier(f) == 0);
    atomic_fetch_add(&w->ended, 1);
}

static void test_loss_of_a_rank_is_no_end_for_who_goes_on(void **state)
{
    (void)state;
    for (int odd = 0; odd < RANKS; odd++) {
        waiting_case w = {.odd = odd};
        run_failing_ranks_in(RANKS, end_while_others_go_on, &w, 0, &w.segment);
    }
}

/* Returns what is noted of rank 1 when it has gone, and forgets it. */
static int note_of(ferry *f, bool died)
{
    fy_loss_of_rank(f, 1, died);
    int dead = f->loss.dead;
    f->loss.dead = 0;
    return dead;
}

/* Goal: a death is a loss always, but where the program goes on. A rank that leaves is one unless
 * it is expected to: it has said that it leaves, the job closes, or one of both is in no group. */
static void test_loss_is_what_was_not_expected(void **state)
{
    (void)state;
    test_job job;
    job_open(&job, 3, 0, 0);
    ferry *f = job.f[0];
    assert_int_equal(note_of(f, true), 2);
    assert_int_equal(note_of(f, false), 2);
    f->closing = FY_CLOSING_FIRST;
    assert_int_equal(note_of(f, false), 2);
    f->closing = FY_CLOSING_LAST;
    assert_int_equal(note_of(f, false), 0);
    assert_int_equal(note_of(f, true), 2);
    f->closing = FY_CLOSING_NOT;
    fy_group *group = f->collectives.group;
    int self = group->self;
    group->self = -1;
    assert_int_equal(note_of(f, false), 0);
    assert_int_equal(note_of(f, true), 2);
    group->self = self;
    const uint64_t without[] = {5};
    f->collectives.group = fy_group_create(without, 3, 0);
    assert_int_equal(note_of(f, false), 0);
    fy_group_drop(f->collectives.group);
    f->collectives.group = group;
    uint64_t leaving[] = {2};
    fy_leaves leaves = {.leaving = leaving};
    f->leaves = &leaves;
    assert_int_equal(note_of(f, false), 0);
    assert_int_equal(note_of(f, true), 2);
    f->leaves = NULL;
    fy_loss_of_rank(f, 2, true);
    fy_loss_of_rank(f, 1, true);
    assert_int_equal(f->loss.dead, 3); /* the first */
    assert_int_equal(fy_loss_check(f, "call"), FERRY_EPEER);
    assert_int_equal(ferry_peer_watch(f, on_peer, NULL), 0);
    assert_int_equal(fy_loss_check(f, "call"), 0);
    f->loss.dead = 0;
    assert_int_equal(note_of(f, true), 0);
    job_close(&job);
}

/* Counts the notes that come, by source. */
static fy_verdict count_note(void *context, int source, const fy_frame *frame)
{
    ((int *)context)[source] += frame->kind == FY_KIND_LOSS;
    return FY_TAKEN;
}

/* A rank that ends reads the reason that waits for it, beside what counts no more, and repeats it:
 * another may hear of the end first. */
static void test_loss_reason_is_repeated_at_the_end(void **state)
{
    (void)state;
    test_job job;
    int notes[3] = {0};
    const fy_frame other = {.kind = FY_KIND_REFUSAL};
    job_open(&job, 3, 0, 0);
    assert_int_equal(fy_send(job.f[1], FY_DATA, 0, &other), 0);
    fy_loss_note(job.f[1], FERRY_ELOST, "rank 1 lost it");
    fy_loss_end(job.f[0], 3);
    assert_int_equal(job.f[0]->loss.error, FERRY_ELOST);
    assert_string_equal(job.f[0]->loss.reason, "rank 1 lost it");
    while (job.f[2]->head.ops->transport.poll(job.f[2]->head.port, FY_DATA, 8, count_note, notes) >
           0) {
    }
    assert_int_equal(notes[0], 1);
    assert_int_equal(notes[1], 1);
    job_close(&job);
}

/* Rank 0 says this when it ends with status 3. `dead`: it has been told that rank 2 died. */
static void expect_end(bool dead, bool goes_on, const char *error, const char *expected)
{
    test_job job;
    job_open(&job, 3, 0, 0);
    ferry *f = job.f[0];
    if (goes_on)
        assert_int_equal(ferry_peer_watch(f, on_peer, NULL), 0);
    f->loss.dead = dead ? 3 : 0;
    (void)fy_fail(f, FERRY_EINVAL, "%s", error);
    fy_loss_end(f, 3);
    assert_int_equal(f->loss.error, FERRY_EPEER);
    assert_string_equal(f->loss.reason, expected);
    job_close(&job);
}

static void test_loss_reason_of_a_rank_that_ends(void **state)
{
    (void)state;
    expect_end(false, false, "", "rank 0 ended with exit status 3; its work is lost");
    expect_end(false, false, "no such file",
               "rank 0 ended with exit status 3; its work is lost; its last error: no such file");
    expect_end(true, false, "", "rank 2 has left the job; its work is lost");
    expect_end(true, true, "", "rank 0 ended with exit status 3; its work is lost");
}

static int call_with_root(ferry *f, ferry_collective_kind kind, int root)
{
    uint64_t in[RANKS] = {0}, out[RANKS] = {0};
    size_t sizes[RANKS];
    for (int i = 0; i < RANKS; i++)
        sizes[i] = sizeof(in[0]);
    const ferry_collective what = {
        .size = sizeof(what),
        .kind = kind,
        .root = root,
        .in = in,
        .out = out,
        .count = kind == FERRY_GATHERV || kind == FERRY_SCATTERV ? 8 : 1,
        .type = kind == FERRY_GATHERV || kind == FERRY_SCATTERV ? FERRY_BYTE : FERRY_UINT64,
        .reduction = FERRY_SUM,
        .in_counts = sizes,
        .out_counts = sizes};
    return ferry_collective_run(f, &what);
}

/* Ranks disagree who the root is. A rank may be through its part before that shows: then what
 * follows fails. */
static void call_with_other_roots(ferry *f, void *arg)
{
    int error = call_with_root(f, *(ferry_collective_kind *)arg, ferry_rank(f) % 2);
    if (error == 0)
        error = ferry_quiesce(f);
    expect(f, error, FERRY_EINVAL, ", root ");
}

static void test_loss_roots_must_agree(void **state)
{
    (void)state;
    const ferry_collective_kind kinds[] = {FERRY_BROADCAST, FERRY_REDUCE,  FERRY_GATHER,
                                           FERRY_SCATTER,   FERRY_GATHERV, FERRY_SCATTERV};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (int ranks = 2; ranks <= 3; ranks++)
            run_failing_ranks(ranks, call_with_other_roots, (void *)(uintptr_t)&kinds[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_roots_must_agree),
        cmocka_unit_test(test_loss_other_handlers_are_named),
        cmocka_unit_test(test_loss_handlers_that_agree_later),
        cmocka_unit_test(test_loss_dropped_requests_fail_all),
        cmocka_unit_test(test_loss_damaged_frames_fail_all),
        cmocka_unit_test(test_loss_quiesce_against_a_collective),
        cmocka_unit_test(test_loss_of_a_rank_fails_those_that_wait),
        cmocka_unit_test(test_loss_of_a_message_fails_those_that_wait),
        cmocka_unit_test(test_loss_of_a_rank_that_ends_is_told),
        cmocka_unit_test(test_loss_reason_is_repeated_at_the_end),
        cmocka_unit_test(test_loss_reason_of_a_rank_that_ends),
        cmocka_unit_test(test_loss_of_a_rank_is_no_end_for_who_goes_on),
        cmocka_unit_test(test_loss_phases_must_agree),
        cmocka_unit_test(test_loss_is_what_was_not_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
