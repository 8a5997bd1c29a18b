/* Goal: when data servers and engines die, each message ends once, nothing hangs, and only objects
 * that the dead had are lost. Method: ranks that go on after deaths create objects, and send them
 * tracked messages in rounds. The victim, if there is one, is killed in a task if it is an engine,
 * and between two messages if it is a server; the swarm kills at any time. In the end every rank
 * sends one more message to each of its objects. An object that is anywhere must answer. The others
 * were lost: none unless a rank is gone, and with engines alone no more than these had. If a
 * simulated disk cannot read an object, its messages fail with FERRY_ESYSTEM and quiescences with
 * FERRY_ELOST. The rank then sends until the object answers, so the object was not lost.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] deaths [victim], or ferry swarm --all deaths. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#define CHECK_STATUS 122 /* ferry swarm --unreadable excuses it not */
#include "../support/check.h"
#include "../support/random.h"
#include "../support/survive.h"
#include "object/object.h"

enum { OBJECTS = 12, ROUNDS = 3, MESSAGES = 30, BYTES = 1000, WINDOW = 3, KILL_AT = 20 };

typedef struct account {
    uint64_t random;
    ferry_handler add;
    ferry_object objects[OBJECTS];
    int sent, ended;
    int victim, handled;
    bool unread; /* an object could not be read */
    int answer;  /* how the last message ended */
} account;

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    uint64_t *values = data;
    (void)object, (void)source;
    check(f, values[0] == values[BYTES / 8 - 1], "an object is damaged");
    values[0] += m->words[0];
    values[BYTES / 8 - 1] = values[0];
    if (a->victim == ferry_rank(f) && ++a->handled == KILL_AT)
        raise(SIGKILL);
    ferry_compute(f, 20e-6);
}

static bool somebody_is_gone(const ferry *f)
{
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        if (ferry_peer_is_gone(f, rank))
            return true;
    return false;
}

static void check_error(ferry *f, int error, const char *what)
{
    account *a = ferry_user_data(f);
    a->unread = a->unread || error == FERRY_ESYSTEM || error == FERRY_ELOST;
    check(f, error == 0 || error == FERRY_EPEER || error == FERRY_ENOENT || a->unread, what);
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = ferry_user_data(f);
    (void)arg, (void)receipt;
    a->ended++;
    a->answer = 0;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = ferry_user_data(f);
    (void)arg;
    check_error(f, receipt->error, "a message failed otherwise");
    a->ended++;
    a->answer = receipt->error;
}

static void send_one(ferry *f, account *a, ferry_object object)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    const ferry_message message = {
        .handler = a->add, .word_count = 1, .words = {draw(&a->random, 100)}};
    track.completed = on_completed;
    track.failed = on_failed;
    int error = ferry_object_send(f, object, &message, &track);
    check_error(f, error, "a message was refused otherwise");
    a->sent += error == 0;
    a->answer = error == 0 ? a->answer : error;
}

/* Whether the ranks go on. A death may end any collective. */
static bool goes_on(ferry *f, int error)
{
    check_error(f, error, "a collective failed otherwise");
    return error == 0;
}

static bool set_up(ferry *f, account *a, ferry_object_type *type)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = BYTES};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options percolation = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    ferry_store *store = NULL;
    int ranks = ferry_ranks(f);
    percolation.servers = ranks == 1 ? 0 : 1 + (ranks - 2) / 3;
    percolation.window = WINDOW;
    options.budget_bytes = (uint64_t)WINDOW * BYTES;
    check(f,
          survive_deaths(f) == 0 && ferry_object_type_register(f, &ops, type) == 0 &&
              ferry_object_handler_register(f, "add", on_add, &a->add) == 0 &&
              ferry_store_open(f, &options, &store) == 0 && ferry_store_add(store, *type) == 0,
          "set-up");
    return goes_on(f, ferry_barrier(f)) && goes_on(f, ferry_percolation_start(f, &percolation));
}

static void make_objects(ferry *f, account *a, ferry_object_type type)
{
    for (int i = 0; i < OBJECTS; i++) {
        void *data = calloc(1, BYTES);
        check(f, data != NULL, "memory");
        check(f,
              ferry_object_create(f, type, data, &a->objects[i]) == 0 &&
                  ferry_balance_add(f, a->objects[i], NULL) == 0,
              "an object cannot be created");
        (void)ferry_poll(f);
    }
}

