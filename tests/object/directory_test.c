/* Directory protocols, and how objects that are no more are forgotten. Several ranks are driven by
 * one thread, so that each step is complete before the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "object/ends.h"
#include "object/protocol.h"
#include "ranks.h"

enum { RANKS = 5 };

typedef struct account {
    ferry_object_type type;
    ferry_handler count, end;
    int handled, alive, completed, failed, last_error;
    int disordered; /* messages that came out of their order */
} account;

/* The built-in protocols, and those in shared objects. */
static const char *const protocols[] = {"lazy", "home", "eager", DIRECTORY_THESIS,
                                        DIRECTORY_GOSSIP};
enum { PROTOCOLS = sizeof protocols / sizeof *protocols };

typedef struct world {
    test_job job;
    account accounts[RANKS];
} world;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    ((account *)ferry_user_data(f))->alive++;
    return memcpy(malloc(size_bytes), buffer, size_bytes);
}

static void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static void on_count(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    uint64_t *next = data; /* number due of each rank, where numbers are given */
    (void)object;
    a->handled++;
    a->disordered += m->word_count == 1 && next[source]++ != m->words[0];
}

static void on_end(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)data, (void)source, (void)m;
    CHECK(ferry_object_destroy(f, object) == 0);
}

static const ferry_object_ops ops = {.size = sizeof ops,
                                     .flat_bytes = RANKS * sizeof(uint64_t),
                                     .unpack = unpack,
                                     .destroy = destroy};

static void world_open(world *w, const char *protocol)
{
    *w = (world){.accounts = {{.handled = 0}}};
    CHECK(setenv("FERRY_DIRECTORY", protocol, 1) == 0);
    job_open(&w->job, RANKS, 0, 0);
    for (int rank = 0; rank < RANKS; rank++) {
        ferry *f = w->job.f[rank];
        account *a = &w->accounts[rank];
        ferry_user_data_set(f, a);
        CHECK(ferry_object_type_register(f, &ops, &a->type) == 0);
        CHECK(ferry_object_handler_register(f, "count", on_count, &a->count) == 0);
        CHECK(ferry_object_handler_register(f, "end", on_end, &a->end) == 0);
    }
}

static void world_close(world *w)
{
    int alive = 0;
    job_close(&w->job);
    for (int rank = 0; rank < RANKS; rank++)
        alive += w->accounts[rank].alive;
    CHECK(alive == 0);
}

static ferry_object create(world *w, int rank)
{
    ferry_object object;
    uint64_t *data = calloc(RANKS, sizeof *data);
    w->accounts[rank].alive++;
    CHECK(ferry_object_create(w->job.f[rank], w->accounts[rank].type, data, &object) == 0);
    return object;
}

static void move(world *w, ferry_object object, int from, int to)
{
    CHECK(ferry_object_move(w->job.f[from], object, to) == 0);
    job_settle(&w->job);
}

static int guess(world *w, int rank, ferry_object object)
{
    int place = -1;
    CHECK(ferry_object_locate(w->job.f[rank], object, &place) == 0);
    return place;
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((account *)arg)->completed++;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    ((account *)arg)->failed++;
    ((account *)arg)->last_error = receipt->error;
}

static ferry_track track_of(account *a)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .completed = on_completed,
                         .completed_arg = a,
                         .failed = on_failed,
                         .failed_arg = a};
}

static void post(world *w, int rank, ferry_object object, ferry_handler handler)
{
    const ferry_track track = track_of(&w->accounts[rank]);
    const ferry_message m = {.handler = handler};
    CHECK(ferry_object_send(w->job.f[rank], object, &m, &track) == 0);
}

static uint64_t forwards(world *w)
{
    uint64_t sum = 0;
    for (int rank = 0; rank < RANKS; rank++)
        sum += fy_stats(w->job.f[rank])->messages_forwarded;
    return sum;
}

static size_t entries(world *w)
{
    size_t sum = 0;
    for (int rank = 0; rank < RANKS; rank++)
        sum += fy_objects_of(w->job.f[rank])->directory.count;
    return sum;
}

/* Goal: who knows what after three moves, and how many forwards a first message takes, under each
 * protocol. Method: an object of rank 0 goes to 1, 2 and 3; then ranks 0 and 4 send. */
