/* Goal: transfers with handlers run them in the order of figure B.1; remote words and remote
 * allocation do what memory.h says. Method: ranks driven by one thread; memory that is registered
 * goes by frames, the shared heap by copy. */
#include "transfer_scene.h"

static const char *order_of(bool put, int calls, bool track)
{
    static const char *const orders[2][4][2] = {
        {{"", "c"}, {"r", "rc"}, {"l", "lc"}, {"lr", "lrc"}},
        {{"", "c"}, {"r", "rc"}, {"l", "lc"}, {"rl", "rlc"}}};
    return orders[put][calls][track];
}

static void run_one(bool put, bool shared, int calls, bool track)
{
    unsigned char *far = target_of(shared);
    memcpy(put ? near_memory : far, pattern, SIZE);
    memset(put ? far : near_memory, 0, SIZE);
    const ferry_memory_call remote = {on_there, 0, 11}, local = {on_here, 0, 12};
    const ferry_transfer what = {.target = put ? far : near_memory,
                                 .source = put ? near_memory : far,
                                 .size_bytes = SIZE,
                                 .remote = calls & 1 ? &remote : NULL,
                                 .local = calls & 2 ? &local : NULL};
    step_count = 0;
    const ferry_track *t = track ? &tracked : NULL;
    int error = put ? put_run(1, &what, t) : ferry_get_run(job.f[0], 1, &what, t);
    assert_int_equal(error, 0);
    assert_int_equal(step_count, 0);
    job_settle(&job);
    assert_memory_equal(put ? far : near_memory, pattern, SIZE);
    expect(order_of(put, calls, track));
    for (int i = 0; i < step_count; i++) {
        const step *s = &steps[i];
        assert_int_equal(s->size_bytes, SIZE);
        assert_int_equal(s->error, 0);
        if (s->what == 'r')
            assert_true(s->rank == 1 && s->peer == 0 && s->address == far && s->argument == 11);
        if (s->what == 'l')
            assert_true(s->rank == 0 && s->peer == 1 && s->address == near_memory &&
                        s->argument == 12);
    }
    drop_target(far);
}

/* Goal: handlers run on complete data, on their rank, in the order of the figure. Method: puts and
 * gets, to shared and registered memory, with every choice of handlers, tracked or not. */
static void test_transfer_runs_handlers_in_order(void **state)
{
    (void)state;
    for (int variant = 0; variant < 32; variant++)
        run_one(variant & 1, variant & 2, variant >> 2 & 3, variant & 16);
}

/* Goal: on the rank itself it works alike. */
static void submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg;
    steps[step_count++] =
        (step){'s', ferry_rank(f), receipt->rank, NULL, receipt->size_bytes, 0, 0};
}

/* Goal: a put without handlers tells that its source is free before it has ended, whoever copies.
 */
static void test_transfer_tells_that_its_source_is_free(void **state)
{
    ferry_track track = tracked;
    (void)state;
    track.submitted = submitted;
    for (int shared = 0; shared < 2; shared++) {
        unsigned char *far = target_of(shared != 0);
        const ferry_transfer what = {.target = far, .source = near_memory, .size_bytes = SIZE};
        step_count = 0;
        assert_int_equal(put_run(1, &what, &track), 0);
        job_settle(&job);
        expect("sc");
        drop_target(far);
    }
}

static void test_transfer_on_the_rank_itself(void **state)
{
    (void)state;
    const ferry_memory_call remote = {on_there, 0, 1}, local = {on_here, 0, 2};
    const ferry_transfer what = {near_memory, pattern, 100, &remote, &local, 0};
    assert_int_equal(put_run(0, &what, &tracked), FERRY_ERANGE);
    assert_int_equal(ferry_memory_register(job.f[0], near_memory, SIZE), 0);
    assert_int_equal(put_run(0, &what, &tracked), 0);
    job_settle(&job);
    expect("rlc");
    assert_memory_equal(near_memory, pattern, 100);
}

/* Goal: what fails runs no handler and says why. Method: ranges that are not open, handlers that
 * are none, a rank that is none. */
