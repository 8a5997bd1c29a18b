/* Goal: the world in which policies are tested keeps the contract that real ranks keep
 * (contract_ranks.c). Method: objects with tasks on three ranks of the world, under the scheduler
 * that checks the contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "contract.h"
#include "world.h"

static void test_the_world_keeps_the_contract(void **state)
{
    enum { RANKS = 3, OBJECTS = 12 };
    (void)state;
    world *w = world_open(&contract_scheduler, RANKS, "GIVEN=3");
    int sent = 0, arrived = 0, ran = 0;
    for (int i = 0; i < OBJECTS; i++)
        world_add(w, 0, CONTRACT_LOAD);
    for (int round = 0; round < OBJECTS; round++) {
        for (int rank = 0; rank < RANKS; rank++)
            if (world_run(w, rank) != NULL)
                world_end(w, rank);
        world_deliver_all(w);
        for (int rank = 0; rank < RANKS; rank++)
            if (contracts[rank].wake_ns != 0)
                world_wake(w, rank);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        const contract *c = &contracts[rank];
        assert_true(c->wrong == 0 && c->wakes > 0);
        assert_int_equal(c->words_heard, contracts[(rank + RANKS - 1) % RANKS].words_sent);
        sent += c->sent;
        arrived += c->arrived;
        ran += c->ran;
    }
    assert_true(sent > 0 && sent == arrived);
    assert_int_equal(ran, OBJECTS);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_world_keeps_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