static void test_each_protocol_tells_whom_it_should(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int creator, first, unregistered; /* guesses of rank 0, rank 1, rank 4 */
        uint64_t from_creator, from_unregistered;
    } cases[] = {{"lazy", 1, 2, 0, 2, 1},
                 {"home", 3, 2, 0, 0, 1},
                 {"eager", 3, 3, 3, 0, 0},
                 {DIRECTORY_THESIS, 1, 2, 0, 2, 1},
                 {DIRECTORY_GOSSIP, 3, 2, 0, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        world_open(&w, cases[i].name);
        ferry_object object = create(&w, 0);
        for (int to = 1; to <= 3; to++)
            move(&w, object, to - 1, to);
        CHECK(guess(&w, 0, object) == cases[i].creator);
        CHECK(guess(&w, 1, object) == cases[i].first);
        CHECK(guess(&w, 4, object) == cases[i].unregistered);
        post(&w, 0, object, w.accounts[0].count);
        job_settle(&w.job);
        CHECK(forwards(&w) == cases[i].from_creator);
        post(&w, 4, object, w.accounts[4].count);
        job_settle(&w.job);
        CHECK(forwards(&w) == cases[i].from_creator + cases[i].from_unregistered);
        CHECK(guess(&w, 0, object) == 3 && guess(&w, 4, object) == 3);
        CHECK(w.accounts[3].handled == 2);
        world_close(&w);
    }
}

/* Goal: under each protocol every message is handled once and in order, with a bounded number of
 * forwards, wherever its object has gone. Method: objects move and messages are sent by dice, and
 * all frames are taken now and then only. */
static void test_each_protocol_conforms(void **state)
{
    enum { OBJECTS = 4, STEPS = 2000 };
    (void)state;
    for (size_t i = 0; i < PROTOCOLS; i++) {
        world w;
        world_open(&w, protocols[i]);
        ferry_object objects[OBJECTS];
        int at[OBJECTS], moves = 0, sent = 0, handled = 0, disordered = 0;
        uint64_t numbers[OBJECTS][RANKS] = {{0}}, random = 7 + i;
        for (int o = 0; o < OBJECTS; o++)
            objects[o] = create(&w, at[o] = o);
        for (int step = 0; step < STEPS; step++) {
            int o = (int)(next_random(&random) % OBJECTS);
            int rank = (int)(next_random(&random) % RANKS);
            if (next_random(&random) % 4 == 0 && rank != at[o]) {
                move(&w, objects[o], at[o], rank);
                at[o] = rank;
                moves++;
                continue;
            }
            const ferry_message m = {
                .handler = w.accounts[rank].count, .word_count = 1, .words = {numbers[o][rank]++}};
            CHECK(ferry_object_send(w.job.f[rank], objects[o], &m, NULL) == 0);
            sent++;
        }
        job_settle(&w.job);
        for (int rank = 0; rank < RANKS; rank++) {
            handled += w.accounts[rank].handled;
            disordered += w.accounts[rank].disordered;
        }
        CHECK(handled == sent && disordered == 0 && moves > 0);
        CHECK(forwards(&w) <= (uint64_t)sent * RANKS);
        world_close(&w);
    }
}

/* Goal: lazy tells the creator after more than one forward, the thesis's protocol does not. Method:
 * rank 4 sends to an object that has moved from rank 0 to 3; then rank 0 is asked for its guess. */
