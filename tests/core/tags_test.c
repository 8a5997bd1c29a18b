/* Goal: a poll for one tag finds it behind whatever stands before it, keeps the rest in order, and
 * keeps no source waiting that only wants to know that its request has arrived. Method: ranks
 * driven by one thread, so that each test says who polls when; the last with a thread for each
 * rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/memory.h>

#include "failing.h"
#include "ranks.h"

enum { LOG_MAX = 8192, OTHER = 1, WANTED = 2, DATA_BYTES = 4096 };

/* The events of all ranks, in order. */
typedef struct entry {
    char what; /* r: request, m: memory handler, l: local one, c: completed, f: failed */
    uint64_t word;
    uint64_t seen; /* `target` then */
    int error;
} entry;

static test_job job;
static ferry_handler note, on_there, on_here;
static entry entries[LOG_MAX];
static int entry_count;
static uint64_t target, source, got;
static unsigned char data[DATA_BYTES];

static void add(entry e)
{
    CHECK(entry_count < LOG_MAX);
    e.seen = target;
    entries[entry_count++] = e;
}

static void on_note(ferry *f, int from, const ferry_message *message)
{
    (void)f, (void)from;
    add((entry){.what = 'r', .word = message->words[0]});
}

static void there(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    (void)f, (void)peer, (void)address, (void)size_bytes;
    add((entry){.what = 'm', .word = argument});
}

static void here(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    (void)f, (void)peer, (void)address, (void)size_bytes;
    add((entry){.what = 'l', .word = argument});
}

static void ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    add((entry){
        .what = receipt->error == 0 ? 'c' : 'f', .word = (uintptr_t)arg, .error = receipt->error});
}

static ferry_track track_of(uintptr_t word)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .completed = ended,
                         .completed_arg = (void *)word,
                         .failed = ended,
                         .failed_arg = (void *)word};
}

static void open_ranks(int ranks)
{
    job_open(&job, ranks, 8, 1024);
    for (int i = 0; i < ranks; i++) {
        CHECK(ferry_handler_register(job.f[i], "note", on_note, &note) == 0);
        CHECK(ferry_memory_handler_register(job.f[i], "there", there, &on_there) == 0);
        CHECK(ferry_memory_handler_register(job.f[i], "here", here, &on_here) == 0);
    }
    CHECK(ferry_memory_register(job.f[1], &target, sizeof(target)) == 0);
    job_settle(&job);
    entry_count = 0;
    target = got = 0;
}

static int open_two(void **state)
{
    (void)state;
    open_ranks(2);
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    job_settle(&job);
    for (int i = 0; i < job.ranks; i++) {
        assert_int_equal(job.f[i]->tags.count, 0);
        assert_int_equal(job.f[i]->tags.bytes, 0);
        assert_int_equal(job.f[i]->ops_table.pending, 0);
    }
    job_close(&job);
    return 0;
}

/* As from a handler: one thread cannot wait for room at itself. */
static void send_one(int32_t tag, uint64_t word, size_t size_bytes, const ferry_track *track)
{
    const ferry_message m = {.handler = note,
                             .tag = tag,
                             .word_count = 1,
                             .words = {word},
                             .data = data,
                             .size_bytes = size_bytes};
    job.f[0]->head.depth++;
    CHECK(ferry_request_send(job.f[0], 1, &m, track) == 0);
    job.f[0]->head.depth--;
}

static void put_one(uint64_t value, int32_t tag, const ferry_track *track)
{
    const ferry_transfer what = {&target, &source, sizeof(target), NULL, NULL, tag};
    source = value;
    job.f[0]->head.depth++;
    CHECK((tag == 0 ? ferry_put(job.f[0], 1, &target, &source, sizeof(target), track)
                    : ferry_put_run(job.f[0], 1, &what, track)) == 0);
    job.f[0]->head.depth--;
}

