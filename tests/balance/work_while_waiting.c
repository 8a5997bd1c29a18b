/* Goal: a barrier runs tasks and balances while it waits; and what schedulers and termination say
 * is neither lost nor late in a flood of the program's messages.
 * Method: rank 0 has objects with one task each. The first to run waits, without a call of Ferry's,
 * until another has run elsewhere: so some have to be given away meanwhile.
 *   barrier  ranks 0 and 1 are in a barrier, which rank 2 enters, from outside Ferry, when that has
 *            happened; it may hold what it was given, so there are more tasks than it asks for
 *   made     a task makes the others, computes until one has run elsewhere, and says how long
 *   flood    the other ranks have first sent rank 0, which takes none of it, more requests and
 *            messages than the rings hold; ferry_quiesce has to wait for all of them
 *
 * Run as FERRY_RANKS=3 [FERRY_RING_SLOTS=8] under barrier|made|flood. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

#include "../support/failed.h"

enum { TASKS = 16, FLOOD = 3000, DATA_BYTES = 200 };

/* In the shared heap; seq_cst throughout. */
typedef struct board {
    _Atomic uint64_t begun, done;
    _Atomic uint64_t waits_on; /* rank + 1 */
} board;

typedef struct thing {
    board *shared;
} thing;

typedef struct account {
    ferry_handler work, make, drop, sink, start;
    ferry_object sunk; /* takes messages on rank 0 */
    ferry_object objects[TASKS];
    board *shared;
    uint64_t handled, started, wrong;
} account;

static void check(ferry *f, int error)
{
    ((account *)ferry_user_data(f))->wrong += failed(f, error);
}

/* Without a call of Ferry's; what never comes is told by the test's time limit. */
static void wait_for(const _Atomic uint64_t *word)
{
    const struct timespec nap = {.tv_nsec = 100 * 1000};
    while (atomic_load(word) == 0)
        nanosleep(&nap, NULL);
}

static void on_work(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    thing *t = data;
    (void)object, (void)source, (void)m;
    uint64_t here = (uint64_t)ferry_rank(f) + 1;
    if (atomic_fetch_add(&t->shared->begun, 1) == 0) {
        atomic_store(&t->shared->waits_on, here);
        wait_for(&t->shared->done);
    } else if (atomic_load(&t->shared->waits_on) != here) {
        atomic_store(&t->shared->done, 1);
    }
}

/* First the other ranks have time to ask for work in vain. */
static void on_make(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    const account *a = ferry_user_data(f);
    const ferry_message work = {.handler = a->work};
    (void)object, (void)data, (void)source, (void)m;
    ferry_compute(f, 0.05);
    atomic_store(&a->shared->waits_on, (uint64_t)ferry_rank(f) + 1);
    atomic_fetch_add(&a->shared->begun, 1);
    const uint64_t begun_ns = ferry_now(f);
    for (int i = 0; i < TASKS; i++)
        check(f, ferry_object_send(f, a->objects[i], &work, NULL));
    while (atomic_load(&a->shared->done) == 0)
        ferry_compute(f, 0.001);
    printf("waited %.1f ms\n", (double)(ferry_now(f) - begun_ns) / 1e6);
}

static void on_drop(ferry *f, int source, const ferry_message *m)
{
    (void)source, (void)m;
    ((account *)ferry_user_data(f))->handled++;
}

static void on_sink(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data;
    on_drop(f, source, m);
}

/* In a handler, so that what has no room is kept and nobody waits. */
static void on_start(ferry *f, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    static const unsigned char data[DATA_BYTES];
    (void)source, (void)m;
    for (int i = 0; i < FLOOD; i++) {
        const ferry_message request = {.handler = a->drop, .data = data, .size_bytes = sizeof data};
        const ferry_message message = {.handler = a->sink, .word_count = 1};
        check(f, ferry_request_send(f, 0, &request, NULL));
        check(f, ferry_object_send(f, a->sunk, &message, NULL));
    }
    a->started = 1;
}