static void test_only_lazy_tells_the_creator(void **state)
{
    static const struct {
        const char *name;
        int creator;
    } cases[] = {{"lazy", 3}, {DIRECTORY_THESIS, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        world_open(&w, cases[i].name);
        ferry_object object = create(&w, 0);
        for (int to = 1; to <= 3; to++)
            move(&w, object, to - 1, to);
        post(&w, 4, object, w.accounts[4].count);
        job_settle(&w.job);
        CHECK(forwards(&w) == 3 && guess(&w, 4, object) == 3);
        CHECK(guess(&w, 0, object) == cases[i].creator);
        world_close(&w);
    }
}

/* Goal: a rank that forwards tells the one before it what it knows, unless the object may not be
 * there yet. Method: rank 2 learns where the object is; then a message of rank 0 goes by 1 and 2.
 */
static void test_forwarders_shorten_the_way(void **state)
{
    (void)state;
    world w;
    world_open(&w, "lazy");
    ferry_object object = create(&w, 0);
    for (int to = 1; to <= 4; to++)
        move(&w, object, to - 1, to);
    post(&w, 2, object, w.accounts[2].count);
    job_settle(&w.job);
    CHECK(guess(&w, 2, object) == 4 && guess(&w, 1, object) == 2);
    post(&w, 0, object, w.accounts[0].count);
    job_settle(&w.job);
    CHECK(guess(&w, 1, object) == 4);
    world_close(&w);
}

/* Goal: a place that is older than what is known changes nothing. Method: an old place is told
 * again after the object has moved on. */
static void test_stale_locations_are_dropped(void **state)
{
    (void)state;
    world w;
    world_open(&w, "home");
    ferry_object object = create(&w, 0);
    move(&w, object, 0, 1);
    move(&w, object, 1, 2);
    fy_location_send(w.job.f[1], 0, object, 1, 1);
    job_settle(&w.job);
    CHECK(guess(&w, 0, object) == 2);
    world_close(&w);
}

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
        post_late(&w, 4, to, object, (uint32_t)to);
        job_settle(&w.job);
        CHECK(w.accounts[4].failed == to && w.accounts[4].last_error == FERRY_ENOENT);
        CHECK(entries(&w) == 0);
    }
    world_close(&w);
}

/* Takes an object of rank 0 to rank 1, and from there half the way to rank 2, where a message of
 * rank 0 waits for it. */
