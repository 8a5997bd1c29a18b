/* Goal: a rank that joins later and starts percolation is a computing engine. One that does not, or
 * has another number of servers, is none: when all engines have gone, servers run the tasks
 * themselves, and do not wait for it. Method: rank 0 is a server of four objects. It sends to them,
 * has a rank started, and sends again. Then the engines, ranks 1 and 2, leave, and rank 0 sends a
 * third time.
 *
 * Run as FERRY_RANKS=3 FERRY_RANKS_MAX=4 [FERRY_THREADS=1] joined [servers of the rank that joins].
 */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { OBJECTS = 4, ENGINES = 2, BYTES = 8 };

typedef struct account {
    ferry_object_type type;
    ferry_handler add;
    ferry_object objects[OBJECTS];
    int handled;
    int late_servers; /* with which the rank that joins starts percolation; 0: it does not */
    bool joined;
} account;

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    ((account *)ferry_user_data(f))->handled++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    ((account *)arg)->joined |= event->joined;
}

static void open_account(ferry *f, account *a)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = BYTES};
    ferry_user_data_set(f, a);
    check(f,
          ferry_peer_watch(f, on_peer, a) == 0 &&
              ferry_object_type_register(f, &ops, &a->type) == 0 &&
              ferry_object_handler_register(f, "add", on_add, &a->add) == 0,
          "set-up");
}

/* Rank 0 sends a task to each of its objects. */
static void play_round(ferry *f, const account *a)
{
    const ferry_message message = {.handler = a->add};
    for (int i = 0; i < OBJECTS && ferry_rank(f) == 0; i++)
        check(f, ferry_object_send(f, a->objects[i], &message, NULL) == 0, "send");
    check(f, ferry_quiesce(f) == 0, "quiesce");
}

static void percolate(ferry *f, const account *a, int servers)
{
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options percolation = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    ferry_store *store = NULL;
    percolation.servers = servers;
    options.budget_bytes = OBJECTS * BYTES;
    check(f,
          ferry_store_open(f, &options, &store) == 0 && ferry_store_add(store, a->type) == 0 &&
              ferry_percolation_start(f, &percolation) == 0,
          "start");
}

static void start(ferry *f, account *a)
{
    int newcomer = -1;
    percolate(f, a, 1);
    for (int i = 0; i < OBJECTS && ferry_rank(f) == 0; i++)
        check(f,
              ferry_object_create(f, a->type, calloc(1, BYTES), &a->objects[i]) == 0 &&
                  ferry_balance_add(f, a->objects[i], NULL) == 0,
              "create");
    play_round(f, a);
    check(f, ferry_rank(f) != 0 || ferry_spawn(f, 1, NULL, &newcomer) == 0, "spawn");
    while (!a->joined)
        (void)ferry_poll(f);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account *a = calloc(1, sizeof *a);
    const bool first = ferry_member_place(f, ferry_rank(f)) >= 0;
    check(f, a != NULL, "memory");
    a->late_servers = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    open_account(f, a);
    if (first)
        start(f, a);
    else if (a->late_servers != 0)
        percolate(f, a, a->late_servers);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    play_round(f, a);
    check(f, ferry_rank(f) != 0 || a->handled == 0, "a task ran on the server");
    if (first && ferry_rank(f) != 0) {
        check(f, ferry_leave(f) == 0, "leave");
        free(a);
        return 0;
    }
    for (int rank = 1; rank <= ENGINES; rank++)
        while (!ferry_peer_is_gone(f, rank))
            (void)ferry_poll(f);
    play_round(f, a);
    const bool helps = a->late_servers == 1;
    check(f, first ? a->handled == (helps ? 0 : OBJECTS) : a->handled >= (helps ? OBJECTS : 0),
          "a task did not run where it should");
    if (first)
        printf("%d tasks ran on the server\n", a->handled);
    free(a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