/* Rank 1 polls for a tag while rank 0 sends what waits, and sees what it is told. */
static void poll_tag(int32_t tag)
{
    for (int i = 0; i < 100; i++) {
        CHECK(ferry_poll_tag(job.f[1], tag) >= 0);
        fy_progress(job.f[0], true);
    }
}

static void expect(const char *order)
{
    char seen[LOG_MAX + 1] = {0};
    for (int i = 0; i < entry_count; i++)
        seen[i] = entries[i].what;
    assert_string_equal(seen, order);
}

/* Goal: the wanted request is found behind 8 MiB of others, which stay in order. */
static void test_tags_are_found_after_many_others(void **state)
{
    enum { COUNT = 2048 };
    (void)state;
    for (uint64_t i = 0; i < COUNT; i++)
        send_one(OTHER, i, DATA_BYTES, NULL);
    send_one(WANTED, COUNT, 0, NULL);
    for (int i = 0; i < 100 * COUNT && entry_count == 0; i++) {
        assert_true(ferry_poll_tag(job.f[1], WANTED) >= 0);
        fy_progress(job.f[0], true);
    }
    assert_int_equal(entry_count, 1);
    assert_int_equal(entries[0].word, COUNT);
    job_settle(&job);
    assert_int_equal(entry_count, COUNT + 1);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(entries[i + 1].word, i);
}

/* Goal: what is kept is bounded, and the poll says why it finds nothing more. Method: a limit of 64
 * KiB; afterwards a poll for any tag runs all, and polls for a tag work again. */
static void test_tags_kept_are_bounded_and_told(void **state)
{
    enum { COUNT = 100, LIMIT = 64 * 1024 };
    (void)state;
    ferry *f = job.f[1];
    size_t limit_before = f->options.waiting_bytes;
    f->options.waiting_bytes = LIMIT;
    for (uint64_t i = 0; i < COUNT; i++)
        send_one(OTHER, i, DATA_BYTES, NULL);
    send_one(WANTED, COUNT, 0, NULL);
    int error = 0;
    for (int i = 0; i < 1000 && error >= 0; i++) {
        error = ferry_poll_tag(f, WANTED);
        fy_progress(job.f[0], true);
    }
    assert_int_equal(error, FERRY_EAGAIN);
    assert_non_null(strstr(ferry_error_message(f), "requests with tag 2 may be behind"));
    assert_non_null(strstr(ferry_error_message(f), "the limit is 65536"));
    assert_true(f->tags.bytes > LIMIT && f->tags.bytes < LIMIT + 2 * DATA_BYTES);
    assert_int_equal(entry_count, 0);
    job_settle(&job);
    assert_int_equal(entry_count, COUNT + 1);
    for (int i = 0; i <= COUNT; i++)
        assert_int_equal(entries[i].word, i);
    send_one(OTHER, 0, DATA_BYTES, NULL);
    send_one(WANTED, 1, 0, NULL);
    poll_tag(WANTED);
    assert_int_equal(entries[COUNT + 1].word, 1);
    f->options.waiting_bytes = limit_before;
}

/* Goal: requests to oneself that find no room among those kept are counted until they are taken. */
static void test_tags_of_requests_to_oneself(void **state)
{
    enum { COUNT = 8 };
    (void)state;
    ferry *f = job.f[0];
    const ferry_message m = {.handler = note, .tag = OTHER, .data = data, .size_bytes = DATA_BYTES};
    size_t limit_before = f->options.waiting_bytes;
    f->options.waiting_bytes = 2 * DATA_BYTES;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(ferry_request_send(f, 0, &m, NULL), 0);
    for (int i = 0; i < COUNT; i++)
        (void)ferry_poll_tag(f, WANTED);
    assert_int_equal(ferry_poll_tag(f, WANTED), FERRY_EAGAIN);
    f->options.waiting_bytes = limit_before;
    job_settle(&job);
    assert_int_equal(entry_count, COUNT);
    assert_int_equal(f->self.bytes, 0);
}

/* Goal: who wants to know that a request has arrived is told when it is kept, who wants to know
 * that its handler has returned is not. Also of one that cannot run. */
