/* Ends of objects: how ranks forget objects that are no more, and find those that are on their way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/kinds.h"
#include "core/operation.h"
#include "core/work.h"
#include "object/delivery.h"
#include "object/entry.h"
#include "object/moves.h"
#include "object/object.h"
#include "object/queued.h"
#include "port/port.h"
#include "world.h"

/* Goal: what has ended leaves nothing behind on any rank, wherever it has been and ends, and each
 * message to it has one end. Method: objects make rounds, all ranks send before, during and after
 * the end. */
static void test_the_end_is_forgotten_by_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROTOCOLS; i++) {
        world w;
        world_open(&w, protocols[i]);
        int sent = 0, ended = 0;
        for (int round = 0; round < 100; round++) {
            ferry_object object = create(&w, round % RANKS);
            for (int step = 0; step < round % 7; step++)
                move(&w, object, (round + step) % RANKS, (round + step + 1) % RANKS);
            for (int rank = 0; rank < RANKS; rank++, sent++)
                post(&w, rank, object, w.accounts[rank].count);
            for (int rank = 0; rank < RANKS; rank++, sent++)
                post(&w, rank, object,
                     rank == round / 7 % RANKS ? w.accounts[rank].end : w.accounts[rank].count);
            job_settle(&w.job);
            CHECK(entries(&w) == 0);
            post(&w, (round + 1) % RANKS, object, w.accounts[0].count);
            sent++;
            job_settle(&w.job);
            CHECK(entries(&w) == 0);
        }
        for (int rank = 0; rank < RANKS; rank++) {
            ended += w.accounts[rank].completed + w.accounts[rank].failed;
            CHECK(w.accounts[rank].failed == 0 || w.accounts[rank].last_error == FERRY_ENOENT);
            CHECK(fy_objects_of(w.job.f[rank])->names.count <= 2);
        }
        CHECK(ended == sent);
        world_close(&w);
    }
}

/* Lets all but `silent` handle what they have got. */
static void settle_but(world *w, int silent)
{
    int done;
    do {
        done = 0;
        for (int rank = 0; rank < RANKS; rank++)
            done += rank == silent ? 0 : fy_progress(w->job.f[rank], true);
    } while (done > 0);
}

/* Rank 4 leaves what it has to rank 0, and is asked nothing any more. */
static void bequeath(world *w)
{
    enum { SUCCESSOR = 2 }; /* as leave.c numbers it */
    const fy_frame frame = {.kind = FY_KIND_LEAVE, .word_count = 3, .words = {SUCCESSOR, 4, 0}};
    CHECK(fy_objects_leave(w->job.f[4], 0));
    job_settle(&w->job);
    for (int rank = 0; rank < 4; rank++)
        CHECK(fy_leave_deliver(w->job.f[rank], 4, &frame) == FY_TAKEN);
    job_settle(&w->job);
}

/* Goal: what has ended is not inherited, wherever it was last, whoever inherits, and whether its
 * creator is there or has left. Method: rank 1, where an object has been, tells its successor of it
 * when all others know already that it has ended. */
