/* Goal: after a quiescence, messages reach an object that lives, although its creator has died, or
 * a rank by which it had come. Method: rank 0 makes an object, which goes to rank 1 and on to
 * rank 2. Rank 0 or 1 dies. Then the others send to it: rank 3 knew nothing of it, and rank 4 had
 * sent to it while it was on rank 1. For the simulator: sim -n 5 --faults die=1@30ms. */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/survive.h"
#include "../support/tracked.h"

enum { HOME, PASSED, HOLDER, STRANGER, KNOWS, RANKS };

typedef struct account {
    ferry_object object;
    ferry_handler onward, message;
    tracked ends;
} account;

/* The message names the rank to which the object goes on. */
static void on_onward(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    (void)data, (void)source;
    CHECK(f, ferry_object_move(f, object, (int)message->words[0]) == 0);
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)object, (void)data, (void)source, (void)message;
    CHECK(f, ferry_rank(f) == HOLDER);
}

/* One phase of the movements. */
static void send_on(ferry *f, account *a, int rank, int to)
{
    if (ferry_rank(f) == rank)
        CHECK(f, tracked_send(f, a->object, a->onward, (uint64_t)to, &a->ends) == 0);
    CHECK(f, survive_quiesce(f) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_object_type type;
    account a = {0};
    (void)argc, (void)argv;
    ops.name = "outlives";
    ops.flat_bytes = 8;
    ferry_user_data_set(f, &a);
    CHECK(f, ferry_ranks(f) == RANKS && survive_deaths(f) == 0);
    CHECK(f, ferry_object_type_register(f, &ops, &type) == 0);
    CHECK(f, ferry_object_handler_register(f, "onward", on_onward, &a.onward) == 0);
    CHECK(f, ferry_object_handler_register(f, "message", on_message, &a.message) == 0);
    if (ferry_rank(f) == HOME)
        CHECK(f, ferry_object_create(f, type, calloc(1, 8), &a.object) == 0 &&
                     ferry_object_move(f, a.object, PASSED) == 0);
    CHECK(f, ferry_broadcast(f, HOME, &a.object, sizeof(a.object)) == 0);
    CHECK(f, survive_quiesce(f) == 0);
    send_on(f, &a, KNOWS, PASSED);
    send_on(f, &a, PASSED, HOLDER);
    ferry_compute(f, 0.06);
    CHECK(f, survive_quiesce(f) == 0);
    CHECK(f, ferry_member_count(f) == RANKS - 1);
    int before = a.ends.completed;
    CHECK(f, tracked_send(f, a.object, a.message, 0, &a.ends) == 0);
    CHECK(f, survive_quiesce(f) == 0);
    CHECK(f, a.ends.completed == before + 1 && a.ends.failed == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