static void test_transfer_that_fails_runs_nothing(void **state)
{
    (void)state;
    const ferry_memory_call remote = {on_there, 0, 1}, local = {on_here, 0, 2}, wrong = {{9}, 0, 0};
    const ferry_memory_call none = {{0}, 0, 0}, any = {on_there, FERRY_ANY_TAG, 1};
    ferry_transfer what = {far_memory, pattern, SIZE, &remote, &local, 0};
    assert_int_equal(put_run(1, &what, &tracked), 0);
    job_settle(&job);
    expect("f");
    assert_int_equal(steps[0].error, FERRY_ERANGE);
    what.target = near_memory;
    what.source = far_memory;
    assert_int_equal(ferry_get_run(job.f[0], 1, &what, &tracked), 0);
    assert_int_equal(ferry_get_run(job.f[0], 1, &what, NULL), 0);
    job_settle(&job);
    expect("ff");
    assert_int_equal(put_run(2, &what, &tracked), FERRY_EINVAL);
    what.local = &wrong;
    assert_int_equal(put_run(1, &what, &tracked), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "handler 9 was not registered by "
                                                          "ferry_memory_handler_register"));
    what.local = &none;
    assert_int_equal(put_run(1, &what, &tracked), FERRY_EINVAL);
    what.local = &any;
    assert_int_equal(put_run(1, &what, &tracked), FERRY_EINVAL);
    what.local = NULL;
    what.remote = &any;
    assert_int_equal(put_run(1, &what, &tracked), FERRY_EINVAL);
    what.remote = &none;
    assert_int_equal(ferry_get_run(job.f[0], 1, &what, &tracked), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "no handler was given (it is {0})"));
    what.local = &wrong;
    assert_int_equal(ferry_get_run(job.f[0], 1, &what, &tracked), FERRY_EINVAL);
    assert_int_equal(ferry_put_run(job.f[0], 1, NULL, NULL), FERRY_EINVAL);
    job_settle(&job);
    expect("ff");
}

/* Goal: a poll for another tag leaves the remote handler for later. */
static void test_transfer_applies_the_tag_of_a_poll(void **state)
{
    (void)state;
    unsigned char *far = target_of(true);
    const ferry_memory_call remote = {on_there, 7, 1};
    const ferry_transfer what = {far, pattern, 10, &remote, NULL, 0};
    assert_int_equal(put_run(1, &what, NULL), 0);
    assert_int_equal(ferry_poll_tag(job.f[1], 6), 0);
    expect("");
    assert_int_equal(ferry_poll_tag(job.f[1], 7), 1);
    expect("r");
    drop_target(far);
}

/* Goal: once a get is cancelled nothing is written and no handler runs. */
static void test_transfer_cancelled_writes_nothing(void **state)
{
    (void)state;
    unsigned char *far = target_of(false);
    const ferry_memory_call local = {on_here, 0, 2};
    const ferry_transfer what = {near_memory, far, SIZE, &local, &local, 0};
    ferry_op op;
    ferry_track track = tracked;
    track.op = &op;
    memset(far, 1, SIZE);
    assert_int_equal(ferry_get_run(job.f[0], 1, &what, &track), 0);
    assert_int_equal(ferry_op_cancel(job.f[0], &op), 0);
    const ferry_piece pieces[2] = {{near_memory, far, 10}, {near_memory + 10, far, SIZE - 10}};
    assert_int_equal(ferry_get_vector(job.f[0], 1, pieces, 2, &track), 0);
    assert_int_equal(ferry_op_cancel(job.f[0], &op), 0);
    job_settle(&job);
    expect("ff");
    assert_int_equal(steps[0].error, FERRY_ECANCELED);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(near_memory[i], 0);
    drop_target(far);
}

/* Goal: memory is allocated and freed elsewhere. Method: a rank asks another for memory, and
 * allocates on itself; sizes that no heap has. */
static void test_remote_alloc_and_free(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        void *block = NULL, *huge = NULL;
        ferry_op op;
        ferry_track track = {.size = sizeof(track), .op = &op};
        assert_int_equal(ferry_remote_alloc(job.f[0], rank, 5000, &block, &track), 0);
        job_settle(&job);
        assert_int_equal(ferry_op_test(job.f[0], &op), 0);
        assert_true(fy_memory_is_direct(job.f[0], rank, block, 5000));
        int error = ferry_remote_alloc(job.f[0], rank, (size_t)1 << 50, &huge, &track);
        job_settle(&job);
        error = error == 0 ? ferry_op_test(job.f[0], &op) : error;
        assert_int_equal(error, FERRY_ENOMEM);
        assert_null(huge);
        assert_int_equal(ferry_remote_free(job.f[0], rank, block, NULL), 0);
        assert_false(fy_memory_is_direct(job.f[0], rank, block, 5000));
        error = ferry_remote_free(job.f[0], rank, block, &track);
        job_settle(&job);
        error = error == 0 ? ferry_op_test(job.f[0], &op) : error;
        assert_int_equal(error, FERRY_EINVAL);
    }
    assert_int_equal(ferry_remote_alloc(job.f[0], 2, 1, (void **)&job, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_remote_alloc(job.f[0], 1, 0, (void **)&job, NULL), FERRY_EINVAL);
}

static uint64_t reference(uint64_t word, ferry_atomic_verb verb, uint64_t a, uint64_t expected)
{
    switch (verb) {
    case FERRY_FETCH_ADD:
        return word + a;
    case FERRY_FETCH_AND:
        return word & a;
    case FERRY_FETCH_OR:
        return word | a;
    case FERRY_FETCH_XOR:
        return word ^ a;
    case FERRY_SWAP:
        return a;
    default:
        return word == expected ? a : word;
    }
}

