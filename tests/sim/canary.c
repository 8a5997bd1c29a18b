/* Wrong programs, on purpose, for tests of the simulator's alarms: `canary WHAT`. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

typedef struct account {
    ferry_handler handler;
    int count;
} account;

static void on_request(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)source;
    (void)message;
    a->count++;
}

static void send_to(ferry *f, const account *a, int rank)
{
    ferry_message message = {.handler = a->handler};
    if (ferry_request_send(f, rank, &message, NULL) != 0)
        exit(EXIT_FAILURE);
}

/* Takes it for granted that the others' requests arrive within 20 us. */
static int hasty(ferry *f, account *a)
{
    if (ferry_rank(f) == 0) {
        uint64_t start = ferry_now(f);
        while (a->count < ferry_ranks(f) - 1)
            ferry_wait(f, FERRY_FOREVER);
        return ferry_now(f) - start > 20000 ? 7 : 0;
    }
    send_to(f, a, 0);
    return 0;
}

/* Rank 1 waits for a request that nobody sends; the others wait for rank 1. */
static int stuck(ferry *f, const account *a)
{
    while (ferry_rank(f) == 1 && a->count == 0)
        ferry_wait(f, FERRY_FOREVER);
    return ferry_barrier(f) == 0 ? 0 : EXIT_FAILURE;
}

/* Waits for what `rank` never sends. */
static bool receives(ferry *f, int rank)
{
    ferry_op op = {0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    char buffer[8];
    track.op = &op;
    return ferry_receive(f, rank, 7, buffer, sizeof buffer, &track) == 0 &&
           ferry_op_wait(f, &op) == 0;
}

/* The last rank and the last but two each wait for what the other does after that. */
static int deadlock(ferry *f)
{
    int last = ferry_ranks(f) - 1, other = 2 * last - 2 - ferry_rank(f);
    if ((other == last || other == last - 2) && !receives(f, other))
        return EXIT_FAILURE;
    return ferry_barrier(f) == 0 ? 0 : EXIT_FAILURE;
}

/* Rank 0 adds two parcels to a cell of rank 1 that has room for one, and all wait for the end. */
static int crowded(ferry *f)
{
    const ferry_cell cell = {1, 0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    ferry_parcel parcel;
    ferry_op op;
    track.op = &op;
    int error = ferry_rank(f) == 1 ? ferry_cell_limit_set(f, 0, 1) : 0;
    if (error == 0)
        error = ferry_barrier(f);
    for (int i = 0; i < 2 && error == 0 && ferry_rank(f) == 0; i++) {
        error = ferry_parcel_create(f, 8, &parcel, NULL);
        if (error == 0)
            error = ferry_cell_enqueue_start(f, cell, parcel, FERRY_GIVE, &track);
    }
    return error == 0 && ferry_quiesce(f) == 0 ? 0 : EXIT_FAILURE;
}

/* As stuck, but looks every tenth of a millisecond. */
static int restless(ferry *f, const account *a)
{
    while (a->count == 0)
        ferry_wait(f, 100000);
    return 0;
}

/* Polls forever without waiting. */
static int spinning(ferry *f, const account *a)
{
    while (a->count == 0)
        ferry_poll(f);
    return 0;
}

static int waker_create(ferry_scheduling *s, void **state)
{
    (void)s;
    *state = NULL;
    return 0;
}

static ferry_schedulable *waker_next(ferry_scheduling *s, void *state)
{
    (void)state;
    ferry_scheduling_wake(s, ferry_scheduling_now(s));
    return NULL;
}

static void waker_wake(ferry_scheduling *s, void *state)
{
    (void)waker_next(s, state);
}

static void waker_destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    (void)state;
}

static void waker_add(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s;
    (void)state;
    (void)item;
}

static bool waker_empty(ferry_scheduling *s, void *state)
{
    (void)s;
    (void)state;
    return true;
}

static void waker_message(ferry_scheduling *s, void *state, int rank,
                          const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)s;
    (void)state;
    (void)rank;
    (void)words;
}

static void on_task(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    (void)f;
    (void)object;
    (void)data;
    (void)source;
    (void)message;
}

