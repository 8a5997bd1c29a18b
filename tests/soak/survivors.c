/* Goal: a program that goes on when ranks die, in which everything that may be in flight is: it
 * counts that each tracked operation has exactly one end. Method: for a while each rank asks others
 * at random for requests, puts, gets and two-sided messages, long and short, and all meet in
 * collectives; whoever is told of a death prints when. survivors close|ping. tests/soak/soak.c
 * kills its ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/collective.h>
#include <ferry/ferry.h>

#include "../support/random.h"

enum { PENDING_MAX = 16, LONG_BYTES = 200000, RUN_NS = 25 * 1000 * 1000 };

typedef struct state {
    ferry *f;
    uint64_t random, started, ended, wrong;
    char what[240]; /* was wrong last */
    int pending;
    ferry_handler ask, mark;
    void *shared[64];                 /* by rank */
    char out[LONG_BYTES];             /* what is sent */
    char in[PENDING_MAX][LONG_BYTES]; /* what is received or got */
    bool taken[PENDING_MAX];
} state;

/* One operation, and the buffer it uses. */
typedef struct watch {
    state *s;
    int slot, ends;
} watch;

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    watch *w = arg;
    state *s = w->s;
    bool gone = receipt->error == FERRY_EPEER && ferry_peer_is_gone(f, receipt->rank);
    if (++w->ends != 1 || (receipt->event == FERRY_FAILED && !gone)) {
        s->wrong++;
        snprintf(s->what, sizeof(s->what),
                 "end %d of an operation with rank %d, tag %d, %zu bytes: %s", w->ends,
                 receipt->rank, receipt->tag, receipt->size_bytes, receipt->reason);
    }
    s->ended++;
    s->pending--;
    if (w->slot >= 0)
        s->taken[w->slot] = false;
    free(w);
}

/* In ferry_close too, when the state is no more. */
static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)arg;
    if (!event->died)
        return;
    printf("told %d %d %" PRIu64 "\n", ferry_rank(f), event->rank, ferry_now(f));
    fflush(stdout);
}

/* Sets `*track` for an operation that has yet to start; NULL without memory. */
static watch *watch_next(state *s, int slot, ferry_track *track)
{
    watch *w = malloc(sizeof(*w));
    if (w == NULL)
        return NULL;
    *w = (watch){.s = s, .slot = slot};
    *track = (ferry_track){.size = sizeof(*track),
                           .completed = on_end,
                           .completed_arg = w,
                           .failed = on_end,
                           .failed_arg = w};
    return w;
}

/* The call that was to start it has returned `error`. */
static void note(state *s, watch *w, int error)
{
    if (error == 0) {
        s->started++;
        s->pending++;
        return;
    }
    if (error != FERRY_EPEER) {
        s->wrong++;
        snprintf(s->what, sizeof(s->what), "%s", ferry_error_message(s->f));
    }
    free(w);
}

static int free_slot(const state *s)
{
    int slot = 0;
    while (slot < PENDING_MAX && s->taken[slot])
        slot++;
    return slot;
}

/* Somebody has posted a receive and asks for its message. */
static void on_ask(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    if (s == NULL) {
        fprintf(stderr, "survivors: rank %d: rank %d asks behind a quiescence\n", ferry_rank(f),
                source);
        abort();
    }
    ferry_track track;
    watch *w = watch_next(s, -1, &track);
    if (w != NULL)
        note(s, w, ferry_send(f, source, message->tag, s->out, message->words[0], &track));
}

static void on_mark(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
}

/* Receives a message, long or short, that `rank` is asked to send. */
static int exchange(state *s, int rank, int slot, const ferry_track *track)
{
    size_t size = draw(&s->random, 2) == 0 ? draw(&s->random, 100) : draw(&s->random, LONG_BYTES);
    int error = ferry_receive(s->f, rank, slot, s->in[slot], LONG_BYTES, track);
    if (error != 0)
        return error;
    const ferry_message ask = {.handler = s->ask, .tag = slot, .word_count = 1, .words = {size}};
    error = ferry_request_send(s->f, rank, &ask, NULL);
    s->wrong += error != 0 && error != FERRY_EPEER;
    return 0; /* the receive has an end in any case */
}

