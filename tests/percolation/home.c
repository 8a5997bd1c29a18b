/* Goal: after ferry_quiesce all objects are on servers, although some could not be sent back at
 * first. Method: rank 0 is the server and has objects whose tasks run on the engines. In the
 * simulator the shared heap refuses allocations. Then, without migration, the program moves objects
 * to an engine. They must be on the server again after migration is on. With `stays` the heap
 * refuses so much that objects may stay on engines: then each later ferry_quiesce must return, and
 * one must find them on the server. With `never` it refuses everything, and ferry_quiesce returns.
 *
 * Run as ferry sim -n 3 [--faults nomem=P] home [stays|never]. */
#include <stdio.h>
#include <string.h>

#include "setup.h"

enum { OBJECTS = 20, BYTES = 20000, ENGINE = 1, MOVED = 5, TIMES = 50 };

typedef struct account {
    ferry_handler add;
    ferry_object objects[OBJECTS];
    int ran;
} account;

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    ((account *)ferry_user_data(f))->ran++;
}

static void set_up(ferry *f, account *a)
{
    ferry_user_data_set(f, a);
    ferry_object_type type = store_set_up(f, BYTES, MOVED * BYTES);
    check(f, ferry_object_handler_register(f, "add", on_add, &a->add) == 0, "handler");
    check(f, percolation_begins(f, 1), "start");
    if (ferry_rank(f) == 0)
        objects_create(f, type, BYTES, a->objects, OBJECTS);
}

/* How many objects are on engines after a quiescence. */
static int64_t count_away(ferry *f)
{
    check(f, ferry_quiesce(f) == 0, "quiesce");
    int64_t away = ferry_rank(f) == 0 ? 0 : (int64_t)ferry_object_count(f);
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &away, &away, 1) == 0, "allreduce");
    return away;
}

static void await_home(ferry *f, const char *how)
{
    int times = strcmp(how, "stays") == 0 ? TIMES : 1;
    int64_t away = count_away(f);
    while (away != 0 && --times > 0)
        away = count_away(f);
    check(f, away == 0, "objects are on engines after ferry_quiesce");
}

/* A task for each object. */
static void run_tasks(ferry *f, account *a)
{
    const ferry_message message = {.handler = a->add};
    for (int i = 0; i < OBJECTS && ferry_rank(f) == 0; i++)
        check(f, ferry_object_send(f, a->objects[i], &message, NULL) == 0, "send");
    (void)ferry_poll(f);
}

static void move_without_balancing(ferry *f, const account *a)
{
    check(f, ferry_balance_enable(f, false) == 0, "off");
    for (int i = 0; i < MOVED && ferry_rank(f) == 0; i++)
        check(f, ferry_object_move(f, a->objects[i], ENGINE) == 0, "move");
    check(f, count_away(f) == MOVED, "the program has moved objects");
    check(f, ferry_balance_enable(f, true) == 0, "on");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    account a = {.ran = 0};
    set_up(f, &a);
    run_tasks(f, &a);
    if (strcmp(how, "never") == 0) {
        check(f, count_away(f) != 0 && count_away(f) != 0, "there was memory");
    } else {
        await_home(f, how);
        if (*how == '\0') {
            move_without_balancing(f, &a);
            await_home(f, how);
        }
    }
    if (ferry_rank(f) == 0)
        printf("home: right, %d tasks ran on the server\n", a.ran);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