static void test_tags_kept_requests_have_arrived(void **state)
{
    (void)state;
    ferry_track arrival = track_of(1), handled = track_of(2);
    arrival.arrival = true;
    send_one(OTHER, 10, 0, &arrival);
    send_one(OTHER, 11, DATA_BYTES, &handled);
    poll_tag(WANTED);
    expect("c");
    assert_int_equal(entries[0].word, 1);
    job_settle(&job);
    expect("crrc");
    assert_int_equal(entries[3].word, 2);
    ferry_handler only_here;
    CHECK(ferry_handler_register(job.f[0], "only here", on_note, &only_here) == 0);
    const ferry_message wrong = {.handler = only_here, .tag = OTHER};
    CHECK(ferry_request_send(job.f[0], 1, &wrong, &arrival) == 0);
    poll_tag(WANTED);
    expect("crrcf");
    assert_int_equal(entries[4].error, FERRY_ENOENT);
}

static void on_object(ferry *f, ferry_object object, void *at, int from,
                      const ferry_message *message)
{
    (void)f, (void)object, (void)at, (void)from;
    add((entry){.what = 'r', .word = message->words[0]});
}

/* Goal: likewise of messages to objects: one has arrived when it is kept on the rank that has the
 * object; one that is for another rank goes on, whatever this one polls for. Method: an object of
 * rank 1; then it moves to rank 2, while rank 0 still sends to rank 1, which polls for a tag. */
static void test_tags_kept_messages_have_arrived(void **state)
{
    (void)state;
    static const ferry_object_ops ops = {.size = sizeof(ops), .flat_bytes = 8};
    ferry_object_type type;
    ferry_object object;
    ferry_handler handler;
    open_ranks(3);
    for (int i = 0; i < 3; i++) {
        CHECK(ferry_object_type_register(job.f[i], &ops, &type) == 0);
        CHECK(ferry_object_handler_register(job.f[i], "message", on_object, &handler) == 0);
    }
    CHECK(ferry_object_create(job.f[1], type, calloc(1, 8), &object) == 0);
    ferry_track arrival = track_of(1), handled = track_of(2);
    arrival.arrival = true;
    ferry_message m = {.handler = handler, .tag = OTHER, .word_count = 1, .words = {10}};
    CHECK(ferry_object_send(job.f[0], object, &m, &arrival) == 0);
    CHECK(ferry_object_send(job.f[0], object, &m, &handled) == 0);
    poll_tag(WANTED);
    expect("c");
    assert_int_equal(entries[0].word, 1);
    job_settle(&job);
    expect("crrc");
    assert_int_equal(entries[3].word, 2);
    CHECK(ferry_object_move(job.f[1], object, 2) == 0);
    for (int i = 0; i < 100; i++) {
        fy_progress(job.f[1], true);
        fy_progress(job.f[2], true);
    }
    assert_non_null(ferry_object_data(job.f[2], object));
    CHECK(ferry_object_send(job.f[0], object, &m, &arrival) == 0);
    CHECK(ferry_object_send(job.f[0], object, &m, &handled) == 0);
    for (int i = 0; i < 100; i++) {
        CHECK(ferry_poll_tag(job.f[1], WANTED) >= 0);
        CHECK(ferry_poll_tag(job.f[2], WANTED) >= 0);
        fy_progress(job.f[0], true);
    }
    expect("crrcc");
    job_settle(&job);
    expect("crrccrrc");
    close_job(NULL);
}

/* Goal: the reply of a put with handler comes before the remote handler, whatever is polled for.
 * Method: the local handler runs, and the operation completes with `arrival`, while the remote one
 * is kept; without `arrival` it completes after both. To registered and shared memory. */
