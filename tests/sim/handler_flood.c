/* Goal: handlers start puts, gets, remote words, transfers and two-sided messages faster than slow
 * targets take them. They are refused what would wait beyond FERRY_WAITING_BYTES, and nothing else.
 * Each accepted operation is done once, also where memory is refused, and memory stays bounded.
 * Method: each turn, a handler starts one operation after the other, of one kind, to one other
 * rank, until it is refused one. Ranks compute between polls. All ranks share this process, so one
 * global account sees what each has started and what has come. The simulator watches the memory in
 * use (ferry sim --memory). It is for the simulator alone, one thread.
 *
 * Run as FERRY_WAITING_BYTES=BYTES ferry sim -n N handler_flood TURNS. */
#include <string.h>

#include "oracle.h"

enum {
    RANKS_MAX = 8,
    LONG = 40000,
    MAIL_LONG = 20000,
    RECEIVES = 4,
    TRIES_MAX = 1000,
    PATIENCE = 100000, /* rounds */
    STARTED_MAX = 3000 /* in one turn; none comes near without a bound */
};

#define MAGIC UINT64_C(0x0123456789abcdef)

/* The operations. For some, the target counts how often they came; for all that are tracked, the
 * source does. */
typedef enum sort {
    PUT,
    PUT_LONG,
    PUT_VECTOR,
    GET,
    ADD,
    PUT_RUN,
    GET_RUN,
    SEND,
    SEND_LONG,
    SORTS
} sort;

/* Memory of a rank that others use. */
typedef struct window {
    uint64_t words[3], magic, added[RANKS_MAX];
    unsigned char bytes[LONG];
} window;

static window windows[RANKS_MAX];
static uint64_t started[SORTS][RANKS_MAX][RANKS_MAX]; /* by source and target */
static uint64_t arrived[SORTS][RANKS_MAX][RANKS_MAX];
static uint64_t refused;

typedef struct account {
    uint64_t random, tracked, ended;
    ferry_handler turn, there, here;
    bool turning;
    unsigned char buffers[RECEIVES][MAIL_LONG];
    int idle[RECEIVES], idle_count; /* receives that are not posted */
} account;

static account accounts[RANKS_MAX];
static const unsigned char data[LONG];
static uint64_t got; /* what a get brings is always the same */

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    if (receipt->error != 0 && receipt->error != FERRY_ENOMEM)
        must(f, receipt->error, "operation");
    ((account *)arg)->ended++;
}

static void there(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    (void)address, (void)size_bytes;
    arrived[argument][peer][ferry_rank(f)]++;
}

static void here(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    (void)f, (void)peer, (void)address, (void)size_bytes, (void)argument;
}

static void on_message(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = &accounts[ferry_rank(f)];
    if (receipt->error == 0)
        arrived[receipt->tag][receipt->rank][ferry_rank(f)]++;
    else if (receipt->error != FERRY_ENOMEM && receipt->error != FERRY_ECANCELED)
        must(f, receipt->error, "receive");
    a->idle[a->idle_count++] = (int)((unsigned char *)arg - a->buffers[0]) / MAIL_LONG;
}

/* Posts the receives that have ended, as far as there is memory. */
static void post(ferry *f, account *a)
{
    while (a->idle_count > 0) {
        unsigned char *buffer = a->buffers[a->idle[a->idle_count - 1]];
        const ferry_track track = {.size = sizeof(track),
                                   .completed = on_message,
                                   .completed_arg = buffer,
                                   .failed = on_message,
                                   .failed_arg = buffer};
        int error = ferry_receive(f, FERRY_ANY_RANK, FERRY_ANY_TAG, buffer, MAIL_LONG, &track);
        if (error == FERRY_ENOMEM)
            return;
        must(f, error, "receive");
        a->idle_count--;
    }
}

