/* Objects that travel in the frame of their message (src/object/piggyback.c). Ranks are driven by
 * one thread, which says who polls when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "object/delivery.h"
#include "object/moves.h"
#include "object/object.h"
#include "object/wire.h"
#include "ranks.h"
#include "starved.h"

enum { LOG_MAX = 32, FRAMES = 100000, TAG = 5 };

typedef struct account {
    ferry_object_type type, shared;
    ferry_handler go, note;
    ferry_handler request;
    int requests, notes, alive, unpacked, unpack_fails;
    uint64_t log[LOG_MAX]; /* words of the messages that ran here */
} account;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    account *a = ferry_user_data(f);
    (void)object;
    if (a->unpacked++ < a->unpack_fails)
        return NULL;
    void *data = NULL;
    CHECK(posix_memalign(&data, sizeof(uint64_t), sizeof(uint64_t)) == 0);
    a->alive++;
    return memcpy(data, buffer, size_bytes < sizeof(uint64_t) ? size_bytes : sizeof(uint64_t));
}

static void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static void note(account *a, const ferry_message *m)
{
    CHECK(a->notes < LOG_MAX);
    a->log[a->notes++] = m->words[0];
}

/* words: what to note; how often to go on. */
static void on_go(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)data, (void)source;
    note(ferry_user_data(f), m);
    if (m->words[1] == 0)
        return;
    const ferry_message next = {.handler = m->handler,
                                .word_count = 2,
                                .tag = m->tag,
                                .words = {m->words[0] + 1, m->words[1] - 1}};
    if (ferry_object_send(f, object, &next, NULL) == 0)
        CHECK(ferry_object_move(f, object, !ferry_rank(f)) == 0);
}

static void on_note(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source;
    note(ferry_user_data(f), m);
}

static void on_request(ferry *f, int source, const ferry_message *m)
{
    (void)source, (void)m;
    ((account *)ferry_user_data(f))->requests++;
}

static int register_types(ferry *f, account *a)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .flat_bytes = sizeof(uint64_t), .unpack = unpack, .destroy = destroy};
    static const ferry_object_ops shared = {
        .size = sizeof shared, .flat_bytes = sizeof(uint64_t), .flags = FERRY_OBJECT_SHARED};
    int error = ferry_object_type_register(f, &ops, &a->type);
    return error != 0 ? error : ferry_object_type_register(f, &shared, &a->shared);
}

static bool set_up(ferry *f, account *a)
{
    ferry_user_data_set(f, a);
    return ferry_object_handler_register(f, "go", on_go, &a->go) == 0 &&
           ferry_object_handler_register(f, "note", on_note, &a->note) == 0 &&
           ferry_handler_register(f, "request", on_request, &a->request) == 0;
}

static void open_two(test_job *job, account a[2])
{
    memset(a, 0, 2 * sizeof *a);
    job_open(job, 2, 0, 0);
    for (int rank = 0; rank < 2; rank++)
        CHECK(set_up(job->f[rank], &a[rank]) && register_types(job->f[rank], &a[rank]) == 0);
}

static ferry_object create(ferry *f, account *a)
{
    void *data = NULL;
    ferry_object object;
    CHECK(posix_memalign(&data, sizeof(uint64_t), sizeof(uint64_t)) == 0);
    memset(data, 0, sizeof(uint64_t));
    CHECK(ferry_object_create(f, a->type, data, &object) == 0);
    a->alive++;
    return object;
}

static void send_go(ferry *f, const account *a, ferry_object object, uint64_t hops)
{
    const ferry_message m = {.handler = a->go, .word_count = 2, .tag = TAG, .words = {100, hops}};
    CHECK(ferry_object_send(f, object, &m, NULL) == 0);
}

/* Has the object of rank 0 leave for rank 1, which has not polled since. */
static ferry_object send_off(test_job *job, account a[2])
{
    ferry_object object = create(job->f[0], &a[0]);
    send_go(job->f[0], &a[0], object, 1);
    CHECK(ferry_poll(job->f[0]) > 0);
    CHECK(ferry_object_data(job->f[0], object) == NULL);
    return object;
}

/* All work that was made has been finished, on whatever rank. */
static void check_work(ferry *const *f)
{
    CHECK(f[0]->head.work_created + f[0]->work_shipped + f[1]->head.work_created +
              f[1]->work_shipped ==
          f[0]->head.work_finished + f[1]->head.work_finished);
}

/* Goal: such an object goes to and fro, packed or by its address, and each of its messages runs
 * once where it is. Method: one that sends itself a message and moves, each time. */
