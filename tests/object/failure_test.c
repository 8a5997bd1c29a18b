/* Objects without memory, and frames that no rank would send. Ranks are driven by one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/peer.h"
#include "core/work.h"
#include "failing.h"
#include "object/delivery.h"
#include "object/entry.h"
#include "object/migration_frame.h"
#include "object/moves.h"
#include "object/wire.h"
#include "ranks.h"
#include "starved.h"

enum { OBJECTS = 3, FRAMES = 200000 };

typedef struct account {
    ferry_object_type type;
    ferry_handler count;
    int handled, alive, ended, wrong, unpacked;
} account;

/* The test's own memory, which never fails: this call is not among those that do. */
static uint64_t *make_data(void)
{
    void *data = NULL;
    CHECK(posix_memalign(&data, sizeof(uint64_t), sizeof(uint64_t)) == 0);
    return memset(data, 0, sizeof(uint64_t));
}

/* Fails every other time. */
static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    account *a = ferry_user_data(f);
    if (a->unpacked++ % 2 == 0)
        return NULL;
    uint64_t *data = make_data();
    a->alive++;
    return memcpy(data, buffer, size_bytes < sizeof *data ? size_bytes : sizeof *data);
}

static void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static void on_count(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    ((account *)ferry_user_data(f))->handled++;
}

static void on_ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    ((account *)arg)->ended++;
    ((account *)arg)->wrong += receipt->error != 0;
}

static bool set_up(ferry *f, account *a)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .flat_bytes = sizeof(uint64_t), .unpack = unpack, .destroy = destroy};
    ferry_user_data_set(f, a);
    return ferry_object_type_register(f, &ops, &a->type) == 0 &&
           ferry_object_handler_register(f, "count", on_count, &a->count) == 0;
}

static int create(ferry *f, account *a, ferry_object *out)
{
    uint64_t *data = make_data();
    int error = ferry_object_create(f, a->type, data, out);
    CHECK(error == 0 || error == FERRY_ENOMEM);
    if (error == 0)
        a->alive++;
    else
        free(data);
    return error;
}

/* Where the object is: on one rank, whatever failed. */
static int home(ferry *f[2], ferry_object object)
{
    bool here[2] = {ferry_object_data(f[0], object) != NULL,
                    ferry_object_data(f[1], object) != NULL};
    CHECK(here[0] != here[1]);
    return here[1];
}

/* Sends from both ranks while the object moves to and fro. Returns how many were accepted. */
static int exercise(ferry *f[2], account a[2], ferry_object object)
{
    static unsigned char data[700];
    int accepted = 0;
    for (int i = 0; i < 6; i++) {
        int rank = i / 2 % 2;
        const ferry_message m = {.handler = a[0].count,
                                 .word_count = 3,
                                 .data = data,
                                 .size_bytes = i % 2 == 0 ? 0 : sizeof data};
        const ferry_track track = {.size = sizeof track,
                                   .completed = on_ended,
                                   .completed_arg = &a[rank],
                                   .failed = on_ended,
                                   .failed_arg = &a[rank]};
        int error = ferry_object_send(f[rank], object, &m, &track);
        CHECK(error == 0 || error == FERRY_ENOMEM);
        accepted += error == 0;
        int from = i % 3 == 0 ? home(f, object) : 2;
        if (from < 2) {
            error = ferry_object_move(f[from], object, !from);
            CHECK(error == 0 || error == FERRY_ENOMEM);
        }
        settle_both(f);
    }
    return accepted;
}

static void exchange(ferry *f[2], account a[2])
{
    for (int i = 0; i < OBJECTS; i++) {
        ferry_object object;
        int before = a[0].handled + a[1].handled;
        if (create(f[i % 2], &a[i % 2], &object) != 0)
            continue;
        bool scheduled =
            i == 2 && ferry_balance_add(f[i % 2], object,
                                        &(ferry_balance_options){sizeof(ferry_balance_options), 1,
                                                                 0, NULL, NULL, 0}) == 0;
        (void)scheduled;
        int accepted = exercise(f, a, object);
        settle_both(f);
        CHECK(a[0].handled + a[1].handled - before == accepted);
        CHECK(ferry_object_destroy(f[home(f, object)], object) == 0);
        settle_both(f);
    }
    CHECK(a[0].ended + a[1].ended == a[0].handled + a[1].handled);
    CHECK((a[0].unpacked + a[1].unpacked) % 2 == 0);
    CHECK(a[0].alive + a[1].alive == 0 && a[0].wrong + a[1].wrong == 0);
    CHECK(f[0]->head.work_created + f[0]->work_shipped + f[1]->head.work_created +
              f[1]->work_shipped ==
          f[0]->head.work_finished + f[1]->head.work_finished);
}

