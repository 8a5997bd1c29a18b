/* Goal: when ranks die, ferry_quiesce ends on the others, and each tracked message has ended once,
 * although objects end too, whose ends a dead rank knew alone. Method: messages run from object to
 * object. In their handlers objects move and end at random, and nearly half of the messages find no
 * object. With `carry` the program carries objects too, and with `leave` some ranks leave. For the
 * simulator: ferry swarm --all -n N. */
#include <string.h>

#include "../support/survive.h"
#include "../support/tracked.h"
#include "oracle.h"

enum { OBJECTS = 2, RANKS_MAX = 64, MESSAGES = 20, HOPS = 20 };

typedef struct account {
    ferry_handler step, cargo;
    uint64_t random;
    int sent;
    tracked ends;
    ferry_object known[RANKS_MAX * OBJECTS]; /* word 0: its rank had died before it told */
} account;

/* An object that one rank has uninstalled for another. */
typedef struct cargo {
    ferry_move_info info;
    void *data;
    int source;
} cargo;

/* For all ranks, which the simulator has in one process: cargo that one has sent another, and the
 * ranks that take no more. */
static int coming[RANKS_MAX][RANKS_MAX];
static bool leaving[RANKS_MAX];

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

/* Gives the object to another rank, if it is here. */
static void carry(ferry *f, account *a, ferry_object object)
{
    cargo *c = calloc(1, sizeof *c);
    int to = (int)draw(&a->random, (uint64_t)ferry_ranks(f));
    const ferry_message message = {
        .handler = a->cargo, .word_count = 1, .words = {(uint64_t)(uintptr_t)c}};
    if (c == NULL)
        exit(WRONG_STATUS);
    c->source = ferry_rank(f);
    if (to == c->source || leaving[to] || object.word == 0 ||
        ferry_object_uninstall(f, object, to, &c->info, &c->data) != 0) {
        free(c);
        return;
    }
    coming[to][c->source]++;
    int error = ferry_request_send(f, to, &message, NULL);
    if (error != FERRY_EPEER)
        must(f, error, "send cargo");
}

/* An object that comes again must wait until its last stay here has ended. One whose source has
 * died may count as lost. */
static void on_cargo(ferry *f, int source, const ferry_message *message)
{
    cargo *c = (cargo *)(uintptr_t)message->words[0];
    (void)source;
    int error = ferry_object_install(f, &c->info, c->data, c->source);
    if (error == FERRY_EAGAIN) {
        must(f, ferry_request_send(f, ferry_rank(f), message, NULL), "send cargo again");
        return;
    }
    if (error != 0 && !ferry_peer_is_gone(f, c->source))
        must(f, error, "install");
    if (error != 0)
        free(c->data);
    coming[ferry_rank(f)][c->source]--;
    free(c->info.bytes);
    free(c);
}

/* Whether a rank that lives has sent cargo that has not come. */
static bool is_cargo_coming(ferry *f)
{
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        if (coming[ferry_rank(f)][rank] != 0 && !ferry_peer_is_gone(f, rank))
            return true;
    return false;
}

/* Leaves, when no cargo comes any more. */
static void go(ferry *f)
{
    leaving[ferry_rank(f)] = true;
    while (is_cargo_coming(f))
        if (ferry_wait(f, 100000) < 0)
            wrong(f, "wait failed", 0, 0);
    must(f, ferry_leave(f), "leave");
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
    must(f, ferry_handler_register(f, "cargo", on_cargo, &a->cargo), "handler");
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
    bool leaves = false, carries = false;
    for (int i = 1; i < argc; i++) {
        leaves |= strcmp(argv[i], "leave") == 0;
        carries |= strcmp(argv[i], "carry") == 0;
    }
    if (a == NULL || ferry_ranks(f) > RANKS_MAX)
        return 2;
    a->random = first_random(ferry_rank(f));
    ferry_user_data_set(f, a);
    meet(f, a);
    leaves = leaves && ferry_rank(f) % 2 == 1 && draw(&a->random, 2) == 0;
    for (int i = 0; i < MESSAGES; i++) {
        send_on(f, a, HOPS);
        if (carries && draw(&a->random, 4) == 0)
            carry(f, a, a->known[draw(&a->random, (uint64_t)ferry_ranks(f) * OBJECTS)]);
        if (leaves && i == MESSAGES / 2)
            break;
    }
    if (leaves)
        go(f);
    else
        must(f, survive_quiesce(f), "quiesce");
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
