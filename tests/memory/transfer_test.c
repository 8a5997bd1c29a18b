/* Goal: transfers with handlers run them in the order of figure B.1; many pieces, remote words and
 * remote allocation do what memory.h says. Method: ranks driven by one thread; memory that is
 * registered goes by frames, the shared heap by copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/outgoing.h"
#include "memory/state.h"
#include "ranks.h"

enum { SIZE = 100000, STEPS_MAX = 64 };

/* The events of all ranks, in order. */
typedef struct step {
    char what; /* r: remote handler, l: local handler, c: completed, f: failed */
    int rank, peer;
    void *address;
    size_t size_bytes;
    uint64_t argument;
    int error;
} step;

static test_job job;
static ferry_handler on_there, on_here;
static step steps[STEPS_MAX];
static int step_count;
static unsigned char pattern[SIZE], far_memory[SIZE], near_memory[SIZE];

static void there(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    steps[step_count++] = (step){'r', ferry_rank(f), peer, address, size_bytes, argument, 0};
    CHECK(ferry_poll(f) == FERRY_ESTATE);
}

static void here(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    steps[step_count++] = (step){'l', ferry_rank(f), peer, address, size_bytes, argument, 0};
    CHECK(ferry_poll(f) == FERRY_ESTATE);
}

static void completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg;
    steps[step_count++] =
        (step){'c', ferry_rank(f), receipt->rank, NULL, receipt->size_bytes, 0, receipt->error};
}

static void failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg;
    steps[step_count++] =
        (step){'f', ferry_rank(f), receipt->rank, NULL, receipt->size_bytes, 0, receipt->error};
}

static const ferry_track tracked = {
    .size = sizeof(ferry_track), .completed = completed, .failed = failed};

static int open_job(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        pattern[i] = (unsigned char)(i * 13 + i / 256);
    memset(far_memory, 0, SIZE);
    memset(near_memory, 0, SIZE);
    job_open(&job, 2, 8, 1024);
    for (int i = 0; i < 2; i++) {
        CHECK(ferry_memory_handler_register(job.f[i], "there", there, &on_there) == 0);
        CHECK(ferry_memory_handler_register(job.f[i], "here", here, &on_here) == 0);
        job.f[i]->head.depth = 0;
    }
    step_count = 0;
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    assert_int_equal(job.f[0]->head.work_created + job.f[1]->head.work_created,
                     job.f[0]->head.work_finished + job.f[1]->head.work_finished);
    assert_int_equal(job.f[0]->ops_table.pending, 0);
    job_close(&job);
    return 0;
}

/* As from a handler: one thread cannot wait for room at itself. */
static int put_run(int rank, const ferry_transfer *what, const ferry_track *track)
{
    job.f[0]->head.depth++;
    int error = ferry_put_run(job.f[0], rank, what, track);
    job.f[0]->head.depth--;
    return error;
}

static void expect(const char *order)
{
    char seen[STEPS_MAX + 1] = {0};
    for (int i = 0; i < step_count; i++)
        seen[i] = steps[i].what;
    assert_string_equal(seen, order);
}

/* The memory of rank 1 to use: of its shared heap, or its own, registered. */
static unsigned char *target_of(bool shared)
{
    void *block = far_memory;
    if (shared)
        assert_int_equal(ferry_alloc(job.f[1], SIZE, &block), 0);
    else
        assert_int_equal(ferry_memory_register(job.f[1], far_memory, SIZE), 0);
    return block;
}

static void drop_target(unsigned char *target)
{
    if (target == far_memory)
        assert_int_equal(ferry_memory_unregister(job.f[1], target), 0);
    else
        assert_int_equal(ferry_free(job.f[1], target), 0);
}

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

/* Goal: strided copies equal the loops they stand for. Method: random shapes within bounds, against
 * plain loops; shared and registered memory, puts and gets. */
