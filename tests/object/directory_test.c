/* Directory protocols: which ranks learn where an object is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "object/entry.h"
#include "object/kinds.h"
#include "object/protocol.h"
#include "world.h"

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
    const fy_port_ops *const ops_before = f->head.ops;
    fy_port_ops counting = *ops_before;
    counting.transport.poll = count_look;
    looks = 0;
    f->head.ops = &counting;
    CHECK(ferry_wait(f, 50 * 1000 * 1000) == 0);
    f->head.ops = ops_before;
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
        cmocka_unit_test(test_malformed_locations_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