static void start_one(state *s)
{
    int rank = (int)draw(&s->random, (uint64_t)ferry_ranks(s->f));
    int slot = free_slot(s);
    if (slot == PENDING_MAX || rank == ferry_rank(s->f) || ferry_peer_is_gone(s->f, rank))
        return;
    ferry_track track;
    watch *w = watch_next(s, slot, &track);
    if (w == NULL)
        return;
    s->taken[slot] = true;
    size_t size = draw(&s->random, LONG_BYTES);
    const ferry_message mark = {.handler = s->mark, .data = s->out, .size_bytes = size};
    int error;
    switch (draw(&s->random, 4)) {
    case 0:
        error = ferry_request_send(s->f, rank, &mark, &track);
        break;
    case 1:
        error = ferry_put(s->f, rank, s->shared[rank], s->out, size, &track);
        break;
    case 2:
        error = ferry_get(s->f, rank, s->in[slot], s->shared[rank], size, &track);
        break;
    default:
        error = exchange(s, rank, slot, &track);
    }
    s->taken[slot] = error == 0;
    note(s, w, error);
}

/* Collectives finish or fail, and never hang. */
static void meet(state *s)
{
    int64_t sum = 1;
    int error = ferry_allreduce(s->f, FERRY_INT64, FERRY_SUM, &sum, &sum, 1);
    s->wrong += error != 0 ? error != FERRY_EPEER : sum != ferry_ranks(s->f);
}

/* Plays a while. If a death came before the ranks told each other where their memory is, this rank
 * only answers. */
static int play(state *s, bool answers_alone)
{
    uint64_t end_ns = ferry_now(s->f) + RUN_NS;
    while (!answers_alone && ferry_now(s->f) < end_ns) {
        start_one(s);
        (void)ferry_poll(s->f);
    }
    meet(s);
    while (s->pending > 0)
        (void)ferry_wait(s->f, FERRY_FOREVER);
    int error = ferry_quiesce(s->f);
    /* Ends what others asked for last. */
    while (s->pending > 0)
        (void)ferry_wait(s->f, FERRY_FOREVER);
    return error;
}

static int open_state(state *s)
{
    int error = ferry_handler_register(s->f, "ask", on_ask, &s->ask);
    if (error == 0)
        error = ferry_handler_register(s->f, "mark", on_mark, &s->mark);
    if (error == 0)
        error = ferry_peer_watch(s->f, on_peer, NULL);
    void *mine = NULL;
    if (error == 0)
        error = ferry_alloc(s->f, LONG_BYTES, &mine);
    if (error == 0)
        error = ferry_allgather(s->f, &mine, sizeof(mine), s->shared);
    return error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    bool plays = argc == 2 && strcmp(argv[1], "ping") == 0;
    if ((!plays && (argc != 2 || strcmp(argv[1], "close") != 0)) || ferry_ranks(f) > 64) {
        fprintf(stderr, "usage: survivors close|ping, on 2 to 64 ranks\n");
        return 2;
    }
    state *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return 1;
    s->f = f;
    s->random = (uint64_t)ferry_rank(f) + UINT64_C(0x9e3779b97f4a7c15);
    ferry_user_data_set(f, s);
    int error = open_state(s);
    if (plays && (error == 0 || error == FERRY_EPEER))
        error = play(s, error != 0);
    bool wrong = s->wrong != 0 || s->started != s->ended;
    if ((error != 0 && error != FERRY_EPEER) || wrong)
        fprintf(stderr,
                "survivors: rank %d: %" PRIu64 " started, %" PRIu64 " ended, %" PRIu64
                " wrong: %s; %s\n",
                ferry_rank(f), s->started, s->ended, s->wrong, s->what, ferry_error_message(f));
    ferry_user_data_set(f, NULL);
    free(s);
    return wrong || (error != 0 && error != FERRY_EPEER);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
