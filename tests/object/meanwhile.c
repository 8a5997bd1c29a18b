/* Goal: an object that is on its way when ranks die is neither lost nor waited for in vain. Method:
 * rank 0 makes an object, which goes to another rank. From there it goes to rank 2, as the argument
 * says. Rank 3 dies at 30 ms.
 *
 *      lost       rank 1 carries it for rank 2; rank 0 sends to it; rank 1 dies: the message fails
 *      after      the same, but rank 2 sends, and only after the death
 *      left       the same, but rank 1 leaves: rank 2 installs it, and handles the message
 *      later      the same, but rank 0 dies: rank 2 installs it, and handles the message
 *      installed  rank 3 carries it for rank 2, which installs it after the death: all reach it
 *      unknown    rank 3 sends it to rank 2, which registers its type after the death: all reach it
 *      ended      rank 3 has made it; after the death rank 1 carries it for rank 2, where it ends;
 *                 rank 1 does not know, and sends to it: the message fails
 *
 * For the simulator: sim -n 5 --faults die=3@30ms,die=1@100ms meanwhile lost. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/survive.h"
#include "../support/tracked.h"

enum { HOME, CARRIER, TARGET, DYING };

typedef struct account {
    ferry_object_type type;
    ferry_object object;
    ferry_handler message;
    ferry_move_info info;
    void *data;
    tracked ends;
    int handled;
} account;

/* One object for all ranks, which the simulator has in one process. */
static account shared;

/* With a word that is not 0 the object ends. */
static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)data, (void)source;
    ((account *)ferry_user_data(f))->handled++;
    CHECK(f, message->words[0] == 0 || ferry_object_destroy(f, object) == 0);
}

static void wait_until(ferry *f, uint64_t ns)
{
    while (ferry_now(f) < ns)
        CHECK(f, ferry_wait(f, ns - ferry_now(f)) >= 0);
}

static void register_type(ferry *f, account *a)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "meanwhile";
    ops.flat_bytes = 8;
    CHECK(f, ferry_object_type_register(f, &ops, &a->type) == 0);
}

static void install(ferry *f, int source)
{
    CHECK(f, ferry_object_install(f, &shared.info, shared.data, source) == 0);
}

/* Rank 1 carries the object, and `sender` sends it one message. */
static void carry_on(ferry *f, account *a, int sender, bool lost, bool left)
{
    wait_until(f, 60000000);
    CHECK(f, survive_quiesce(f) == 0);
    if (ferry_rank(f) == sender)
        CHECK(f, tracked_send(f, shared.object, a->message, 0, &a->ends) == 0);
    if (ferry_rank(f) == CARRIER && left) {
        wait_until(f, 100000000);
        CHECK(f, ferry_leave(f) == 0);
        return;
    }
    wait_until(f, 160000000);
    if (ferry_rank(f) == TARGET && !lost)
        install(f, CARRIER);
    CHECK(f, survive_quiesce(f) == 0);
    CHECK(f, ferry_rank(f) != sender || (a->ends.failed == lost && a->ends.completed == !lost));
    CHECK(f, ferry_rank(f) != TARGET || a->handled == (lost ? 0 : 1));
}

/* The object comes from a rank that is dead by then, and all send to it. */
static void come_late(ferry *f, account *a, bool unknown)
{
    wait_until(f, 45000000);
    if (ferry_rank(f) == TARGET && unknown)
        register_type(f, a);
    else if (ferry_rank(f) == TARGET)
        install(f, DYING);
    CHECK(f, survive_quiesce(f) == 0);
    CHECK(f, survive_quiesce(f) == 0);
    CHECK(f, tracked_send(f, shared.object, a->message, 0, &a->ends) == 0);
    CHECK(f, survive_quiesce(f) == 0);
    CHECK(f, a->ends.completed == 1 && a->ends.failed == 0);
}

/* Rank 4 stands in for rank 3 and knows that the object has ended. Rank 1 polls no more before it
 * sends, so it tells rank 2 that the object is to come. */
static void end_there(ferry *f, account *a)
{
    wait_until(f, 45000000);
    CHECK(f, survive_quiesce(f) == 0);
    if (ferry_rank(f) == CARRIER)
        CHECK(f, ferry_object_uninstall(f, shared.object, TARGET, &shared.info, &shared.data) == 0);
    wait_until(f, 50000000);
    if (ferry_rank(f) == TARGET)
        install(f, CARRIER);
    wait_until(f, 60000000);
    if (ferry_rank(f) == TARGET)
        CHECK(f, tracked_send(f, shared.object, a->message, 1, &a->ends) == 0);
    if (ferry_rank(f) == CARRIER) {
        ferry_compute(f, 0.02);
        CHECK(f, tracked_send(f, shared.object, a->message, 0, &a->ends) == 0);
    }
    wait_until(f, 100000000);
    CHECK(f, survive_quiesce(f) == 0);
    CHECK(f, ferry_rank(f) != CARRIER || (a->ends.failed == 1 && a->ends.completed == 0));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static account accounts[8];
    int me = ferry_rank(f);
    account *a = &accounts[me];
    CHECK(f, argc == 2 && ferry_ranks(f) == 5);
    bool unknown = strcmp(argv[1], "unknown") == 0, after = strcmp(argv[1], "after") == 0;
    bool ended = strcmp(argv[1], "ended") == 0;
    bool late = unknown || strcmp(argv[1], "installed") == 0;
    int carrier = late ? DYING : CARRIER;
    ferry_user_data_set(f, a);
    CHECK(f, survive_deaths(f) == 0);
    CHECK(f, ferry_object_handler_register(f, "message", on_message, &a->message) == 0);
    if (!unknown || me != TARGET)
        register_type(f, a);
    if (me == (ended ? DYING : HOME))
        CHECK(f, ferry_object_create(f, a->type, calloc(1, 8), &shared.object) == 0 &&
                     ferry_object_move(f, shared.object, carrier) == 0);
    CHECK(f, survive_quiesce(f) == 0);
    if (me == carrier && unknown)
        CHECK(f, ferry_object_move(f, shared.object, TARGET) == 0);
    else if (me == carrier && after) /* the message goes along, so rank 2 is told of the object */
        CHECK(f, tracked_send(f, shared.object, a->message, 0, &a->ends) == 0);
    if (me == carrier && !unknown && !ended)
        CHECK(f, ferry_object_uninstall(f, shared.object, TARGET, &shared.info, &shared.data) == 0);
    if (late)
        come_late(f, a, unknown);
    else if (ended)
        end_there(f, a);
    else
        carry_on(f, a, after ? TARGET : HOME, after || strcmp(argv[1], "lost") == 0,
                 strcmp(argv[1], "left") == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
