/* Goal: when ranks die, ferry_quiesce ends on the others, and each tracked message has ended once,
 * although objects end too, whose ends a dead rank knew alone. Method: messages run from object to
 * object. In their handlers objects move and end at random, and nearly half of the messages find no
 * object. For the simulator: ferry swarm --all -n N. */
#include "../support/survive.h"
#include "../support/tracked.h"
#include "oracle.h"

enum { OBJECTS = 2, RANKS_MAX = 64, MESSAGES = 20, HOPS = 20 };

typedef struct account {
    ferry_handler step;
    uint64_t random;
    int sent;
    tracked ends;
    ferry_object known[RANKS_MAX * OBJECTS]; /* word 0: its rank had died before it told */
} account;

/* Sends a message that makes `hops` more steps. */
static void send_on(ferry *f, account *a, uint64_t hops)
{
    ferry_object object = a->known[draw(&a->random, (uint64_t)ferry_ranks(f) * OBJECTS)];
    if (object.word == 0)
        return;
    int error = tracked_send(f, object, a->step, hops, &a->ends);
    a->sent += error == 0;
    if (error != 0 && error != FERRY_EPEER && error != FERRY_ENOENT)
        must(f, error, "send");
}

static void on_step(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)data, (void)source;
    if (message->words[0] == 0)
        return;
    int error = 0;
    if (draw(&a->random, 2) == 0)
        error = ferry_object_move(f, object, (int)draw(&a->random, (uint64_t)ferry_ranks(f)));
    else if (draw(&a->random, 8) == 0)
        error = ferry_object_destroy(f, object);
    if (error != FERRY_EPEER)
        must(f, error, "move or destroy");
    send_on(f, a, message->words[0] - 1);
}

static void meet(ferry *f, account *a)
{
    ferry_object own[OBJECTS];
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_object_type type;
    ops.flat_bytes = 64;
    must(f, survive_deaths(f), "watch");
    must(f, ferry_object_type_register(f, &ops, &type), "type");
    must(f, ferry_object_handler_register(f, "step", on_step, &a->step), "handler");
    for (int i = 0; i < OBJECTS; i++)
        must(f, ferry_object_create(f, type, calloc(1, 64), &own[i]), "create");
    if (ferry_allgather(f, own, sizeof(own), a->known) == 0)
        return;
    for (int i = 0; i < ferry_ranks(f) * OBJECTS; i++)
        a->known[i] = i < OBJECTS ? own[i] : (ferry_object){0};
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account *a = calloc(1, sizeof *a);
    int error;
    (void)argc, (void)argv;
    if (a == NULL || ferry_ranks(f) > RANKS_MAX)
        return 2;
    a->random = first_random(ferry_rank(f));
    ferry_user_data_set(f, a);
    meet(f, a);
    for (int i = 0; i < MESSAGES; i++)
        send_on(f, a, HOPS);
    error = survive_quiesce(f);
    must(f, error, "quiesce");
    int ended = a->ends.completed + a->ends.failed;
    if (a->sent != ended)
        wrong(f, "messages sent, and ended", (uint64_t)a->sent, (uint64_t)ended);
    free(a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