/* Waits until all messages of this rank have ended. */
static void settle(ferry *f, account *a)
{
    int error = ferry_quiesce(f);
    a->unread = a->unread || error == FERRY_ELOST;
    check(f, error == 0 || a->unread, "quiesce");
    check(f, error == 0 || strstr(ferry_error_message(f), "object ") != NULL, "no object is named");
    while (a->unread && a->ended != a->sent)
        (void)ferry_poll(f);
    check(f, a->ended == a->sent, "a quiescence came before the end of a message");
}

static void play_round(ferry *f, account *a)
{
    for (int i = 0; i < MESSAGES; i++) {
        send_one(f, a, a->objects[draw(&a->random, OBJECTS)]);
        if (a->victim == ferry_rank(f) && ferry_percolation_servers(f) > ferry_rank(f) &&
            ++a->handled == KILL_AT)
            raise(SIGKILL);
        (void)ferry_poll(f);
    }
    settle(f, a);
}

/* The answer of an object: 0, or why it has none. An object that cannot be read is asked again. */
static int ask(ferry *f, account *a, ferry_object object)
{
    a->answer = FERRY_ESYSTEM;
    for (int tries = 0; tries < 200 && a->answer == FERRY_ESYSTEM; tries++) {
        send_one(f, a, object);
        while (a->ended != a->sent)
            (void)ferry_poll(f);
    }
    return a->answer;
}

static int count_lost(ferry *f, account *a)
{
    int lost = 0;
    for (int i = 0; i < OBJECTS; i++)
        lost += ask(f, a, a->objects[i]) != 0;
    settle(f, a);
    return lost;
}

/* The objects of this rank that no longer answer. If a rank goes meanwhile, asks again: messages
 * may fail before the new place of their object is known. */
static int find_lost(ferry *f, account *a)
{
    enum { WAIT_NS = 200 * 1000 * 1000 };
    int lost, members;
    do {
        members = ferry_member_count(f);
        lost = count_lost(f, a);
    } while (members != ferry_member_count(f) && !a->unread);
    /* The first rank that ends after a loss ends the job. The others ask until then. */
    for (uint64_t end_ns = ferry_now(f) + WAIT_NS; a->unread && ferry_now(f) < end_ns;)
        (void)ferry_poll(f);
    return lost;
}

/* The objects on this rank that living ranks have made. */
static int count_found(ferry *f, ferry_object_type type)
{
    int found = 0;
    ferry_object object;
    for (size_t index = 0; fy_object_next(f, type, &index, &object);)
        found += !ferry_peer_is_gone(f, fy_object_creator(object));
    return found;
}

/* All servers together send an engine no more objects than its window. Those of one server that
 * are on the engine, or are on their way back, are no more than the window either: their server
 * gives no other object before an answer that follows them. */
static void check_counts(ferry *f, int lost, int missing, bool unread)
{
    int servers = ferry_percolation_servers(f), dead_servers = 0, dead_engines = 0;
    for (int rank = 0; rank < ferry_ranks(f); rank++) {
        dead_servers += rank < servers && ferry_peer_is_gone(f, rank);
        dead_engines += rank >= servers && ferry_peer_is_gone(f, rank);
    }
    check(f, unread || lost == missing, "an object is there and cannot be found");
    check(f, dead_servers != 0 || lost <= dead_engines * servers * WINDOW,
          "objects are lost that no dead rank had");
    if (ferry_rank(f) == 0 || ferry_peer_is_gone(f, 0))
        printf("deaths: right; %d servers and %d engines died, %d objects are lost\n", dead_servers,
               dead_engines, lost);
}

static void check_lost(ferry *f, const account *a, ferry_object_type type, int lost)
{
    int servers = ferry_percolation_servers(f);
    int64_t sums[3] = {lost, OBJECTS - count_found(f, type), a->unread};
    check(f, lost == 0 || somebody_is_gone(f), "an object is lost though no rank is gone");
    check(f,
          a->unread || servers == 0 || ferry_rank(f) < servers || ferry_object_count(f) == 0 ||
              ferry_peer_is_gone(f, 0),
          "an engine has an object at rest");
    if (goes_on(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, sums, sums, 3)))
        check_counts(f, (int)sums[0], (int)sums[1], sums[2] != 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *seed = getenv("FERRY_SEED");
    account a = {.victim = argc > 1 ? (int)strtol(argv[1], NULL, 10) : -1};
    ferry_object_type type;
    a.random = (seed == NULL ? 1 : strtoull(seed, NULL, 10)) * 1000003;
    a.random = (a.random + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1;
    ferry_user_data_set(f, &a);
    if (!set_up(f, &a, &type))
        return 0;
    make_objects(f, &a, type);
    for (int i = 0; i < ROUNDS; i++)
        play_round(f, &a);
    check_lost(f, &a, type, find_lost(f, &a));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