static void test_piggybacks_go_to_and_fro(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    void *data;
    open_two(&job, a);
    CHECK(ferry_alloc(job.f[0], sizeof(uint64_t), &data) == 0);
    ferry_object objects[2] = {create(job.f[0], &a[0])};
    CHECK(ferry_object_create(job.f[0], a[0].shared, data, &objects[1]) == 0);
    for (int i = 0; i < 2; i++) {
        a[0].notes = a[1].notes = 0;
        send_go(job.f[0], &a[0], objects[i], 7);
        (void)job_settle(&job);
        CHECK(a[0].notes == 4 && a[1].notes == 4);
        for (uint64_t n = 0; n < 4; n++)
            CHECK(a[0].log[n] == 100 + 2 * n && a[1].log[n] == 101 + 2 * n);
        CHECK(ferry_object_data(job.f[1], objects[i]) != NULL);
        CHECK(i == 0 || ferry_object_data(job.f[1], objects[i]) == data);
    }
    CHECK(fy_stats(job.f[1])->objects_in == 8 && fy_stats(job.f[1])->objects_out == 6);
    check_work(job.f);
    for (int i = 0; i < 2; i++)
        CHECK(ferry_object_destroy(job.f[1], objects[i]) == 0);
    (void)job_settle(&job);
    CHECK(a[0].alive + a[1].alive == 0);
    job_close(&job);
}

/* Goal: the object's own message runs before those that came to its new rank before it. Method: one
 * of a third sender, which knows the place already, is handed to the rank as its port would. */
static void test_piggyback_runs_before_what_waited(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_two(&job, a);
    ferry_object object = send_off(&job, a);
    fy_frame frame = {0};
    for (uint32_t i = 0; i < 2; i++) {
        const fy_envelope envelope = {
            .object = object, .origin = 1, .sequence = i, .movement = FY_MOVE_STEP};
        const ferry_message m = {.handler = a[1].note, .word_count = 1, .words = {200 + i}};
        fy_wire_write(&frame, &envelope, &m);
        CHECK(fy_message_frame(job.f[1], 0, &frame) == FY_TAKEN);
    }
    CHECK(a[1].notes == 0);
    (void)job_settle(&job);
    CHECK(a[1].notes == 3 && a[1].log[0] == 101 && a[1].log[1] == 200 && a[1].log[2] == 201);
    job_close(&job);
}

/* Goal: an object whose kind is yet to be registered waits, and nothing behind it does. Method: it
 * is followed by a request; its kind is registered later. */
static void test_piggyback_waits_for_its_type(void **state)
{
    (void)state;
    test_job job;
    account a[2] = {{.notes = 0}};
    job_open(&job, 2, 0, 0);
    CHECK(set_up(job.f[0], &a[0]) && set_up(job.f[1], &a[1]));
    CHECK(register_types(job.f[0], &a[0]) == 0);
    ferry_object object = send_off(&job, a);
    CHECK(ferry_request_send(job.f[0], 1, &(ferry_message){.handler = a[0].request}, NULL) == 0);
    for (int i = 0; i < 10; i++)
        (void)ferry_poll(job.f[1]);
    CHECK(a[1].requests == 1 && a[1].notes == 0);
    CHECK(register_types(job.f[1], &a[1]) == 0);
    (void)job_settle(&job);
    CHECK(a[1].notes == 1 && a[1].log[0] == 101);
    CHECK(ferry_object_data(job.f[1], object) != NULL);
    check_work(job.f);
    job_close(&job);
}

/* Goal: data that cannot be made at once are made later, and the message runs once. Method: unpack
 * fails three times. */
static void test_piggyback_waits_for_memory(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_two(&job, a);
    ferry_object object = send_off(&job, a);
    a[1].unpack_fails = 3;
    for (int i = 0; i < 10; i++)
        (void)ferry_poll(job.f[1]);
    CHECK(a[1].unpacked == 4 && a[1].notes == 1);
    CHECK(ferry_object_data(job.f[1], object) != NULL);
    check_work(job.f);
    CHECK(ferry_object_destroy(job.f[1], object) == 0);
    CHECK(a[1].alive == 0);
    job_close(&job);
}

/* Goal: a poll for another tag runs no message of a piggybacked object. Method: such polls, then
 * one for its tag. */
static void test_piggyback_keeps_to_its_tag(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_two(&job, a);
    (void)send_off(&job, a);
    for (int i = 0; i < 3; i++)
        (void)ferry_poll_tag(job.f[1], TAG + 1);
    CHECK(a[1].notes == 0);
    (void)ferry_poll_tag(job.f[1], TAG);
    CHECK(a[1].notes == 1);
    job_close(&job);
}

