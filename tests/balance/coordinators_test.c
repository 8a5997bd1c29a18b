/* The decisions of schedulers in which some ranks know of all others (prema.txt 5.4.2;
 * docs/balancing.md), one rule at a time: lists that ranks pass on, and masters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/schedulers.h"
#include "world.h"

/* Goal: an idle rank asks where the object is that is most wanted on it, by the object's priority
 * for this rank, and gets the one there that is best for it. Method: two ranks with two objects
 * each, which want to be on different ranks. */
static void test_multilist_goes_by_the_priority_for_the_asker(void **state)
{
    static const double wants[4][4] = {{1, 1, 5, 2}, {1, 1, 1, 9}, {1, 1, 8, 1}, {1, 1, 2, 4}};
    (void)state;
    for (int order = 0; order < 2; order++) {
        world *w = world_open(&fy_scheduler_multilist, 4, "");
        thing *things[4];
        for (int i = 0; i < 4; i++)
            world_occupy(w, i, 1);
        for (int i = 0; i < 4; i++)
            things[i] = world_add_choosy(w, i / 2, wants[i]);
        world_deliver_all(w);
        int since = w->sent;
        world_run_last(w, order == 0 ? 2 : 3);
        world_run_last(w, order == 0 ? 3 : 2);
        world_deliver_all(w);
        assert_int_equal(world_words(w, since, HEAD_ASK, 2, 1), 1);
        assert_int_equal(world_words(w, since, HEAD_ASK, 3, 0), 1);
        assert_true(things[0]->rank == 0 && things[1]->rank == 3);
        assert_true(things[2]->rank == 2 && things[3]->rank == 1);
        /* The best object for each is now at another place than before. */
        for (int i = 2; i < 4; i++) {
            assert_non_null(world_run(w, i));
            world_run_last(w, i);
        }
        world_deliver_all(w);
        assert_true(things[0]->rank == 2 && things[3]->rank == 3);
        world_close(w);
    }
}

/* Goal: who asks for what is gone gets another, if there is one, else NONE, and asks the next; a
 * rank that has no more says so. Method: requests cross what would have kept them back. */
static void test_multilist_gives_what_there_is(void **state)
{
    static const double wants[2][4] = {{1, 1, 9, 1}, {1, 1, 2, 1}};
    (void)state;
    world *w = world_open(&fy_scheduler_multilist, 4, "");
    for (int i = 0; i < 4; i++)
        world_occupy(w, i, 1);
    thing *first = world_add_choosy(w, 0, wants[0]), *second = world_add_choosy(w, 0, wants[1]);
    world_deliver_all(w);
    world_run_last(w, 2); /* asks for the first, */
    world_end(w, 0);
    assert_ptr_equal(world_run(w, 0), &first->item); /* which runs */
    world_run_last(w, 3);
    int since = w->sent;
    world_deliver_all(w);
    assert_int_equal(second->rank, 2);
    assert_int_equal(world_words(w, since, HEAD_NONE, 0, 3), 1);
    assert_int_equal(world_words(w, since, HEAD_ASK, -1, -1), 0);
    for (int i = 1; i < 4; i++) {
        uint64_t last = UINT64_MAX;
        for (const mail *m = w->mail; m < &w->mail[w->sent]; m++)
            last = m->object == NULL && m->to == i && m->words[0] == HEAD ? m->words[1] : last;
        assert_int_equal(last, 0);
    }
    world_close(w);
}

/* Goal: of its own a rank runs first what is most wanted on it; what nobody wants is to be had all
 * the same; who was told NONE asks another. Method: three ranks; rank 0 has two objects. */
static void test_multilist_runs_its_own_best(void **state)
{
    static const double wants[3][3] = {{1, 1, 1}, {5, 0, 0}, {3, 0, 0}};
    (void)state;
    world *w = world_open(&fy_scheduler_multilist, 3, "");
    for (int i = 0; i < 3; i++)
        world_occupy(w, i, 1);
    thing *things[3];
    for (int i = 1; i < 3; i++)
        things[i] = world_add_choosy(w, 0, wants[3 - i]); /* the better one last */
    world_deliver_all(w);
    world_end(w, 0);
    assert_ptr_equal(world_run(w, 0), &things[2]->item);
    world_run_last(w, 1);
    world_deliver_all(w);
    assert_int_equal(things[1]->rank, 1);
    world_close(w);

    w = world_open(&fy_scheduler_multilist, 3, "");
    for (int i = 0; i < 2; i++) {
        world_occupy(w, i, 1);
        world_add_choosy(w, i, wants[0]);
    }
    world_occupy(w, 2, 1);
    world_deliver_all(w);
    world_run_last(w, 2);
    int first = world_words(w, 0, HEAD_ASK, 2, 0) != 0 ? 0 : 1;
    world_end(w, first);
    assert_non_null(world_run(w, first)); /* what was asked for */
    world_deliver_all(w);
    assert_int_equal(world_words(w, 0, HEAD_NONE, first, 2), 1);
    assert_int_equal(world_moves(w, 0, !first, 2), 1);
    world_close(w);
}

