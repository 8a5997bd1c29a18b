/* Goal: waiting_bytes bounds what handlers start by puts, gets, remote words, transfers and
 * two-sided messages. An operation beyond it is refused whole, with the promised error. All that
 * was accepted arrives, and then more is accepted. Method: one thread drives all ranks, so the
 * target takes nothing while a handler floods it; registered memory goes by frames. Each operation
 * writes at a place of its own, by its number, which shows what has become of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory/state.h"
#include "ranks.h"

enum {
    LIMIT = 8000,
    SIZE = 8 << 20,
    WORD = sizeof(uint64_t),
    LONG = FY_PIECE_BYTES + 1,
    MAIL = 4000,
    FRAME_MAX = 300, /* bytes of a small frame that waits, or of a record */
};

static test_job job;
static ferry_handler on_turn, on_there, on_here;
static unsigned char source[SIZE], target[SIZE];
static unsigned char *heap, *block; /* in that of rank 1 */
static int ran_there[SIZE / WORD], ran_here[SIZE / WORD], completed;

/* Starts number `i`, of `size` bytes. */
typedef int start_fn(ferry *f, int rank, size_t i, const ferry_track *track);

typedef struct operation {
    const char *name;
    start_fn *start;
    size_t size; /* of its place */
    size_t most; /* that one may add to what waits */
    unsigned flags;
} operation;

enum {
    ROOM = 1,    /* refused only where it would wait, not also where there is room */
    TRACKED = 2, /* always: else it waits */
    RUNS = 4,    /* handlers, on both sides */
    MEETS = 8,   /* a receive */
};

static const operation *current;
static ferry_track track;
static bool tracked;
static size_t accepted;

static bool is(unsigned flag)
{
    return (current->flags & flag) != 0;
}

static size_t waiting(const ferry *f)
{
    return f->self.bytes + f->backlog.bytes + f->kept_bytes + f->head.owed_bytes;
}

static int put(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return ferry_put(f, rank, target + i * WORD, source + i * WORD, WORD, t);
}

static int put_long(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return ferry_put(f, rank, target + i * LONG, source + i * LONG, LONG, t);
}

static int get(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return ferry_get(f, rank, target + i * WORD, source + i * WORD, WORD, t);
}

static int get_long(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return ferry_get(f, rank, target + i * LONG, source + i * LONG, LONG, t);
}

/* The first piece is copied at once, when the call is accepted. */
static int put_vector(ferry *f, int rank, size_t i, const ferry_track *t)
{
    size_t at = i * 3 * WORD;
    const ferry_piece pieces[] = {{heap + i * WORD, source + i * WORD, rank == 1 ? WORD : 0},
                                  {target + at, source + at, WORD},
                                  {target + at + WORD, source + at + WORD, 2 * WORD}};
    return ferry_put_vector(f, rank, pieces, 3, t);
}

static int get_vector(ferry *f, int rank, size_t i, const ferry_track *t)
{
    size_t at = i * 2 * WORD;
    const ferry_piece pieces[] = {{target + at, source + at, WORD},
                                  {target + at + WORD, source + at + WORD, WORD}};
    return ferry_get_vector(f, rank, pieces, 2, t);
}

static int strided(ferry *f, int rank, size_t i, const ferry_track *t, bool puts)
{
    const ferry_stride stride = {3, WORD, WORD};
    const ferry_strided what = {target + i * 3 * WORD, source + i * 3 * WORD, WORD, .levels = 1,
                                .stride = &stride};
    return puts ? ferry_put_strided(f, rank, &what, t) : ferry_get_strided(f, rank, &what, t);
}

static int put_strided(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return strided(f, rank, i, t, true);
}

static int get_strided(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return strided(f, rank, i, t, false);
}

/* Between `there` on the other rank and `here`. */
static int run(ferry *f, int rank, void *there, void *here, uint64_t i, const ferry_track *t)
{
    const ferry_memory_call remote = {.handler = on_there, .argument = i};
    const ferry_memory_call local = {.handler = on_here, .argument = i};
    bool puts = here >= (void *)source && here < (void *)(source + SIZE);
    const ferry_transfer what = {
        puts ? there : here, puts ? here : there, WORD, &remote, &local, 0};
    return puts ? ferry_put_run(f, rank, &what, t) : ferry_get_run(f, rank, &what, t);
}