/* Goal: each verb changes the word and gives what it was. Method: against plain arithmetic, for
 * shared and registered words. */
static void test_atomic_verbs(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        uint64_t random = 5, *word = (uint64_t *)(void *)target_of(shared);
        *word = 77;
        for (int i = 0; i < 600; i++) {
            uint64_t before = *word, old = 0;
            ferry_atomic what = {.verb = (ferry_atomic_verb)(i % 6),
                                 .target = word,
                                 .operand = next_random(&random),
                                 .expected = i % 5 == 0 ? 3 : before};
            ferry_op op;
            const ferry_track track = {.size = sizeof(track), .op = &op};
            assert_int_equal(
                ferry_atomic_update(job.f[0], 1, &what, &old, i % 7 == 0 && shared ? NULL : &track),
                0);
            job_settle(&job);
            if (i % 7 != 0 || !shared)
                assert_int_equal(ferry_op_test(job.f[0], &op), 0);
            assert_int_equal(old, before);
            assert_int_equal(*word, reference(before, what.verb, what.operand, what.expected));
        }
        ferry_atomic odd = {.target = (uint64_t *)((uintptr_t)word + 4)};
        assert_int_equal(ferry_atomic_update(job.f[0], 1, &odd, NULL, NULL), FERRY_EINVAL);
        odd = (ferry_atomic){.verb = (ferry_atomic_verb)6, .target = word};
        assert_int_equal(ferry_atomic_update(job.f[0], 1, &odd, NULL, NULL), FERRY_EINVAL);
        drop_target((unsigned char *)word);
        odd.verb = FERRY_SWAP;
        step_count = 0;
        assert_int_equal(ferry_atomic_update(job.f[0], 1, &odd, NULL, &tracked), 0);
        job_settle(&job);
        expect("f");
        assert_int_equal(steps[0].error, FERRY_ERANGE);
    }
}

static void count_up(ferry *f, void *arg)
{
    uint64_t *word = arg, old;
    CHECK(ferry_rank(f) != 0 || ferry_memory_register(f, word, sizeof(*word)) == 0);
    CHECK(ferry_barrier(f) == 0);
    const ferry_atomic add = {.verb = FERRY_FETCH_ADD, .target = word, .operand = 1};
    for (int i = 0; i < 2000; i++)
        CHECK(ferry_atomic_update(f, 0, &add, &old, NULL) == 0 && old < 4 * 2000);
    CHECK(ferry_barrier(f) == 0);
    CHECK(*word == 4 * 2000);
}

/* Goal: no change is lost. Method: four ranks count up one registered word, waiting each time. */
static void test_atomic_changes_are_not_lost(void **state)
{
    (void)state;
    _Alignas(8) static uint64_t word;
    word = 0;
    run_ranks(4, 8, 1024, count_up, &word);
}

/* Goal: frames that are no transfer or word are dropped. Method: random frames of those kinds. */
static void test_transfer_survives_hostile_frames(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int i = 0; i < 20000; i++) {
        fy_frame frame = {.kind = i % 2 ? FY_KIND_TRANSFER : FY_KIND_WORD,
                          .word_count = (uint8_t)(next_random(&random) % 5),
                          .handler = (uint16_t)(next_random(&random) % 20),
                          .op = (uint32_t)next_random(&random) & 3,
                          .aux = (uint32_t)next_random(&random) & 3};
        /* Small numbers: none asks for much memory. */
        for (int j = 0; j < 4; j++)
            frame.words[j] = next_random(&random) >> (next_random(&random) % 8 * 8);
        if (frame.handler == 16)
            frame.words[0] %= 1000;
        fy_send(job.f[0], FY_DATA, 1, &frame);
        if (i % 16 == 0)
            job_settle(&job);
    }
    job_settle(&job);
    job.f[1]->head.work_finished = job.f[1]->head.work_created = 0;
    job.f[0]->head.work_finished = job.f[0]->head.work_created = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_JOB(test_transfer_runs_handlers_in_order),
        WITH_JOB(test_transfer_tells_that_its_source_is_free),
        WITH_JOB(test_transfer_on_the_rank_itself),
        WITH_JOB(test_transfer_that_fails_runs_nothing),
        WITH_JOB(test_transfer_applies_the_tag_of_a_poll),
        WITH_JOB(test_transfer_cancelled_writes_nothing),
        WITH_JOB(test_remote_alloc_and_free),
        WITH_JOB(test_atomic_verbs),
        cmocka_unit_test(test_atomic_changes_are_not_lost),
        WITH_JOB(test_transfer_survives_hostile_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
