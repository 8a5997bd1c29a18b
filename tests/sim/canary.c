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

/* As stuck, but looks every tenth of a millisecond. */
static int restless(ferry *f, const account *a)
{
    while (a->count == 0)
        ferry_wait(f, 100000);
    return 0;
}

/* Polls for ever without waiting. */
static int spinning(ferry *f, const account *a)
{
    while (a->count == 0)
        ferry_poll(f);
    return 0;
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