static int start(ferry *f, int rank, sort what, const ferry_track *track)
{
    window *to = &windows[rank];
    const account *a = &accounts[ferry_rank(f)];
    const ferry_memory_call remote = {.handler = a->there, .argument = what},
                            local = {a->here, 0, 0};
    const ferry_piece pieces[] = {{to->words, data, sizeof(uint64_t)},
                                  {to->words + 2, data, sizeof(uint64_t)}};
    const ferry_transfer out = {to->words, data, sizeof(uint64_t), &remote, &local, 0};
    const ferry_transfer in = {&got, &to->magic, sizeof(uint64_t), &remote, &local, 0};
    const ferry_atomic add = {FERRY_FETCH_ADD, &to->added[ferry_rank(f)], 1, 0};
    switch (what) {
    case PUT:
        return ferry_put(f, rank, to->words, data, sizeof(uint64_t), track);
    case PUT_LONG:
        return ferry_put(f, rank, to->bytes, data, LONG, track);
    case PUT_VECTOR:
        return ferry_put_vector(f, rank, pieces, 2, track);
    case GET:
        return ferry_get(f, rank, &got, &to->magic, sizeof(uint64_t), track);
    case ADD:
        return ferry_atomic_update(f, rank, &add, NULL, track);
    case PUT_RUN:
        return ferry_put_run(f, rank, &out, track);
    case GET_RUN:
        return ferry_get_run(f, rank, &in, track);
    case SEND:
        return ferry_send(f, rank, SEND, data, sizeof(uint64_t), track);
    default:
        return ferry_send(f, rank, SEND_LONG, data, MAIL_LONG, track);
    }
}

static void on_turn(ferry *f, int source, const ferry_message *message)
{
    account *a = &accounts[ferry_rank(f)];
    const ferry_track track = {.size = sizeof(track),
                               .completed = on_end,
                               .completed_arg = a,
                               .failed = on_end,
                               .failed_arg = a};
    int self = ferry_rank(f), ranks = ferry_ranks(f), error = 0, count = 0;
    int rank = (self + 1 + (int)draw(&a->random, (uint64_t)ranks - 1)) % ranks;
    (void)source, (void)message;
    a->turning = false;
    sort what = (sort)draw(&a->random, SORTS);
    for (; error == 0 && count < STARTED_MAX; count++) {
        bool tracked = what == GET || draw(&a->random, 2) == 0;
        error = start(f, rank, what, tracked ? &track : NULL);
        started[what][self][rank] += error == 0;
        a->tracked += error == 0 && tracked;
    }
    if (error == FERRY_EAGAIN && strstr(ferry_error_message(f), "waiting_bytes") != NULL)
        refused++;
    else if (error != FERRY_ENOMEM)
        wrong(f, "a turn did not end with a refusal", (uint64_t)-error, (uint64_t)count);
}

/* Takes in what has come, now and then slowly. */
static void go_on(ferry *f, account *a)
{
    int handled = ferry_poll(f);
    must(f, handled < 0 ? handled : 0, "poll");
    post(f, a);
    ferry_compute(f, draw(&a->random, 8) == 0 ? 1e-3 : 5e-6);
}

static void take_turns(ferry *f, account *a, long turns)
{
    const ferry_message turn = {.handler = a->turn};
    for (long i = 0; i < turns; i++) {
        int error, tries = 0;
        while ((error = ferry_request_send(f, ferry_rank(f), &turn, NULL)) == FERRY_ENOMEM &&
               ++tries < TRIES_MAX)
            go_on(f, a);
        must(f, error, "request");
        a->turning = true;
        while (a->turning)
            go_on(f, a);
    }
}

/* Whether all that ranks have started to this one has come, and this one's own has ended. */
static bool is_done(int self, int ranks)
{
    bool done = accounts[self].ended == accounts[self].tracked;
    for (int i = 0; i < ranks; i++) {
        done = done && started[ADD][i][self] == windows[self].added[i];
        for (sort what = PUT_RUN; what < SORTS; what++)
            done = done && started[what][i][self] == arrived[what][i][self];
    }
    return done;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int self = ferry_rank(f), ranks = ferry_ranks(f);
    if (argc != 2 || ranks < 2 || ranks > RANKS_MAX)
        return 2;
    account *a = &accounts[self];
    *a = (account){.random = first_random(self), .idle_count = RECEIVES};
    windows[self].magic = MAGIC;
    for (int i = 0; i < RECEIVES; i++)
        a->idle[i] = i;
    must(f, ferry_handler_register(f, "turn", on_turn, &a->turn), "handler");
    must(f, ferry_memory_handler_register(f, "there", there, &a->there), "handler");
    must(f, ferry_memory_handler_register(f, "here", here, &a->here), "handler");
    must(f, ferry_memory_register(f, &windows[self], sizeof windows[self]), "register");
    must(f, ferry_barrier(f), "barrier");
    take_turns(f, a, strtol(argv[1], NULL, 10));
    must(f, ferry_quiesce(f), "quiesce");
    for (int i = 0; !is_done(self, ranks); i++) {
        if (i == PATIENCE)
            wrong(f, "not all has come", a->ended, a->tracked);
        go_on(f, a);
    }
    must(f, ferry_barrier(f), "barrier");
    if (refused == 0 || (got != MAGIC && got != 0))
        wrong(f, "nothing was refused, or a get is wrong", refused, got);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