static ferry_object strand(world *w, ferry_move_info *info, void **data)
{
    ferry_object object = create(w, 0);
    move(w, object, 0, 1);
    CHECK(ferry_object_uninstall(w->job.f[1], object, 2, info, data) == 0);
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
        sum += *fy_carried_of(w->job.f[rank]);
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
        ferry_object object = create(&w, 0);
        move(&w, object, 0, 1);
        CHECK(ferry_object_uninstall(w.job.f[1], object, 2, &info, &data) == 0);
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
        ferry_object object = create(&w, 0);
        move(&w, object, 0, 1);
        CHECK(ferry_object_uninstall(w.job.f[1], object, 2, &info, &data) == 0);
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
    ferry_object object = create(&w, 0);
    move(&w, object, 0, 1);
    CHECK(ferry_object_uninstall(w.job.f[1], object, 2, &info[0], &data) == 0);
    CHECK(ferry_object_install(w.job.f[2], &info[0], data, 1) == 0);
    CHECK(ferry_object_uninstall(w.job.f[2], object, 3, &info[1], &data) == 0);
    post(&w, 1, object, w.accounts[1].count);
    job_settle(&w.job);
    CHECK(guess(&w, 1, object) == 2);
    CHECK(*fy_carried_of(w.job.f[1]) == 0 && carried(&w) == 2);
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
    fy_directory_peer_gone(w.job.f[2], 4);
    job_settle(&w.job);
    CHECK(w.accounts[0].failed == 0);
    fy_directory_peer_gone(w.job.f[2], 1);
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

/* Goal: places that no rank would send change nothing. */
static void test_malformed_locations_are_dropped(void **state)
{
    (void)state;
    world w;
    world_open(&w, "eager");
    ferry_object object = create(&w, 0);
    const fy_source nobody = {.rank_plus_1 = RANKS + 1};
    const uint64_t words[][2] = {{0, 0},
                                 {object.word, UINT64_C(5) << 32 | 1},
                                 {object.word, (uint64_t)(uint32_t)-4 << 32},
                                 {UINT64_MAX, UINT64_C(1) << 32 | 1},
                                 {(uint64_t)1 << 44 | 1, (uint64_t)(uint32_t)FY_PLACE_ASK << 32}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const fy_frame frame = {
            .kind = FY_KIND_LOCATION, .word_count = 2, .words = {words[i][0], words[i][1]}};
        CHECK(fy_location_frame(w.job.f[0], 1, &frame) == FY_TAKEN);
    }
    move(&w, object, 0, 1);
    fy_frame frame = {.kind = FY_KIND_LOCATION,
                      .word_count = 2,
                      .words = {object.word, (uint64_t)(uint32_t)FY_PLACE_NONE << 32},
                      .data = &nobody,
                      .size_bytes = sizeof nobody};
    CHECK(fy_location_frame(w.job.f[0], 1, &frame) == FY_TAKEN);
    frame.size_bytes = 3;
    CHECK(fy_location_frame(w.job.f[0], 1, &frame) == FY_TAKEN);
    CHECK(guess(&w, 0, object) == 1);
    world_close(&w);
}

/* Looks of rank 2 for frames, through a table of its port with a `poll` that counts them. */
static int looks;

static int count_look(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    looks++;
    return port->ops->transport.poll(port, lane, budget, deliver, context);
}

/* How often a rank looks in a wait in which nothing comes. */
static int looks_while_waiting(ferry *f)
{
    const fy_port_ops *const ops_before = f->ops;
    fy_port_ops counting = *ops_before;
    counting.transport.poll = count_look;
    looks = 0;
    f->ops = &counting;
    CHECK(ferry_wait(f, 50 * 1000 * 1000) == 0);
    f->ops = ops_before;
    return looks;
}

/* Goal: an object whose type a rank has not registered yet waits there, with its messages. One that
 * still waits when all close is dropped. The rank sleeps meanwhile, and takes in others. Method:
 * two objects of a second type, which rank 0 alone has at first, go to ranks 1 and 2. Rank 1
 * registers it later, rank 2 never; there an object of the first type comes after it. */
static void test_objects_wait_for_their_type(void **state)
{
    (void)state;
    world w;
    ferry_object_type first, second;
    ferry_object objects[2];
    world_open(&w, "lazy");
    ferry *f = w.job.f[0];
    CHECK(ferry_object_type_register(f, &ops, &second) == 0);
    first = w.accounts[0].type;
    w.accounts[0].type = second;
    for (int i = 0; i < 2; i++) {
        objects[i] = create(&w, 0);
        CHECK(ferry_object_move(f, objects[i], i + 1) == 0);
        post(&w, 0, objects[i], w.accounts[0].count);
    }
    for (int turn = 0; turn < 10 * RANKS; turn++)
        fy_progress(w.job.f[turn % RANKS], true);
    CHECK(w.accounts[1].alive == 0 && w.accounts[1].handled == 0);
    /* A few rounds before it sleeps; it was tens of thousands. */
    CHECK(looks_while_waiting(w.job.f[2]) < 500);
    w.accounts[0].type = first;
    ferry_object known = create(&w, 0);
    CHECK(ferry_object_move(f, known, 2) == 0);
    while (w.accounts[2].alive == 0)
        for (int rank = 0; rank < RANKS; rank++)
            fy_progress(w.job.f[rank], true);
    CHECK(ferry_object_type_register(w.job.f[1], &ops, &second) == 0);
    while (w.accounts[1].handled == 0)
        for (int rank = 0; rank < RANKS; rank++)
            fy_progress(w.job.f[rank], true);
    CHECK(first.index != second.index && w.accounts[1].alive == 1 && w.accounts[2].alive == 1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_protocol_tells_whom_it_should),
        cmocka_unit_test(test_each_protocol_conforms),
        cmocka_unit_test(test_only_lazy_tells_the_creator),
        cmocka_unit_test(test_forwarders_shorten_the_way),
        cmocka_unit_test(test_stale_locations_are_dropped),
        cmocka_unit_test(test_objects_wait_for_their_type),
        cmocka_unit_test(test_the_end_is_forgotten_by_all),
        cmocka_unit_test(test_successors_forget_what_has_ended),
        cmocka_unit_test(test_messages_after_the_end_fail),
        cmocka_unit_test(test_messages_wait_for_what_comes),
        cmocka_unit_test(test_carried_objects_count_when_messages_wait),
        cmocka_unit_test(test_carried_objects_announced_late_are_found),
        cmocka_unit_test(test_carried_objects_are_not_told_ahead),
        cmocka_unit_test(test_messages_to_what_a_dead_rank_held_fail),
        cmocka_unit_test(test_closing_destroys_objects_in_flight),
        cmocka_unit_test(test_malformed_locations_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