static int put_run(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return run(f, rank, target + i * WORD, source + i * WORD, i, t);
}

static int get_run(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return run(f, rank, source + i * WORD, target + i * WORD, i, t);
}

/* Only the handlers go by frames. */
static int put_run_copied(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return rank != 1 ? FERRY_EAGAIN : run(f, rank, heap + i * WORD, source + i * WORD, i, t);
}

static int get_run_copied(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return rank != 1 ? FERRY_EAGAIN : run(f, rank, heap + i * WORD, target + i * WORD, i, t);
}

static int change(ferry *f, int rank, size_t i, const ferry_track *t)
{
    uint64_t word;
    memcpy(&word, source + i * WORD, WORD);
    const ferry_atomic what = {
        .verb = FERRY_SWAP, .target = (uint64_t *)(void *)(target + i * WORD), .operand = word};
    return ferry_atomic_update(f, rank, &what, NULL, t);
}

static int allocate(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return ferry_remote_alloc(f, rank, 1, &((void **)(void *)target)[i], t);
}

static int send_short(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return ferry_send(f, rank, (int32_t)i, source + i * WORD, WORD, t);
}

static int send_long(ferry *f, int rank, size_t i, const ferry_track *t)
{
    return ferry_send(f, rank, (int32_t)i, source + i * MAIL, MAIL, t);
}

static const operation operations[] = {
    {"put", put, WORD, FRAME_MAX, ROOM},
    {"put", put_long, LONG, 2 * FRAME_MAX + LONG, 0},
    {"get", get, WORD, FRAME_MAX, ROOM | TRACKED},
    {"get", get_long, LONG, 2 * FRAME_MAX, ROOM | TRACKED},
    {"put_vector", put_vector, 3 * WORD, 3 * FRAME_MAX, 0},
    {"get_vector", get_vector, 2 * WORD, 2 * FRAME_MAX, TRACKED},
    {"put_strided", put_strided, 3 * WORD, 4 * FRAME_MAX, 0},
    {"get_strided", get_strided, 3 * WORD, 3 * FRAME_MAX, TRACKED},
    {"put_run", put_run, WORD, 3 * FRAME_MAX, RUNS},
    {"put_run", put_run_copied, WORD, 2 * FRAME_MAX, RUNS},
    {"get_run", get_run, WORD, 2 * FRAME_MAX, RUNS},
    {"get_run", get_run_copied, WORD, 2 * FRAME_MAX, RUNS},
    {"atomic_update", change, WORD, FRAME_MAX, ROOM},
    {"remote_alloc", allocate, WORD, FRAME_MAX, ROOM | TRACKED},
    {"send", send_short, WORD, FRAME_MAX, ROOM | MEETS},
    {"send", send_long, MAIL, MAIL + 3 * FRAME_MAX, MEETS},
};

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    CHECK(receipt->error == 0);
    ++*(int *)arg;
}

static void there(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    CHECK(ferry_rank(f) != 0 && peer == 0 && address != NULL && size_bytes == WORD);
    ran_there[argument]++;
}

static void here(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    CHECK(ferry_rank(f) == 0 && peer != 0 && address != NULL && size_bytes == WORD);
    ran_here[argument]++;
}

/* Whether nothing of number `i` has come. */
static bool is_untouched(size_t i)
{
    static const unsigned char nothing[LONG];
    return memcmp(target + i * current->size, nothing, current->size) == 0 &&
           (heap[i * WORD] == 0 || current->start == get_run_copied) && ran_there[i] == 0;
}

/* Whether it is accepted where there is room, whatever waits. A long message that is not copied is
 * one small frame. */
static bool needs_room_only(void)
{
    return is(ROOM) || (current->start == send_long && tracked);
}

/* Numbers that the flood does not come to. */
static size_t spare(size_t i)
{
    return SIZE / current->size - 1 - i;
}

static void flood(ferry *f, int from, const ferry_message *message)
{
    const ferry_track *t = tracked ? &track : NULL;
    int error = 0;
    (void)from, (void)message;
    while (error == 0) {
        error = current->start(f, 1, accepted, t);
        accepted += error == 0;
        CHECK(accepted < spare(1) && waiting(f) <= LIMIT + current->most);
    }
    const char *text = ferry_error_message(f);
    size_t length = strlen(current->name);
    CHECK(error == FERRY_EAGAIN && waiting(f) > LIMIT && is_untouched(accepted));
    CHECK(strncmp(text, current->name, length) == 0 && text[length] == ':');
    CHECK(strstr(text, "the limit for more of its handlers is 8000 (waiting_bytes") != NULL);
    CHECK(current->start(f, 2, spare(0), t) == (needs_room_only() ? 0 : FERRY_EAGAIN));
}