static void session(ferry *f[2])
{
    static account a[2];
    memset(a, 0, sizeof a);
    if (set_up(f[0], &a[0]) && set_up(f[1], &a[1]))
        exchange(f, a);
}

/* Goal: without memory, Ferry's or the program's, nothing is lost, done twice or leaked, and each
 * call says so. Method: a session in which objects are sent to, moved and destroyed, and their data
 * cannot be made at the first attempt, is repeated with the first, second, ...
 * allocation failing once, until a session needs fewer. */
static void test_each_allocation_of_objects_may_fail(void **state)
{
    (void)state;
    starve("none", session, 30);
}

/* Makes a migration frame from an object with a pending queued message, from several ranks. */
static size_t make_migration(ferry *f, account *a, unsigned char *block, size_t size_max)
{
    ferry_object object;
    ferry_move_info info;
    void *data;
    const uint64_t words[5] = {1, 2, 3, 4, 5};
    const ferry_message m = {
        .handler = a->count, .word_count = 2, .data = words, .size_bytes = sizeof words};
    CHECK(create(f, a, &object) == 0);
    CHECK(ferry_object_send(f, object, &m, NULL) == 0);
    const fy_record *record = fy_record_here(f, object);
    size_t size_bytes = fy_migration_bytes(record, sizeof(uint64_t));
    CHECK(size_bytes <= size_max);
    memset(fy_migration_write(record, size_bytes, sizeof(uint64_t), false, block), 7,
           sizeof(uint64_t));
    CHECK(ferry_object_uninstall(f, object, 1, &info, &data) == 0);
    CHECK(info.size_bytes == size_bytes + sizeof(uint64_t)); /* a seal instead of the data */
    destroy(f, data);
    free(info.bytes);
    return size_bytes;
}

/* Changes some bytes, most often to something near, and now and then the length. */
static size_t spoil(uint64_t *random, unsigned char *bytes, size_t size_bytes)
{
    static const unsigned char odd[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, 8};
    for (uint64_t n = 1 + next_random(random) % 4; n > 0 && size_bytes != 0; n--) {
        uint64_t r = next_random(random);
        unsigned char *at = &bytes[(r >> 8) % size_bytes];
        unsigned bit = 1u << (r >> 40) % 8;
        if (r % 3 == 0)
            *at = (unsigned char)(*at ^ bit);
        else
            *at = r % 3 == 1 ? odd[(r >> 40) % sizeof odd] : (unsigned char)(r >> 40);
    }
    return next_random(random) % 4 == 0 ? next_random(random) % (size_bytes + 1) : size_bytes;
}

static fy_frame spoilt_frame(uint64_t *random, uint8_t kind, fy_frame base, unsigned char *data,
                             size_t size_bytes)
{
    base.kind = (uint8_t)kind;
    base.size_bytes = spoil(random, data, size_bytes);
    base.data = data;
    if (next_random(random) % 2 == 0)
        (void)spoil(random, (unsigned char *)base.words, sizeof base.words);
    if (next_random(random) % 4 == 0)
        base.word_count = (uint8_t)(next_random(random) % 5);
    if (next_random(random) % 4 == 0)
        base.aux = (uint32_t)next_random(random);
    return base;
}

/* Goal: no frame makes a rank read outside it, crash or hang. Method: true frames of each kind with
 * bytes changed at random, to the functions that take them; a sanitizer looks on. */
