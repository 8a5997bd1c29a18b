/* Goal: a scheduler of the program's own can use all that the header offers, and is not allowed
 * what it must not do. Method: "scatter" sends each object that was not sent yet to a random rank,
 * tells that rank, keeps the rest, and wakes itself once. Each task must run once, and every
 * process must have been told and woken. Where there is a helper, each task waits, without a call
 * of Ferry's, until the scheduler has been woken while it ran.
 *
 * Run as FERRY_RANKS=N FERRY_SCHEDULER=scatter FERRY_SCHEDULER_WORDS=7 [FERRY_HELPER=0] plugin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

enum { OBJECTS = 30, RANKS_MAX = 8 };

typedef struct scatter {
    ferry_schedulable *first;
} scatter;

typedef struct account {
    ferry_handler handler;
    uint64_t ran;
} account;

/* Counts of what the schedulers of all ranks of this process heard. */
static _Atomic int told, woken, wrong;
static _Atomic bool rang[RANKS_MAX]; /* by rank: its alarm, since its task was picked */

/* Whether a helper calls the scheduler while tasks run. */
static bool is_helped(int ranks)
{
    const char *helper = getenv("FERRY_HELPER");
    return ranks > 1 && (helper == NULL || strcmp(helper, "0") != 0);
}

static int create(ferry_scheduling *s, void **state)
{
    scatter *sc = calloc(1, sizeof *sc);
    if (sc == NULL)
        return FERRY_ENOMEM;
    wrong += ferry_scheduling_parameter(s, "words", 1, 0, 9) != 7;
    wrong += ferry_scheduling_parameter(s, "absent", 3, 0, 9) != 3;
    wrong += ferry_scheduling_preempts(s); /* the helper comes with the first phase */
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + 1000);
    *state = sc;
    return 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    scatter *sc = state;
    ferry_schedulable *item = sc->first;
    if (item != NULL) {
        sc->first = item->next;
        item->queued = false;
        rang[ferry_scheduling_rank(s)] = false;
        ferry_scheduling_wake(s, ferry_scheduling_now(s) + 100000);
    }
    return item;
}

static void push(scatter *sc, ferry_schedulable *item)
{
    if (item->queued || item->pending == 0)
        return;
    item->queued = true;
    item->next = sc->first;
    sc->first = item;
}

static void activate(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s;
    push(state, item);
}

static void notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    int rank = (int)(ferry_scheduling_random(s) % (uint64_t)ferry_scheduling_ranks(s));
    wrong += ferry_scheduling_acceptor_count(s) != ferry_scheduling_ranks(s) - 1;
    wrong += ferry_scheduling_accepts(s, rank) != (rank != ferry_scheduling_rank(s));
    int ranks = ferry_scheduling_ranks(s);
    int distance = (rank - ferry_scheduling_rank(s) + ranks) % ranks;
    wrong += ferry_scheduling_acceptor(s, distance) != (distance == 0 ? -1 : rank);
    wrong += ferry_scheduling_acceptor(s, ranks) != -1;
    if (!ferry_scheduling_is_on(s) || !ferry_scheduling_accepts(s, rank) || item->queued) {
        push(state, item);
        return;
    }
    wrong += ferry_scheduling_preempts(s) != is_helped(ranks);
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {1, 2, 3};
    ferry_scheduling_send(s, rank, words);
    ferry_scheduling_migrate(s, item, rank);
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    scatter *sc = state;
    (void)s;
    ferry_schedulable **at = &sc->first;
    while (*at != NULL && *at != item)
        at = &(*at)->next;
    if (*at == item)
        *at = item->next;
    item->queued = false;
}

static bool empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((scatter *)state)->first == NULL;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)state;
    told += source != ferry_scheduling_rank(s) && words[0] == 1 && words[2] == 3;
}

static void wake(ferry_scheduling *s, void *state)
{
    (void)state;
    woken++;
    rang[ferry_scheduling_rank(s)] = true;
}

static void task(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message_in)
{
    (void)object;
    (void)source;
    (void)message_in;
    ((account *)ferry_user_data(f))->ran += *(const char *)data == 'x';
    if (!is_helped(ferry_ranks(f)) || wrong != 0)
        return;
    const struct timespec nap = {.tv_nsec = 50 * 1000};
    const uint64_t give_up_ns = ferry_now(f) + UINT64_C(60000000000);
    while (!rang[ferry_rank(f)] && ferry_now(f) < give_up_ns)
        nanosleep(&nap, NULL);
    wrong += !rang[ferry_rank(f)];
}

static int run(ferry *f, account *a)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "x", .flat_bytes = 1};
    ferry_object_type type;
    int error = ferry_object_type_register(f, &ops, &type);
    if (error == 0)
        error = ferry_object_handler_register(f, "task", task, &a->handler);
    if (error == 0)
        error = ferry_balance_enable(f, true);
    for (int i = 0; error == 0 && i < OBJECTS; i++) {
        ferry_object object;
        char *data = malloc(1);
        if (data == NULL)
            return FERRY_ENOMEM;
        *data = 'x';
        const ferry_message note = {.handler = a->handler};
        error = ferry_object_create(f, type, data, &object);
        if (error == 0)
            error = ferry_balance_add(f, object, NULL);
        if (error == 0)
            error = ferry_object_send(f, object, &note, NULL);
    }
    if (error == 0)
        error = ferry_quiesce(f);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &a->ran, &a->ran, 1);
    /* The work request to be woken is older than the barrier of the phase, so it has long come
     * true. */
    wrong += error == 0 && (woken == 0 || (ferry_ranks(f) > 1 && told == 0));
    return error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_scheduler scheduler = {.size = sizeof scheduler,
                                              .name = "scatter",
                                              .create = create,
                                              .destroy = destroy,
                                              .next = next,
                                              .activate = activate,
                                              .notify = notify,
                                              .remove = take_out,
                                              .empty = empty,
                                              .message = message,
                                              .wake = wake};
    account a = {0};
    (void)argc;
    (void)argv;
    ferry_user_data_set(f, &a);
    int error = ferry_scheduler_register(f, &scheduler);
    if (error == 0 && ferry_scheduler_register(f, &scheduler) != FERRY_EINVAL)
        return 1;
    if (error == 0)
        error = run(f, &a);
    if (error != 0)
        fprintf(stderr, "plugin: %s\n", ferry_error_message(f));
    if (a.ran != (uint64_t)OBJECTS * (uint64_t)ferry_ranks(f))
        fprintf(stderr, "plugin: %llu tasks ran\n", (unsigned long long)a.ran);
    return error != 0 || wrong != 0 || a.ran != (uint64_t)OBJECTS * (uint64_t)ferry_ranks(f);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