/* Goal: a rank with work fetches what is better by more than a quarter than all that it has, runs
 * that next, and gives it to nobody before; what is hardly better it leaves. Method: three ranks;
 * rank 0 has the better objects, rank 2 would want them as much. */
static void test_multilist_fetches_what_is_better(void **state)
{
    static const double good[3] = {5, 9, 9}, fair[3] = {5, 5, 0}, poor[3] = {1, 4, 0};
    (void)state;
    world *w = world_open(&fy_scheduler_multilist, 3, "");
    for (int i = 0; i < 3; i++)
        world_occupy(w, i, 1);
    thing *own = world_add_choosy(w, 1, poor);
    thing *best = world_add_choosy(w, 0, good);
    world_add_choosy(w, 0, fair);
    world_deliver_all(w);
    assert_int_equal(best->rank, 1); /* which runs its first */
    assert_int_equal(world_moves(w, 0, 0, 1), 1);
    int since = w->sent;
    world_run_last(w, 2);
    world_deliver_all(w);
    assert_int_equal(best->rank, 1);
    assert_int_equal(world_moves(w, since, 1, 2), 1); /* the other one */
    assert_int_equal(own->rank, 2);
    world_end(w, 1);
    assert_ptr_equal(world_run(w, 1), &best->item);
    world_close(w);

    w = world_open(&fy_scheduler_multilist, 3, "");
    for (int i = 0; i < 3; i++)
        world_occupy(w, i, 1);
    world_add_choosy(w, 1, poor);
    world_add_choosy(w, 0, fair);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    world_close(w);
}

/* Goal: the best of however many is given. Method: the best of 440 is neither
 * among the first nor among the last 100. */
static void test_multilist_looks_at_all(void **state)
{
    static const double good[2] = {0, 9}, poor[2] = {9, 1};
    (void)state;
    world *w = world_open(&fy_scheduler_multilist, 2, "");
    world_occupy(w, 0, 1);
    world_occupy(w, 1, 1);
    for (int i = 0; i < 300; i++)
        world_add_choosy(w, 0, poor);
    thing *best = world_add_choosy(w, 0, good);
    for (int i = 0; i < 140; i++)
        world_add_choosy(w, 0, poor);
    world_deliver_all(w);
    world_run_last(w, 1);
    world_deliver_all(w);
    assert_int_equal(best->rank, 1);
    world_close(w);
}

/* Goal: ranks that could get as much from several do not all ask the same. Method: 8 of 16 ranks
 * have an object too many, the others become idle. */
static void test_multilist_asks_here_and_there(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_multilist, 16, "");
    for (int i = 0; i < 16; i++)
        world_occupy(w, i, 1);
    for (int i = 0; i < 8; i++)
        world_add(w, i, 1);
    world_deliver_all(w);
    for (int i = 8; i < 16; i++)
        world_run_last(w, i);
    int asked = 0;
    for (int i = 0; i < 8; i++)
        asked += world_words(w, 0, HEAD_ASK, -1, i) != 0;
    assert_int_equal(world_words(w, 0, HEAD_ASK, -1, -1), 8);
    assert_in_range(asked, 3, 8);
    world_close(w);
}

/* Goal: what waits anywhere goes to the root, unless DISTRIBUTED=1; a worker gets CHUNK of it for
 * each request. Method: rank 2 has objects; then rank 1 asks; then there are none left, and a
 * request waits for more. */
