/* Goal: while a task sleeps without polling, another rank gets the waiting object at once, and
 * switching balancing off keeps objects where they are; without the helper thread nothing leaves
 * while a task runs.
 * Method: rank 0 has two objects with one task each. The first waits, asleep, for what the second
 * sets in memory that both ranks see; it can only run elsewhere. Without balancing the first gives
 * up after a time, and both run on rank 0. Without the helper thread it has to give up if the
 * second object was still on rank 0 when it began, and only then.
 *
 * Run as FERRY_RANKS=2 [FERRY_HELPER=0] [FERRY_THREADS=1] preemption. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

typedef struct account {
    ferry_handler handler;
    ferry_object second; /* on the rank that made it */
    int64_t ran[2];
    bool preempted;   /* others are answered while a task runs */
    bool expect_help; /* the second task can run while the first does */
    bool waited;      /* the first task ran here */
    bool gave_up;     /* and it was not helped */
} account;

/* In the shared heap, at one address on both ranks. */
typedef struct board {
    _Atomic uint64_t done; /* by the second task; seq_cst throughout */
} board;

typedef struct thing {
    board *shared;
    uint64_t number;
} thing;

static void task(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    (void)object;
    (void)source;
    (void)message;
    a->ran[t->number]++;
    if (t->number == 1) {
        atomic_store(&t->shared->done, ferry_now(f));
        return;
    }
    a->waited = true;
    /* Without a helper this thread alone sends objects away, so it knows whether that has left. */
    a->expect_help = a->preempted || ferry_object_data(f, a->second) == NULL;
    /* A minute is forever when help is expected; else a tenth of a second proves nothing came. */
    uint64_t end_ns = ferry_now(f) + (a->expect_help ? 60000 : 100) * 1000000ull;
    const struct timespec nap = {.tv_nsec = 100 * 1000};
    while (atomic_load(&t->shared->done) == 0 && ferry_now(f) < end_ns)
        nanosleep(&nap, NULL);
    a->gave_up = atomic_load(&t->shared->done) == 0;
}

static int run(ferry *f, account *a, bool balance)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .flat_bytes = sizeof(thing)};
    ferry_object_type type;
    void *shared = NULL;
    *a = (account){.handler = a->handler, .preempted = a->preempted};
    int error = ferry_object_type_register(f, &ops, &type);
    if (error == 0)
        error = ferry_balance_enable(f, balance);
    if (error == 0 && ferry_rank(f) == 0)
        error = ferry_alloc(f, sizeof(board), &shared);
    for (uint64_t i = 0; error == 0 && ferry_rank(f) == 0 && i < 2; i++) {
        ferry_object object;
        thing *t = malloc(sizeof *t);
        if (t == NULL)
            return FERRY_ENOMEM;
        *t = (thing){.shared = shared, .number = i};
        if (i == 0)
            atomic_init(&t->shared->done, 0);
        const ferry_message message = {.handler = a->handler};
        error = ferry_object_create(f, type, t, &object);
        a->second = object;
        if (error == 0)
            error = ferry_balance_add(f, object, NULL);
        if (error == 0)
            error = ferry_object_send(f, object, &message, NULL);
    }
    if (error == 0)
        error = ferry_quiesce(f);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_INT64, FERRY_SUM, a->ran, a->ran, 2);
    return error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *helper = getenv("FERRY_HELPER");
    bool helped = helper == NULL || strcmp(helper, "0") != 0;
    account a = {.preempted = helped};
    ferry_user_data_set(f, &a);
    (void)argc;
    (void)argv;
    if (ferry_object_handler_register(f, "task", task, &a.handler) != 0)
        return 1;
    int error = run(f, &a, true);
    bool right = error == 0 && a.ran[0] == 1 && a.ran[1] == 1;
    if (a.waited)
        right = right && a.gave_up != a.expect_help;
    if (!right)
        fprintf(stderr, "answer: rank %d: gave up: %d, with help: %d\n", ferry_rank(f), a.gave_up,
                a.expect_help);
    a.preempted = false;
    if (error == 0)
        error = run(f, &a, false);
    right = right && error == 0 && a.ran[0] == 1 && a.ran[1] == 1;
    if (ferry_rank(f) == 0)
        right = right && a.gave_up;
    if (error != 0)
        fprintf(stderr, "answer: %s\n", ferry_error_message(f));
    if (!right)
        fprintf(stderr, "answer: rank %d: wrong (gave up: %d, ran %d %d)\n", ferry_rank(f),
                a.gave_up, (int)a.ran[0], (int)a.ran[1]);
    return right ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