static void receive(int rank, size_t i, size_t size)
{
    const ferry_track t = {
        .size = sizeof(t), .completed = on_completed, .completed_arg = &ran_there[i]};
    unsigned char *at = target + i * size;
    CHECK(ferry_receive(job.f[rank], 0, (int32_t)i, at, size, &t) == 0);
}

/* Number `i` has come, once. */
static void check_arrival(size_t i)
{
    const unsigned char *at = target + i * current->size;
    if (current->start == allocate) {
        CHECK(((void **)(void *)target)[i] != NULL);
        CHECK(ferry_free(job.f[0], ((void **)(void *)target)[i]) == 0);
        return;
    }
    if (current->start == put_run_copied || current->start == put_vector)
        CHECK(memcmp(heap + i * WORD, source + i * WORD, WORD) == 0);
    if (current->start != put_run_copied && current->start != get_run_copied)
        CHECK(memcmp(at, source + i * current->size, current->size) == 0);
    CHECK(ran_there[i] == (is(RUNS) || is(MEETS)) && ran_here[i] == is(RUNS));
}

static void begin(const operation *what, bool with_track)
{
    memset(target, 0, SIZE);
    memset(heap, 0, SIZE);
    memset(ran_there, 0, sizeof ran_there);
    memset(ran_here, 0, sizeof ran_here);
    accepted = 0;
    completed = 0;
    current = what;
    tracked = with_track;
}

/* Runs a handler on rank 0. */
static void run_handler(ferry_handler handler)
{
    CHECK(ferry_request_send(job.f[0], 0, &(ferry_message){.handler = handler}, NULL) == 0);
    CHECK(ferry_poll(job.f[0]) > 0);
}

/* The same, of one that only one test has. */
static void run_new(const char *name, ferry_request_fn *fn)
{
    ferry_handler handler;
    for (int rank = 0; rank < 3; rank++)
        CHECK(ferry_handler_register(job.f[rank], name, fn, &handler) == 0);
    begin(&operations[0], false);
    run_handler(handler);
}

/* A flood to its refusal; polls; and again. */
static void flood_twice(void)
{
    size_t before = 0;
    for (int round = 0; round < 2; round++) {
        run_handler(on_turn);
        CHECK(accepted > before);
        if (is(MEETS) && !tracked) {
            /* Copies wait for receives, whether their target polls or not. */
            job_settle(&job);
            CHECK((waiting(job.f[0]) > LIMIT) == (current->start == send_long));
        }
        for (size_t i = before; i < accepted && is(MEETS); i++)
            receive(1, i, current->size);
        if (is(MEETS) && needs_room_only())
            receive(2, spare(0), current->size);
        job_settle(&job);
        for (size_t i = before; i < accepted; i++)
            check_arrival(i);
        CHECK(!needs_room_only() || is(RUNS) || !is_untouched(spare(0)));
        CHECK(!tracked || completed == (int)accepted + (needs_room_only() ? round + 1 : 0));
        for (int rank = 0; rank < 3; rank++)
            CHECK(waiting(job.f[rank]) == 0 && job.f[rank]->ops_table.pending == 0);
        before = accepted;
        ran_there[spare(0)] = 0;
        memset(target + spare(0) * current->size, 0, current->size);
    }
}

static int open_job(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        source[i] = (unsigned char)(i * 13 + i / 256) | 1;
    job_open(&job, 3, 8, 1024);
    for (int rank = 0; rank < 3; rank++) {
        ferry *f = job.f[rank];
        CHECK(ferry_handler_register(f, "turn", flood, &on_turn) == 0);
        CHECK(ferry_memory_handler_register(f, "there", there, &on_there) == 0);
        CHECK(ferry_memory_handler_register(f, "here", here, &on_here) == 0);
        CHECK(ferry_memory_register(f, source, SIZE) == 0);
        CHECK(ferry_memory_register(f, target, SIZE) == 0);
    }
    void *blocks[2];
    CHECK(ferry_alloc(job.f[1], SIZE, &blocks[0]) == 0);
    CHECK(ferry_alloc(job.f[1], WORD, &blocks[1]) == 0);
    heap = blocks[0];
    block = blocks[1];
    track = (ferry_track){.size = sizeof(track),
                          .completed = on_completed,
                          .completed_arg = &completed,
                          .failed = on_completed};
    CHECK(MAIL > job.f[0]->info.inline_bytes);
    job.f[0]->options.waiting_bytes = LIMIT;
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    job_close(&job);
    return 0;
}