static void test_successors_forget_what_has_ended(void **state)
{
    static const struct {
        int creator, last, successor;
    } cases[] = {{0, 2, 0}, {0, 0, 0}, {0, 2, 3}, {0, 3, 3}, {1, 2, 3},
                 {1, 3, 3}, {4, 2, 0}, {4, 0, 0}, {4, 2, 3}, {4, 3, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        world_open(&w, "lazy");
        ferry_object object = create(&w, cases[i].creator);
        if (cases[i].creator != 1)
            move(&w, object, cases[i].creator, 1);
        if (cases[i].creator == 4)
            bequeath(&w);
        move(&w, object, 1, cases[i].last);
        CHECK(ferry_object_destroy(w.job.f[cases[i].last], object) == 0);
        settle_but(&w, 1);
        CHECK(fy_objects_leave(w.job.f[1], cases[i].successor));
        settle_but(&w, 1); /* the successor hears of it, and then rank 1 of the end */
        job_settle(&w.job);
        size_t of_leaver = cases[i].creator == 4 ? fy_objects_of(w.job.f[4])->directory.count : 0;
        CHECK(entries(&w) == of_leaver);
        world_close(&w);
    }
}

/* A message with movement number `movement`, as one that has been in flight for long. */
static void post_late(world *w, int rank, int to, ferry_object object, uint32_t movement)
{
    ferry *f = w->job.f[rank];
    const ferry_track track = track_of(&w->accounts[rank]);
    const ferry_message m = {.handler = w->accounts[rank].count};
    fy_envelope envelope = {.object = object, .origin = rank, .movement = movement, .hops = 1};
    CHECK(fy_op_start(f, &track, to, 0, 0, &envelope.op) == 0);
    fy_work_created(f, 1);
    CHECK(fy_message_post(f, to, &envelope, &m) == 0);
    fy_op_submitted(f, envelope.op);
}

/* Goal: a rank that has forgotten an object fails a message which comes for it afterwards, instead
 * of waiting for the object. Method: a message that follows an old place reaches it after the end.
 */
static void test_messages_after_the_end_fail(void **state)
{
    (void)state;
    world w;
    world_open(&w, "lazy");
    ferry_object object = create(&w, 0);
    for (int to = 1; to <= 3; to++)
        move(&w, object, to - 1, to);
    CHECK(ferry_object_destroy(w.job.f[3], object) == 0);
    CHECK(fy_objects_of(w.job.f[3])->directory.count == 1);
    job_settle(&w.job);
    CHECK(entries(&w) == 0);
    for (int to = 1; to <= 3; to++) {
        post_late(&w, 4, to, object, (uint32_t)to * FY_MOVE_STEP);
        job_settle(&w.job);
        CHECK(w.accounts[4].failed == to && w.accounts[4].last_error == FERRY_ENOENT);
        CHECK(entries(&w) == 0);
    }
    world_close(&w);
}

/* Takes an object of rank 0 to rank 1, and from there half the way to rank 2. */
static ferry_object carry_off(world *w, ferry_move_info *info, void **data)
{
    ferry_object object = create(w, 0);
    move(w, object, 0, 1);
    CHECK(ferry_object_uninstall(w->job.f[1], object, 2, info, data) == 0);
    return object;
}

/* As carry_off. A message of rank 0 waits for the object at rank 2. */
static ferry_object strand(world *w, ferry_move_info *info, void **data)
{
    ferry_object object = carry_off(w, info, data);
    post(w, 0, object, w->accounts[0].count);
    job_settle(&w->job);
    CHECK(w->accounts[0].completed + w->accounts[0].failed == 0);
    return object;
}

/* Goal: a message that overtakes its object is handled when that comes, though the rank has asked
 * whether it will; other ranks refuse the object. Method: it is carried by hand. */
static void test_messages_wait_for_what_comes(void **state)
{
    (void)state;
    world w;
    ferry_move_info info;
    void *data;
    world_open(&w, "lazy");
    ferry_object object = strand(&w, &info, &data);
    CHECK(ferry_object_install(w.job.f[3], &info, data, 1) == FERRY_EINVAL);
    CHECK(ferry_object_install(w.job.f[1], &info, data, 1) == FERRY_EINVAL);
    CHECK(ferry_object_install(w.job.f[2], &info, data, 1) == 0);
    job_settle(&w.job);
    CHECK(w.accounts[2].handled == 1 && w.accounts[0].completed == 1);
    CHECK(guess(&w, 0, object) == 2);
    free(info.bytes);
    world_close(&w);
}

static uint32_t carried(world *w)
{
    uint32_t sum = 0;
    for (int rank = 0; rank < RANKS; rank++)
        sum += fy_objects_of(w->job.f[rank])->carried;
    return sum;
}

/* Goal: both ranks between which the program carries an object count it as long as messages may
 * wait for it, and no longer. Method: without a message, and with one. */
static void test_carried_objects_count_when_messages_wait(void **state)
{
    (void)state;
    for (int early = 0; early <= 1; early++) {
        world w;
        ferry_move_info info;
        void *data;
        world_open(&w, "lazy");
        ferry_object object = carry_off(&w, &info, &data);
        job_settle(&w.job);
        CHECK(carried(&w) == 0);
        for (int i = 0; i < early; i++)
            post(&w, 0, object, w.accounts[0].count);
        job_settle(&w.job);
        CHECK(carried(&w) == 2 * (uint32_t)early);
        CHECK(ferry_object_install(w.job.f[2], &info, data, 1) == 0);
        job_settle(&w.job);
        CHECK(carried(&w) == 0 && w.accounts[2].handled == early);
        free(info.bytes);
        world_close(&w);
    }
}

/* Goal: a rank that announces a carried object too late learns where it is: installed, gone on, or
 * ended. Method: no message goes through rank 1 until then. */
static void test_carried_objects_announced_late_are_found(void **state)
{
    (void)state;
    for (int last = 2; last <= 3; last++) {
        world w;
        ferry_move_info info;
        void *data;
        world_open(&w, "lazy");
        ferry_object object = carry_off(&w, &info, &data);
        CHECK(ferry_object_install(w.job.f[2], &info, data, 1) == 0);
        if (last == 3)
            move(&w, object, 2, 3);
        post(&w, 1, object, w.accounts[1].count);
        CHECK(carried(&w) == 1);
        job_settle(&w.job);
        CHECK(carried(&w) == 0 && w.accounts[last].handled == 1);
        CHECK(guess(&w, 1, object) == last);
        CHECK(ferry_object_destroy(w.job.f[last], object) == 0);
        job_settle(&w.job);
        fy_location_send(w.job.f[1], 2, object, FY_PLACE_CARRIED, 2);
        fy_location_send(w.job.f[1], 0, object, FY_PLACE_CARRIED, 2);
        job_settle(&w.job);
        CHECK(carried(&w) == 0 && entries(&w) == 0);
        free(info.bytes);
        world_close(&w);
    }
}

/* Goal: a rank whose notice comes too late does not learn a place that the object has not reached.
 * Method: the program carries the object on from rank 2 to rank 3 when rank 1 announces it. */
static void test_carried_objects_are_not_told_ahead(void **state)
{
    (void)state;
    world w;
    ferry_move_info info[2];
    void *data;
    world_open(&w, "lazy");
    ferry_object object = carry_off(&w, &info[0], &data);
    CHECK(ferry_object_install(w.job.f[2], &info[0], data, 1) == 0);
    CHECK(ferry_object_uninstall(w.job.f[2], object, 3, &info[1], &data) == 0);
    post(&w, 1, object, w.accounts[1].count);
    job_settle(&w.job);
    CHECK(guess(&w, 1, object) == 2);
    CHECK(fy_objects_of(w.job.f[1])->carried == 0 && carried(&w) == 2);
    CHECK(ferry_object_install(w.job.f[3], &info[1], data, 2) == 0);
    job_settle(&w.job);
    CHECK(carried(&w) == 0 && w.accounts[3].handled == 1);
    free(info[0].bytes);
    free(info[1].bytes);
    world_close(&w);
}

/* Goal: messages that wait for an object which a rank has taken into its grave fail, the next ones
 * too, and nobody keeps an entry. Method: rank 2 hears that rank 1 has gone. */
static void test_messages_to_what_a_dead_rank_held_fail(void **state)
{
    (void)state;
    world w;
    ferry_move_info info;
    void *data;
    world_open(&w, "lazy");
    ferry_object object = strand(&w, &info, &data);
    fy_directory_peer_gone(w.job.f[2], 4, true);
    job_settle(&w.job);
    CHECK(w.accounts[0].failed == 0);
    fy_directory_peer_gone(w.job.f[2], 1, true);
    job_settle(&w.job);
    CHECK(w.accounts[0].failed == 1 && w.accounts[0].last_error == FERRY_EPEER);
    const ferry_message m = {.handler = w.accounts[0].count};
    CHECK(ferry_object_send(w.job.f[0], object, &m, NULL) == FERRY_ENOENT);
    CHECK(fy_objects_of(w.job.f[0])->directory.count == 0);
    CHECK(fy_objects_of(w.job.f[2])->directory.count == 0);
    destroy(w.job.f[1], data);
    free(info.bytes);
    world_close(&w);
}

/* Goal: closing destroys an object that has left one rank and is not yet installed on the other.
 * Method: the ranks close while one is in flight; world_close counts who is alive. */
static void test_closing_destroys_objects_in_flight(void **state)
{
    (void)state;
    world w;
    world_open(&w, "lazy");
    ferry_object object = create(&w, 0);
    CHECK(ferry_object_move(w.job.f[0], object, 1) == 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_end_is_forgotten_by_all),
        cmocka_unit_test(test_successors_forget_what_has_ended),
        cmocka_unit_test(test_messages_after_the_end_fail),
        cmocka_unit_test(test_messages_wait_for_what_comes),
        cmocka_unit_test(test_carried_objects_count_when_messages_wait),
        cmocka_unit_test(test_carried_objects_announced_late_are_found),
        cmocka_unit_test(test_carried_objects_are_not_told_ahead),
        cmocka_unit_test(test_messages_to_what_a_dead_rank_held_fail),
        cmocka_unit_test(test_closing_destroys_objects_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