static void test_spoilt_frames_do_no_harm(void **state)
{
    (void)state;
    test_job job;
    account a[2] = {{.handled = 0}};
    unsigned char whole[1024], part[1024];
    uint64_t random = 5;
    job_open(&job, 2, 0, 0);
    CHECK(set_up(job.f[0], &a[0]) && set_up(job.f[1], &a[1]));
    size_t size_bytes = make_migration(job.f[0], &a[0], whole, sizeof whole);
    ferry_object object;
    CHECK(create(job.f[0], &a[0], &object) == 0);
    fy_frame message;
    const fy_envelope envelope = {.object = object, .origin = 1};
    const ferry_message m = {.handler = a[0].count, .word_count = 4};
    fy_wire_write(&message, &envelope, &m);
    const fy_frame news = {.word_count = 2, .words = {object.word, UINT64_C(1) << 32 | 1}};
    int saved = dup(2);
    CHECK(freopen("/dev/null", "w", stderr) != NULL); /* each frame is a line there */
    for (int i = 0; i < FRAMES; i++) {
        memcpy(part, whole, sizeof whole);
        fy_frame frame;
        if (i % 3 == 0) {
            frame = spoilt_frame(&random, FY_KIND_MESSAGE, message, part, 16);
            (void)fy_message_frame(job.f[0], 1, &frame);
        } else if (i % 3 == 1) {
            frame = spoilt_frame(&random, FY_KIND_LOCATION, news, part, 8);
            (void)fy_location_frame(job.f[0], 1, &frame);
        } else {
            frame = spoilt_frame(&random, FY_KIND_ARRIVAL, (fy_frame){0}, part, size_bytes);
            (void)fy_arrival_frame(job.f[1], 0, &frame);
        }
        if (i % 16 == 0)
            job_settle(&job);
    }
    job_settle(&job);
    CHECK(fy_stats(job.f[1])->objects_in > 1);
    job_close(&job);
    CHECK(dup2(saved, 2) == 2);
    close(saved);
    CHECK(a[0].alive + a[1].alive == 0);
}

/* Goal: of several objects in one frame those that are installed before memory ends do not come
 * again. Method: two in one frame; when nothing can be allocated the first would find all it needs,
 * and the data of the second cannot be made. */
static void test_frame_of_several_objects_comes_once(void **state)
{
    (void)state;
    test_job job;
    account a[2] = {{.handled = 0}, {.unpacked = 1}};
    uint64_t block[64] = {0};
    size_t size_bytes = 0;
    ferry_object objects[2];
    job_open(&job, 2, 0, 0);
    CHECK(set_up(job.f[0], &a[0]) && set_up(job.f[1], &a[1]));
    for (int i = 0; i < 2; i++)
        CHECK(create(job.f[1], &a[1], &objects[i]) == 0);
    for (int i = 0; i < 2; i++) /* leaves records that are reused */
        CHECK(ferry_object_destroy(job.f[1], objects[i]) == 0);
    CHECK(fy_work_arrives(job.f[1], 0, 0) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(create(job.f[0], &a[0], &objects[i]) == 0);
        const fy_record *record = fy_record_here(job.f[0], objects[i]);
        size_t bytes = fy_migration_bytes(record, sizeof(uint64_t));
        CHECK(size_bytes + bytes <= sizeof block);
        (void)fy_migration_write(record, bytes, sizeof(uint64_t), false,
                                 (unsigned char *)block + size_bytes);
        size_bytes += bytes;
    }
    const fy_frame frame = {.kind = FY_KIND_ARRIVAL, .data = block, .size_bytes = size_bytes};
    failing_all(true);
    fy_verdict verdict = fy_arrival_frame(job.f[1], 0, &frame);
    failing_all(false);
    CHECK(verdict == FY_LEAVE);
    CHECK(fy_arrival_frame(job.f[1], 0, &frame) == FY_TAKEN);
    (void)job_settle(&job);
    CHECK(ferry_object_data(job.f[1], objects[0]) != NULL);
    CHECK(ferry_object_data(job.f[1], objects[1]) != NULL);
    CHECK(fy_peer_of(job.f[1], 0)->moved_in == 2);
    job_close(&job);
    CHECK(a[0].alive + a[1].alive == 0);
}

/* Goal: a number that a rank has left out is no type there (a collection or blocks that it has not
 * made). Method: a type with a higher number is registered. */
static void test_type_left_out_makes_no_object(void **state)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = sizeof(uint64_t)};
    (void)state;
    test_job job;
    uint64_t *data = make_data(); /* the library frees it with the object */
    ferry_object object;
    job_open(&job, 1, 0, 0);
    CHECK(fy_type_register_as(job.f[0], &ops, 3) == 0);
    CHECK(ferry_object_create(job.f[0], (ferry_object_type){2}, data, &object) == FERRY_EINVAL);
    CHECK(ferry_object_create(job.f[0], (ferry_object_type){3}, data, &object) == 0);
    job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_of_objects_may_fail),
        cmocka_unit_test(test_frame_of_several_objects_comes_once),
        cmocka_unit_test(test_spoilt_frames_do_no_harm),
        cmocka_unit_test(test_type_left_out_makes_no_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