static void test_floods_of_handlers_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        bool always = (operations[i].flags & TRACKED) != 0;
        for (int with = always; with < 2; with++) {
            begin(&operations[i], with != 0);
            flood_twice();
        }
    }
}

/* An operation that needs no room is done, whatever waits: also where the strides lead from one
 * block of the heap into another. */
static void copy_at_once(ferry *f)
{
    const unsigned char *last = source + SIZE - 4 * WORD;
    const ferry_piece into[] = {{heap, last, WORD}, {heap + SIZE / 2, last + WORD, WORD}};
    const ferry_piece out[] = {{target, heap, WORD}, {target + WORD, heap + SIZE / 2, WORD}};
    const ferry_stride stride = {2, block - heap, WORD};
    const ferry_strided what = {heap, last + 2 * WORD, WORD, .levels = 1, .stride = &stride};
    CHECK(ferry_put_vector(f, 1, into, 2, &track) == 0);
    CHECK(ferry_get_vector(f, 1, out, 2, NULL) == 0);
    CHECK(memcmp(target, last, 2 * WORD) == 0);
    CHECK(ferry_put_strided(f, 1, &what, NULL) == 0);
    CHECK(memcmp(heap, last + 2 * WORD, WORD) == 0 && memcmp(block, last + 3 * WORD, WORD) == 0);
    CHECK(ferry_put(f, 1, heap, source, LONG, NULL) == 0);
    CHECK(ferry_get(f, 1, target, heap, LONG, &track) == 0);
    CHECK(memcmp(target, source, LONG) == 0);
}

static void flood_and_copy(ferry *f, int from, const ferry_message *message)
{
    const ferry_piece piece = {target, source, WORD};
    flood(f, from, message);
    copy_at_once(f);
    /* Calls that handlers may never make fail now too. */
    CHECK(ferry_get_vector(f, 1, &piece, 1, NULL) == FERRY_ESTATE);
    CHECK(ferry_get(f, 1, target, source, WORD, NULL) == FERRY_ESTATE);
}

/* Goal: nothing is refused that is copied at once, and nothing of the main program's. */
static void test_only_what_would_wait_is_refused(void **state)
{
    (void)state;
    run_new("copy", flood_and_copy);
    CHECK(waiting(job.f[0]) > LIMIT / 2);
    CHECK(put_long(job.f[0], 2, 3, &track) == 0);
    CHECK(get_vector(job.f[0], 2, 2, &track) == 0);
    CHECK(get_run(job.f[0], 2, 1, &track) == 0);
    CHECK(send_long(job.f[0], 2, 0, &track) == 0);
    receive(2, 0, MAIL);
    job_settle(&job);
    CHECK(completed == 6);
}

/* The ring is full before more waits than may: what is accepted then is so with all it takes. */
static void send_much(ferry *f, int from, const ferry_message *message)
{
    (void)from, (void)message;
    while (f->backlog.bytes == 0)
        CHECK(put(f, 1, accepted++, NULL) == 0);
    CHECK(ferry_send(f, 1, 0, source, 2 * (size_t)LIMIT, NULL) == 0);
    CHECK(ferry_send(f, 1, 1, source, 2 * (size_t)LIMIT, NULL) == FERRY_EAGAIN);
}

/* Goal: what is larger than the limit is accepted when less waits. */
static void test_one_may_exceed_the_limit(void **state)
{
    (void)state;
    run_new("much", send_much);
    receive(1, 0, 2 * (size_t)LIMIT);
    job_settle(&job);
    CHECK(memcmp(target, source, 2 * (size_t)LIMIT) == 0 && waiting(job.f[0]) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_floods_of_handlers_are_refused, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_only_what_would_wait_is_refused, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_one_may_exceed_the_limit, open_job, close_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