static void session(ferry *f[2])
{
    static account a[2];
    memset(a, 0, sizeof a);
    for (int rank = 0; rank < 2; rank++)
        if (!set_up(f[rank], &a[rank]) || register_types(f[rank], &a[rank]) != 0)
            return;
    a[1].unpack_fails = 1;
    void *data = NULL;
    ferry_object object;
    const ferry_message m = {.handler = a[0].go, .word_count = 2, .words = {100, 1}};
    CHECK(posix_memalign(&data, sizeof(uint64_t), sizeof(uint64_t)) == 0);
    if (ferry_object_create(f[0], a[0].type, data, &object) != 0) {
        free(data);
        return;
    }
    a[0].alive++;
    int error = ferry_object_send(f[0], object, &m, NULL);
    CHECK(error == 0 || error == FERRY_ENOMEM);
    settle_both(f);
    bool there = ferry_object_data(f[1], object) != NULL;
    CHECK(there != (ferry_object_data(f[0], object) != NULL));
    CHECK(there ? a[0].notes == 1 && a[1].notes == 1 : a[0].notes <= 2 && a[1].notes == 0);
    CHECK(error != 0 || a[0].notes > 0);
    check_work(f);
    CHECK(ferry_object_destroy(f[there], object) == 0);
    settle_both(f);
    CHECK(a[0].alive + a[1].alive == 0);
}

/* Goal: without memory a piggybacked object is neither lost nor doubled. Method: each allocation of
 * a journey fails in turn, and unpack once. */
static void test_each_allocation_of_piggybacks_may_fail(void **state)
{
    (void)state;
    starve("none", session, 10);
}

/* A piggybacked object as rank 0 would send it. */
static fy_frame make_piggyback(account *a, unsigned char *data, size_t *size_bytes)
{
    const uint32_t head[2] = {a->type.index | 2u << 16, 0};
    const fy_source sources[2] = {{.rank_plus_1 = 1, .expected = 3}, {.rank_plus_1 = 2}};
    const fy_envelope envelope = {
        .object = {1}, .origin = 0, .sequence = 2, .movement = FY_MOVE_STEP};
    const ferry_message m = {.handler = a->note, .word_count = 1};
    fy_frame frame = {0};
    fy_wire_write(&frame, &envelope, &m);
    memcpy(data, head, sizeof head);
    memcpy(data + sizeof head, sources, sizeof sources);
    memset(data + sizeof head + sizeof sources, 7, sizeof(uint64_t));
    *size_bytes = sizeof head + sizeof sources + sizeof(uint64_t);
    frame.kind = FY_KIND_PIGGYBACK;
    return frame;
}

/* Goal: no frame makes a rank read outside it, crash or hang. Method: true piggybacked objects of
 * many objects, some bytes changed at random, to the function that takes them; a sanitizer looks
 * on. */
static void test_spoilt_piggybacks_do_no_harm(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    uint64_t random = 7, whole[8] = {0};
    size_t size_bytes;
    open_two(&job, a);
    fy_frame frame = make_piggyback(&a[0], (unsigned char *)whole, &size_bytes);
    int saved = dup(2);
    CHECK(freopen("/dev/null", "w", stderr) != NULL); /* each frame is a line there */
    for (int i = 0; i < FRAMES; i++) {
        unsigned char *data = malloc(size_bytes);
        CHECK(data != NULL);
        memcpy(data, whole, size_bytes);
        fy_frame now = frame;
        unsigned char *words = (unsigned char *)now.words;
        now.words[0] = 1 + (uint64_t)i % 4096;
        now.data = data;
        now.size_bytes = next_random(&random) % 4 ? size_bytes : next_random(&random) % size_bytes;
        for (uint64_t n = next_random(&random) % 4; n > 0; n--) {
            uint64_t r = next_random(&random);
            data[r % size_bytes] = (unsigned char)(r >> 32);
            if (r >> 40 & 1)
                words[(r >> 16) % sizeof now.words] = (unsigned char)(r >> 48);
            if ((r >> 41) % 8 == 0)
                now.aux = (uint32_t)(r >> 20);
        }
        a[1].notes = 0;
        CHECK(fy_piggyback_frame(job.f[1], 0, &now) == FY_TAKEN);
        free(data);
        if (i % 16 == 0)
            (void)job_settle(&job);
    }
    CHECK(fy_stats(job.f[1])->objects_in > 1000);
    job_close(&job);
    CHECK(dup2(saved, 2) == 2);
    close(saved);
    CHECK(a[1].alive == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_piggybacks_go_to_and_fro),
        cmocka_unit_test(test_piggyback_runs_before_what_waited),
        cmocka_unit_test(test_piggyback_waits_for_its_type),
        cmocka_unit_test(test_piggyback_waits_for_memory),
        cmocka_unit_test(test_piggyback_keeps_to_its_tag),
        cmocka_unit_test(test_each_allocation_of_piggybacks_may_fail),
        cmocka_unit_test(test_spoilt_piggybacks_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