/* A scheduler that asks to be woken now, and again, and never gives a task. */
static int sleepless(ferry *f)
{
    static const ferry_scheduler waker = {.size = sizeof waker,
                                          .name = "waker",
                                          .create = waker_create,
                                          .destroy = waker_destroy,
                                          .next = waker_next,
                                          .activate = waker_add,
                                          .notify = waker_add,
                                          .remove = waker_add,
                                          .empty = waker_empty,
                                          .message = waker_message,
                                          .wake = waker_wake};
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "cell", .flat_bytes = 1};
    ferry_object_type type;
    ferry_object object;
    ferry_message message = {.word_count = 0};
    if (ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "task", on_task, &message.handler) != 0 ||
        ferry_scheduler_register(f, &waker) != 0 || ferry_balance_choose(f, "waker") != 0 ||
        ferry_object_create(f, type, malloc(1), &object) != 0 ||
        ferry_balance_add(f, object, NULL) != 0 || ferry_balance_enable(f, true) != 0 ||
        ferry_object_send(f, object, &message, NULL) != 0)
        return EXIT_FAILURE;
    return ferry_quiesce(f) == 0 ? 0 : EXIT_FAILURE;
}

/* Ranks that do nothing but meet. */
static int meetings(ferry *f)
{
    enum { QUIESCENCES = 200000, BARRIERS = 110000 };
    int error = 0;
    for (int i = 0; i < QUIESCENCES && error == 0; i++)
        error = ferry_quiesce(f);
    for (int i = 0; i < BARRIERS && error == 0; i++)
        error = ferry_barrier(f);
    return error != 0;
}

/* Not wrong: waits for long, a moment at a time. */
static int steps(ferry *f)
{
    uint64_t start_ns = ferry_now(f);
    while (ferry_now(f) - start_ns < UINT64_C(2000000000))
        ferry_wait(f, 1000);
    return 0;
}

/* Not wrong: rank 1 takes a long message over a slow network, and looks often. */
static int patient(ferry *f)
{
    enum { BYTES = 100000 };
    ferry_op op = {0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    char *data = calloc(BYTES, 1);
    track.op = &op;
    int rank = ferry_rank(f), error = data == NULL;
    if (error == 0 && rank == 0)
        error = ferry_send(f, 1, 7, data, BYTES, NULL);
    if (error == 0 && rank == 1)
        error = ferry_receive(f, 0, 7, data, BYTES, &track);
    while (error == 0 && rank == 1 && (error = ferry_op_test(f, &op)) == FERRY_EAGAIN)
        error = ferry_wait(f, 100000) < 0;
    if (error == 0)
        error = ferry_barrier(f);
    free(data);
    return error == 0 ? 0 : EXIT_FAILURE;
}

static int deep(int levels)
{
    volatile char room[4096];
    memset((char *)room, levels, sizeof(room));
    return levels == 0 ? room[0] : deep(levels - 1) + room[1];
}

/* One frame that reaches below the stack. */
static int wide(void)
{
    volatile char room[100000];
    memset((char *)room, 1, sizeof(room));
    return room[0];
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account a = {0};
    const char *what = argc > 1 ? argv[1] : "";
    ferry_user_data_set(f, &a);
    if (ferry_handler_register(f, "request", on_request, &a.handler) != 0)
        return EXIT_FAILURE;
    if (strcmp(what, "hasty") == 0)
        return hasty(f, &a);
    if (strcmp(what, "stuck") == 0)
        return stuck(f, &a);
    if (strcmp(what, "deadlock") == 0)
        return deadlock(f);
    if (strcmp(what, "restless") == 0)
        return restless(f, &a);
    if (strcmp(what, "spinning") == 0)
        return spinning(f, &a);
    if (strcmp(what, "crowded") == 0)
        return crowded(f);
    if (strcmp(what, "sleepless") == 0)
        return sleepless(f);
    if (strcmp(what, "steps") == 0)
        return steps(f);
    if (strcmp(what, "meetings") == 0)
        return meetings(f);
    if (strcmp(what, "patient") == 0)
        return patient(f);
    if (argc > 3 && strcmp(what, "deep") == 0 && ferry_rank(f) == atoi(argv[2]))
        return deep(atoi(argv[3])) == -1;
    if (strcmp(what, "wide") == 0 && ferry_rank(f) == 0)
        return wide() == -1;
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