static void test_strided_equals_its_loops(void **state)
{
    (void)state;
    uint64_t random = 9;
    static unsigned char expected[SIZE];
    for (int turn = 0; turn < 300; turn++) {
        bool put = turn & 1, shared = turn & 2;
        unsigned char *far = target_of(shared);
        unsigned char *to = put ? far : near_memory, *from = put ? near_memory : far;
        size_t count[3];
        ptrdiff_t block = (ptrdiff_t)(next_random(&random) % 20);
        for (int i = 0; i < 3; i++)
            count[i] = next_random(&random) % 6;
        bool back = turn % 5 == 0;
        const ferry_stride stride[3] = {{count[0], 25, back ? -30 : 30},
                                        {count[1], 200, 240},
                                        {count[2], 2000, back ? -1500 : 1500}};
        int levels = turn % 4;
        memcpy(from, pattern, SIZE);
        memset(to, 0, SIZE);
        memset(expected, 0, SIZE);
        size_t offset = SIZE / 2;
        for (size_t i = 0; i < (levels > 2 ? count[2] : 1); i++)
            for (size_t j = 0; j < (levels > 1 ? count[1] : 1); j++)
                for (size_t k = 0; k < (levels > 0 ? count[0] : 1); k++) {
                    const size_t n[3] = {k, j, i};
                    ptrdiff_t t = (ptrdiff_t)offset, s = (ptrdiff_t)offset;
                    for (int l = 0; l < levels; l++) {
                        t += (ptrdiff_t)n[l] * stride[l].target_bytes;
                        s += (ptrdiff_t)n[l] * stride[l].source_bytes;
                    }
                    memcpy(expected + t, pattern + s, (size_t)block);
                }
        const ferry_strided what = {to + offset, from + offset, (size_t)block, levels, stride};
        step_count = 0;
        job.f[0]->head.depth++;
        assert_int_equal(put ? ferry_put_strided(job.f[0], 1, &what, &tracked)
                             : ferry_get_strided(job.f[0], 1, &what, &tracked),
                         0);
        job.f[0]->head.depth--;
        job_settle(&job);
        expect("c");
        assert_memory_equal(to, expected, SIZE);
        drop_target(far);
    }
}

/* Goal: a put of small pieces that a poll for another tag keeps has ended when it is kept. A piece
 * that is refused later is logged at its source, and ends no other operation. */
static void test_kept_small_pieces_end_once(void **state)
{
    (void)state;
    unsigned char *far = target_of(false);
    const ferry_memory_call remote = {on_there, 7, 1};
    const ferry_transfer first = {far, pattern, 10, &remote, NULL, 0};
    const ferry_piece pieces[] = {{far + 100, pattern, 8}, {far + 200, pattern, 9}};
    assert_int_equal(put_run(1, &first, NULL), 0);
    assert_int_equal(ferry_put_vector(job.f[0], 1, pieces, 2, &tracked), 0);
    for (int i = 0; i < 100; i++)
        (void)(ferry_poll_tag(job.f[1], 5) + ferry_poll(job.f[0]));
    expect("c");
    assert_int_equal(fy_memory_of(job.f[0])->lines_logged, 0);
    drop_target(far);
    job_settle(&job);
    assert_int_equal(step_count, 1);
    /* The call, and both pieces: as those of an untracked put. */
    assert_int_equal(fy_memory_of(job.f[0])->lines_logged, 3);
}

/* Goal: small pieces travel when the shared heap is full. Method: registered memory. */
static void test_small_pieces_need_no_heap(void **state)
{
    enum { PIECES = 600, EACH = 100 };
    static ferry_piece pieces[PIECES];
    void *block;
    (void)state;
    unsigned char *far = target_of(false);
    memcpy(far, pattern, SIZE);
    int refused = 0;
    for (size_t size = 1 << 20; size >= 256; size /= 16)
        for (int i = 0; i < 160; i++)
            refused += ferry_alloc(job.f[i % 2], size, &block) != 0;
    assert_true(refused > 0);
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = (ferry_piece){near_memory + i * EACH, far + i * EACH, EACH};
    memset(near_memory, 0, SIZE);
    step_count = 0;
    job.f[0]->head.depth++; /* one thread cannot wait for itself */
    assert_int_equal(ferry_get_vector(job.f[0], 1, pieces, PIECES, &tracked), 0);
    job.f[0]->head.depth--;
    job_settle(&job);
    expect("c");
    assert_memory_equal(near_memory, pattern, PIECES * EACH);
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = (ferry_piece){far + i * EACH, pattern + EACH + i * EACH, EACH};
    step_count = 0;
    job.f[0]->head.depth++;
    assert_int_equal(ferry_put_vector(job.f[0], 1, pieces, PIECES, &tracked), 0);
    job.f[0]->head.depth--;
    job_settle(&job);
    expect("c");
    assert_memory_equal(far, pattern + EACH, PIECES * EACH);
    drop_target(far);
}

/* Goal: vectors of pieces arrive, small ones together and large ones alone, and one bad piece fails
 * the whole once. */
static void test_vector_of_pieces(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        bool put = variant & 1;
        unsigned char *far = target_of(variant & 2);
        ferry_piece pieces[40];
        memcpy(put ? near_memory : far, pattern, SIZE);
        memset(put ? far : near_memory, 0, SIZE);
        for (size_t i = 0; i < 40; i++)
            pieces[i] = (ferry_piece){(put ? far : near_memory) + i * 1600,
                                      (put ? near_memory : far) + i * 1700, i * 40};
        for (int bad = 0; bad < 2; bad++) {
            step_count = 0;
            if (bad)
                *(put ? &pieces[20].target : (void **)(void *)&pieces[20].source) = pattern;
            job.f[0]->head.depth++;
            int error = put ? ferry_put_vector(job.f[0], 1, pieces, 40, &tracked)
                            : ferry_get_vector(job.f[0], 1, pieces, 40, &tracked);
            job.f[0]->head.depth--;
            assert_int_equal(error, 0);
            job_settle(&job);
            expect(bad ? "f" : "c");
            assert_int_equal(steps[0].error, bad ? FERRY_ERANGE : 0);
        }
        for (size_t i = 0; i < 40; i++)
            if (i != 20)
                assert_memory_equal((put ? far : near_memory) + i * 1600, pattern + i * 1700,
                                    i * 40);
        step_count = 0;
        assert_int_equal(ferry_put_vector(job.f[0], 1, NULL, 0, &tracked), 0);
        assert_int_equal(ferry_get_vector(job.f[0], 1, NULL, 0, NULL), 0);
        job_settle(&job);
        expect("c");
        drop_target(far);
    }
}