static void test_tags_put_is_answered_before_its_handler(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        bool shared = variant & 1, arrival = variant & 2;
        const ferry_memory_call remote = {on_there, OTHER, 7}, local = {on_here, 0, 8};
        void *block;
        CHECK(ferry_alloc(job.f[1], 64, &block) == 0);
        const ferry_transfer what = {
            shared ? block : (void *)&target, &source, sizeof(source), &remote, &local, 0};
        ferry_track track = track_of(1);
        track.arrival = arrival;
        entry_count = 0;
        source = 5;
        CHECK(ferry_put_run(job.f[0], 1, &what, &track) == 0);
        poll_tag(WANTED);
        expect(arrival ? "lc" : "l");
        poll_tag(OTHER);
        expect(arrival ? "lcm" : "lmc");
        assert_int_equal(*(uint64_t *)what.target, 5);
        CHECK(ferry_free(job.f[1], block) == 0);
        target = 0;
    }
}

/* Goal: a put keeps its place behind requests of its source that are kept. Method: tracked or not;
 * each handler sees memory as it was when its request was sent. */
static void test_tags_put_stays_after_kept_requests(void **state)
{
    (void)state;
    for (int tracked = 0; tracked < 2; tracked++) {
        ferry_track track = track_of(1);
        target = 0;
        entry_count = 0;
        send_one(OTHER, 0, 0, NULL);
        put_one(1, 0, tracked ? &track : NULL);
        send_one(OTHER, 1, 0, NULL);
        put_one(2, 0, tracked ? &track : NULL);
        send_one(WANTED, 9, 0, NULL);
        poll_tag(WANTED);
        expect(tracked ? "rcc" : "r"); /* the source of a put need not wait */
        int first = entry_count;
        job_settle(&job);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(entries[first + i].word, i);
            assert_int_equal(entries[first + i].seen, i);
        }
        assert_int_equal(target, 2);
    }
}

/* Goal: what a put has written is never seen missing by gets and remote words, kept or not. */
static void test_tags_reads_see_kept_puts(void **state)
{
    (void)state;
    const ferry_atomic increment = {.verb = FERRY_FETCH_ADD, .target = &target, .operand = 1};
    ferry_track track = track_of(1);
    for (int word = 0; word < 2; word++) {
        target = got = 0;
        send_one(OTHER, 0, 0, NULL);
        put_one(41, 0, &track);
        poll_tag(WANTED);
        assert_int_equal(target, 0);
        if (word)
            CHECK(ferry_atomic_update(job.f[0], 1, &increment, &got, &track) == 0);
        else
            CHECK(ferry_get(job.f[0], 1, &got, &target, sizeof(got), &track) == 0);
        poll_tag(WANTED);
        assert_int_equal(got, 41);
        assert_int_equal(target, 41 + word);
        job_settle(&job);
    }
}

/* Goal: puts and gets with a tag wait for a poll of it, in order with requests of that tag. */
static void test_tags_of_puts_and_gets(void **state)
{
    (void)state;
    ferry_track track = track_of(3);
    const ferry_transfer get = {&got, &target, sizeof(got), NULL, NULL, OTHER};
    put_one(1, OTHER, NULL);
    CHECK(ferry_get_run(job.f[0], 1, &get, &track) == 0);
    send_one(OTHER, 0, 0, NULL);
    put_one(2, OTHER, NULL);
    poll_tag(WANTED);
    assert_int_equal(target, 0);
    assert_int_equal(entry_count, 0);
    poll_tag(OTHER);
    expect("rc");
    assert_int_equal(entries[0].seen, 1);
    assert_int_equal(got, 1);
    assert_int_equal(target, 2);
    put_one(3, WANTED, NULL);
    poll_tag(WANTED);
    assert_int_equal(target, 3);
    ferry_transfer wrong = get;
    wrong.tag = FERRY_ANY_TAG;
    assert_int_equal(ferry_get_run(job.f[0], 1, &wrong, NULL), FERRY_EINVAL);
}

/* Goal: a put outside of what is open fails at once also where it would be kept. */
static void test_tags_wrong_put_fails_though_kept(void **state)
{
    (void)state;
    ferry_track track = track_of(1);
    send_one(OTHER, 0, 0, NULL);
    CHECK(ferry_put(job.f[0], 1, &got, &source, sizeof(got), &track) == 0);
    poll_tag(WANTED);
    expect("f");
    assert_int_equal(entries[0].error, FERRY_ERANGE);
}

