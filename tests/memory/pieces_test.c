/* Goal: puts and gets of many pieces do what memory.h says, whether the pieces travel together or
 * alone. Method: ranks driven by one thread; memory that is registered goes by frames, the shared
 * heap by copy. */
#include "transfer_scene.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_JOB(test_strided_equals_its_loops),
        WITH_JOB(test_kept_small_pieces_end_once),
        WITH_JOB(test_small_pieces_need_no_heap),
        WITH_JOB(test_vector_of_pieces),
        WITH_JOB(test_pieces_reject_nonsense),
        WITH_JOB(test_small_pieces_survive_hostile_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