static void make_object(ferry *f, const account *a, ferry_object_type type, ferry_object *object)
{
    thing *t = malloc(sizeof *t);
    if (t == NULL)
        abort();
    t->shared = a->shared;
    check(f, ferry_object_create(f, type, t, object));
    check(f, ferry_balance_add(f, *object, NULL));
}

static void make_tasks(ferry *f, account *a, ferry_object_type type)
{
    for (int i = 0; i < TASKS; i++) {
        const ferry_message work = {.handler = a->work};
        make_object(f, a, type, &a->objects[i]);
        check(f, ferry_object_send(f, a->objects[i], &work, NULL));
    }
}

static void make_in_task(ferry *f, account *a, ferry_object_type type)
{
    if (ferry_rank(f) == 0) {
        const ferry_message make = {.handler = a->make};
        ferry_object maker;
        for (int i = 0; i < TASKS; i++)
            make_object(f, a, type, &a->objects[i]);
        make_object(f, a, type, &maker);
        check(f, ferry_object_send(f, maker, &make, NULL));
    }
    check(f, ferry_quiesce(f));
}

static void set_up(ferry *f, account *a, ferry_object_type *type)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .flat_bytes = sizeof(thing)};
    void *shared = NULL;
    check(f, ferry_object_type_register(f, &ops, type));
    check(f, ferry_object_handler_register(f, "work", on_work, &a->work));
    check(f, ferry_object_handler_register(f, "make", on_make, &a->make));
    check(f, ferry_object_handler_register(f, "sink", on_sink, &a->sink));
    check(f, ferry_handler_register(f, "drop", on_drop, &a->drop));
    check(f, ferry_handler_register(f, "start", on_start, &a->start));
    check(f, ferry_balance_enable(f, true));
    if (ferry_rank(f) == 0) {
        check(f, ferry_alloc(f, sizeof(board), &shared));
        memset(shared, 0, sizeof(board));
        check(f, ferry_object_create(f, *type, calloc(1, sizeof(thing)), &a->sunk));
    }
    check(f, ferry_broadcast(f, 0, &a->sunk, sizeof a->sunk));
    check(f, ferry_broadcast(f, 0, &shared, sizeof shared));
    a->shared = shared;
}

static void meet(ferry *f, account *a, ferry_object_type type)
{
    if (ferry_rank(f) == 0)
        make_tasks(f, a, type);
    if (ferry_rank(f) == 2)
        wait_for(&a->shared->done);
    check(f, ferry_barrier(f));
    a->wrong += atomic_load(&a->shared->done) == 0;
    check(f, ferry_quiesce(f));
}

static void flood(ferry *f, account *a, ferry_object_type type)
{
    const ferry_message start = {.handler = a->start};
    if (ferry_rank(f) == 0)
        make_tasks(f, a, type);
    else
        check(f, ferry_request_send(f, ferry_rank(f), &start, NULL));
    check(f, ferry_quiesce(f));
    uint64_t sent = 2 * FLOOD * (uint64_t)(ferry_ranks(f) - 1);
    a->wrong += a->handled != (ferry_rank(f) == 0 ? sent : 0);
    a->wrong += a->started != (ferry_rank(f) != 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account a = {.wrong = 0};
    ferry_object_type type = {0};
    ferry_user_data_set(f, &a);
    set_up(f, &a, &type);
    bool made = argc == 2 && strcmp(argv[1], "made") == 0;
    if (argc == 2 && strcmp(argv[1], "flood") == 0)
        flood(f, &a, type);
    else if (made)
        make_in_task(f, &a, type);
    else
        meet(f, &a, type);
    a.wrong += atomic_load(&a.shared->begun) != (made ? TASKS + 1 : TASKS);
    if (a.wrong != 0)
        fprintf(stderr, "work_while_waiting: rank %d: %llu wrong, %llu handled\n", ferry_rank(f),
                (unsigned long long)a.wrong, (unsigned long long)a.handled);
    check(f, ferry_barrier(f));
    return a.wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