/* Goal: FERRY_ANY_TAG polls for all tags, in the order of arrival. */
static void test_tags_any_is_all(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 6; i++)
        send_one(1 + (int32_t)(i % 3), i, 0, NULL);
    poll_tag(9);
    assert_int_equal(entry_count, 0);
    poll_tag(FERRY_ANY_TAG);
    assert_int_equal(entry_count, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(entries[i].word, i);
}

/* Goal: no memory loses nothing and keeps the order. Method: rank 1 polls for a tag while each
 * allocation fails, then with memory. */
static void test_tags_without_memory(void **state)
{
    (void)state;
    ferry *f = job.f[1];
    for (uint64_t i = 0; i < 4; i++)
        send_one(i % 2 == 0 ? OTHER : WANTED, i, DATA_BYTES, NULL);
    fy_progress(job.f[0], true);
    void *free_packets = f->packets.free_items;
    f->packets.free_items = NULL;
    failing_all(true);
    for (int i = 0; i < 10; i++)
        CHECK(ferry_poll_tag(f, WANTED) >= 0);
    failing_all(false);
    f->packets.free_items = free_packets;
    assert_int_equal(f->tags.count, 0);
    poll_tag(WANTED);
    expect("rr");
    job_settle(&job);
    static const uint64_t order[] = {1, 3, 0, 2};
    for (int i = 0; i < 4; i++)
        assert_int_equal(entries[i].word, order[i]);
}

/* The threads of the last test count here. */
typedef struct counts {
    ferry_handler handler;
    int handled[4];
} counts;

static void count_tag(ferry *f, int from, const ferry_message *message)
{
    counts *c = ferry_user_data(f);
    (void)from;
    c->handled[message->tag]++;
}

/* Rank 0 sends synchronously with a tag that rank 1 does not poll for until it has heard the end.
 */
static void sync_or_poll(ferry *f, void *arg)
{
    counts c = {0};
    (void)arg;
    ferry_user_data_set(f, &c);
    CHECK(ferry_handler_register(f, "count", count_tag, &c.handler) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0) {
        ferry_message m = {
            .handler = c.handler, .tag = OTHER, .data = data, .size_bytes = sizeof(data)};
        for (int i = 0; i < 300; i++)
            CHECK(ferry_request_sync(f, 1, &m) == 0);
        m.tag = WANTED;
        CHECK(ferry_request_sync(f, 1, &m) == 0);
    } else {
        while (c.handled[WANTED] == 0)
            CHECK(ferry_poll_tag(f, WANTED) >= 0);
        CHECK(c.handled[OTHER] == 0);
        CHECK(ferry_poll_tag(f, OTHER) == 300);
    }
    CHECK(ferry_barrier(f) == 0);
}

static void test_tags_sync_does_not_wait_for_its_tag(void **state)
{
    (void)state;
    run_ranks(2, 8, 1024, sync_or_poll, NULL);
}

#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, open_two, close_job)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TWO(test_tags_are_found_after_many_others),
        WITH_TWO(test_tags_kept_are_bounded_and_told),
        WITH_TWO(test_tags_of_requests_to_oneself),
        WITH_TWO(test_tags_kept_requests_have_arrived),
        cmocka_unit_test(test_tags_kept_messages_have_arrived),
        WITH_TWO(test_tags_put_is_answered_before_its_handler),
        WITH_TWO(test_tags_put_stays_after_kept_requests),
        WITH_TWO(test_tags_reads_see_kept_puts),
        WITH_TWO(test_tags_of_puts_and_gets),
        WITH_TWO(test_tags_wrong_put_fails_though_kept),
        WITH_TWO(test_tags_any_is_all),
        WITH_TWO(test_tags_without_memory),
        cmocka_unit_test(test_tags_sync_does_not_wait_for_its_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