/* Goal: nonsense is refused. */
static void test_pieces_reject_nonsense(void **state)
{
    (void)state;
    const ferry_stride far_away = {SIZE_MAX, PTRDIFF_MAX, PTRDIFF_MAX};
    ferry_strided what = {far_memory, near_memory, 1, 9, &far_away};
    assert_int_equal(ferry_put_strided(job.f[0], 1, &what, NULL), FERRY_EINVAL);
    what.levels = -1;
    assert_int_equal(ferry_put_strided(job.f[0], 1, &what, NULL), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "-1 levels; expected 0..8"));
    what.levels = 1;
    assert_int_equal(ferry_put_strided(job.f[0], 1, &what, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_get_strided(job.f[0], 1, &what, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_get_strided(job.f[0], 1, NULL, NULL), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "get_strided: what is NULL"));
    what.stride = NULL;
    assert_int_equal(ferry_put_strided(job.f[0], 1, &what, NULL), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "put_strided: stride is NULL"));
    assert_int_equal(ferry_get_vector(job.f[0], 1, NULL, 1, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_get_vector(job.f[0], 5, NULL, 0, NULL), FERRY_EINVAL);
}

/* Goal: frames with small pieces that are none are dropped or refused, and nothing is written.
 * Method: random bytes, of which some make heads, with sizes around what the frame has. */
static void test_small_pieces_survive_hostile_frames(void **state)
{
    (void)state;
    uint64_t random = 5, data[12];
    unsigned char *far = target_of(true);
    memset(far, 0, SIZE);
    for (int i = 0; i < 20000; i++) {
        size_t size = next_random(&random) % sizeof data;
        for (size_t j = 0; j < sizeof data / sizeof *data; j++)
            data[j] = next_random(&random) >> (next_random(&random) % 8 * 8);
        if (i % 3 == 0)
            data[0] = (uintptr_t)far + SIZE; /* just behind what it may reach */
        const fy_frame frame = {.kind = i % 2 ? FY_KIND_PUT : FY_KIND_GET,
                                .word_count = i % 2 ? FY_PUT_WORDS : FY_GET_WORDS,
                                .handler = i % 2 ? FY_PUT_SMALL : FY_GET_SMALL,
                                .op = (uint32_t)next_random(&random) & 3,
                                .tag = FY_NO_TAG,
                                .words = {next_random(&random) >> next_random(&random) % 64},
                                .data = data,
                                .size_bytes = size};
        fy_send(job.f[0], FY_DATA, 1, &frame);
        if (i % 16 == 0)
            job_settle(&job);
    }
    job_settle(&job);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(far[i], 0);
    drop_target(far);
    /* An answer with fewer bytes than the pieces have. */
    const ferry_piece pieces[] = {{near_memory, far_memory, 40},
                                  {near_memory + 40, far_memory, 20}};
    memset(near_memory, 0, SIZE);
    step_count = 0;
    assert_int_equal(ferry_get_vector(job.f[0], 1, pieces, 2, &tracked), 0);
    const fy_frame answer = {.kind = FY_KIND_GOT,
                             .word_count = FY_GOT_WORDS,
                             .words = {UINT64_C(30) << 32},
                             .data = pattern,
                             .size_bytes = 30};
    fy_send(job.f[1], FY_DATA, 0, &answer);
    for (int i = 0; i < 100; i++)
        (void)ferry_poll(job.f[0]);
    expect("f");
    assert_int_equal(steps[0].error, FERRY_EINVAL);
    assert_int_equal(near_memory[0], 0);
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

#define WITH_JOB(test) cmocka_unit_test_setup_teardown(test, open_job, close_job)

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
        WITH_JOB(test_strided_equals_its_loops),
        WITH_JOB(test_kept_small_pieces_end_once),
        WITH_JOB(test_small_pieces_need_no_heap),
        WITH_JOB(test_vector_of_pieces),
        WITH_JOB(test_pieces_reject_nonsense),
        WITH_JOB(test_small_pieces_survive_hostile_frames),
        WITH_JOB(test_transfer_survives_hostile_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