static void test_master_collects_and_hands_out(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_master, 4, "CHUNK=3");
    world_occupy(w, 0, 1);
    for (int i = 0; i < 5; i++)
        world_add(w, 2, 1);
    assert_int_equal(world_moves(w, 0, 2, 0), 4);
    world_deliver_all(w);
    assert_null(world_run(w, 1));
    assert_int_equal(world_words(w, 0, CHUNK_ASK, 1, 0), 1);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 1), 3);
    assert_null(world_run(w, 3));
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 3), 1);
    assert_non_null(world_run(w, 3));
    world_run_last(w, 3);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 3), 1);
    world_add(w, 0, 1);
    assert_int_equal(world_moves(w, 0, 0, 3), 2);
    world_close(w);

    w = world_open(&fy_scheduler_master, 4, "DISTRIBUTED=1");
    for (int i = 0; i < 5; i++)
        world_add(w, 2, 1);
    assert_int_equal(w->sent, 0);
    world_close(w);
}

/* Goal: with FACTORING chunks are a share of half of what is left, so they shrink, down to CHUNK.
 * Method: 4 ranks, 64 objects at the root, which runs another. */
static void test_master_factors(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_master, 4, "FACTORING=1 CHUNK=2");
    world_occupy(w, 0, 65);
    int chunk = 0, left = 64;
    for (int turn = 0; left > 0; turn++) {
        int worker = 1 + turn % 3, since = w->sent;
        while (world_run(w, worker) != NULL)
            world_end(w, worker);
        world_deliver_all(w);
        int got = world_moves(w, since, 0, worker), share = left / 8 > 2 ? left / 8 : 2;
        assert_int_equal(got, share < left ? share : left);
        assert_true(turn == 0 || got <= chunk);
        chunk = got;
        left -= got;
    }
    world_close(w);
}

/* Goal: with GROUP a worker asks the master of its group, which asks its own, up to the root, and
 * each gets work. Method: 8 ranks in groups of 2; only the root has any. */
static void test_master_has_masters(void **state)
{
    static const int parents[8] = {-1, 0, 0, 2, 0, 4, 4, 6};
    (void)state;
    world *w = world_open(&fy_scheduler_master, 8, "GROUP=2");
    world_occupy(w, 0, 30);
    for (int i = 7; i > 0; i--)
        assert_null(world_run(w, i));
    world_deliver_all(w);
    for (int i = 1; i < 8; i++) {
        assert_true(world_words(w, 0, CHUNK_ASK, i, parents[i]) > 0);
        assert_int_equal(world_words(w, 0, CHUNK_ASK, i, -1),
                         world_words(w, 0, CHUNK_ASK, i, parents[i]));
        assert_non_null(world_run(w, i));
    }
    world_close(w);
}

/* Goal: a master without objects passes on what its workers ask for, and objects go to the workers,
 * not to the master, which may run a task for long. Ranks send what waits to the root, not to their
 * master. Method: 8 ranks in groups of 4: rank 4 is the master of 5 to 7, and runs a task. */
static void test_master_passes_requests_on(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_master, 8, "GROUP=4");
    world_occupy(w, 0, 40);
    world_occupy(w, 4, 1);
    for (int i = 5; i < 8; i++)
        assert_null(world_run(w, i));
    world_deliver_all(w);
    for (int i = 5; i < 8; i++) {
        assert_int_equal(world_words(w, 0, CHUNK_ASK, i, 4), 1);
        assert_int_equal(world_moves(w, 0, 0, i), 1);
    }
    assert_int_equal(world_words(w, 0, CHUNK_ASK, 4, 0), 3);
    assert_int_equal(world_moves(w, 0, 0, 4), 0);
    assert_non_null(world_run(w, 5));
    world_add(w, 5, 1);
    assert_int_equal(world_moves(w, 0, 5, 0), 1);
    const uint64_t nobody[FERRY_SCHEDULER_WORDS] = {CHUNK_ASK, 8};
    w->policy->message(&w->of[0], w->of[0].state, 5, nobody);
    assert_int_equal(world_words(w, 0, CHUNK_ASK, 4, 0), 3);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multilist_goes_by_the_priority_for_the_asker),
        cmocka_unit_test(test_multilist_gives_what_there_is),
        cmocka_unit_test(test_multilist_runs_its_own_best),
        cmocka_unit_test(test_multilist_fetches_what_is_better),
        cmocka_unit_test(test_multilist_looks_at_all),
        cmocka_unit_test(test_multilist_asks_here_and_there),
        cmocka_unit_test(test_master_collects_and_hands_out),
        cmocka_unit_test(test_master_factors),
        cmocka_unit_test(test_master_has_masters),
        cmocka_unit_test(test_master_passes_requests_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
