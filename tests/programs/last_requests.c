/* Goal: the last requests of a rank before it leaves are handled, however busy their target is: the
 * target is told of the leaving after them. Method: rank 1 leaves. Ranks from 3 on let it name its
 * successor, and send it requests before they let it go. It passes these on to rank 0, which takes
 * 2 ms for each. Rank 0 has let rank 1 go before; it handles as many requests as were sent, and
 * none after it was told. Rank 2 is the successor. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { SINK, LEAVER, SUCCESSOR, SENDERS, REQUESTS = 60, RANKS_MAX = 64, WRONG = 3 };

typedef struct state {
    ferry_handler pass, work, report;
    int handled, sent, reports;
    bool told, wrong;
} state;

static void pass(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    state *s = ferry_user_data(f);
    ferry_message on = *message;
    on.handler = s->work;
    s->wrong = s->wrong || ferry_request_send(f, SINK, &on, NULL) != 0 ||
               ferry_send(f, SINK, 1, NULL, 0, NULL) != 0; /* never received */
}

static void work(ferry *f, int source, const ferry_message *message)
{
    (void)message;
    state *s = ferry_user_data(f);
    s->wrong = s->wrong || source != LEAVER || s->told;
    s->handled++;
    ferry_compute(f, 2e-3);
}

static void report(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    state *s = ferry_user_data(f);
    s->sent += (int)message->words[0];
    s->reports++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    state *s = arg;
    s->told = s->told || event->rank == LEAVER;
    s->wrong = s->wrong || event->died;
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)receipt;
    (*(uint64_t *)arg)++;
}

/* With a slow network the leaver may have been let go by all in the midst of it. */
static int send_all(ferry *f, const state *s)
{
    const ferry_message m = {.handler = s->pass};
    ferry_message sum = {.handler = s->report, .word_count = 1, .words = {0}};
    uint64_t failed = 0;
    const ferry_track track = {.size = sizeof(track),
                               .completed = on_end,
                               .completed_arg = &sum.words[0],
                               .failed = on_end,
                               .failed_arg = &failed};
    int error = 0, sent = 0;
    ferry_compute(f, 20e-6); /* until the leaver has asked */
    (void)ferry_poll(f);
    for (; sent < REQUESTS && (error = ferry_request_send(f, LEAVER, &m, &track)) == 0; sent++)
        ferry_compute(f, 5e-6); /* until the others have let it go */
    while (sum.words[0] + failed < (uint64_t)sent)
        (void)ferry_wait(f, FERRY_FOREVER);
    return error == 0 || error == FERRY_EPEER ? ferry_request_send(f, SINK, &sum, NULL) : error;
}

static bool is_done(ferry *f, const state *s)
{
    return s->told && (ferry_rank(f) != SINK || s->reports == ferry_ranks(f) - SENDERS);
}

static int run(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static state states[RANKS_MAX]; /* ranks are told of others while they close, too */
    int rank = ferry_rank(f);
    if (ferry_ranks(f) > RANKS_MAX)
        return WRONG;
    state *s = &states[rank];
    if (ferry_ranks(f) <= SENDERS)
        return 0; /* nothing to be seen */
    ferry_user_data_set(f, s);
    if (ferry_peer_watch(f, on_peer, s) != 0 ||
        ferry_handler_register(f, "pass", pass, &s->pass) != 0 ||
        ferry_handler_register(f, "work", work, &s->work) != 0 ||
        ferry_handler_register(f, "report", report, &s->report) != 0 || ferry_barrier(f) != 0)
        return WRONG;
    if (rank >= SENDERS && send_all(f, s) != 0)
        return WRONG;
    if (rank == LEAVER)
        return ferry_leave(f) == 0 && !s->wrong ? 0 : WRONG;
    while (!is_done(f, s))
        (void)ferry_wait(f, FERRY_FOREVER);
    if (!s->wrong && s->handled >= s->sent)
        return 0;
    fprintf(stderr, "rank %d: %d of %d requests handled\n", rank, s->handled, s->sent);
    return WRONG;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
