/* Goal: what Ferry promises holds on any number of simulated ranks, whatever the network does.
 * Requests and messages to moving objects are handled exactly once and in order. No object is lost
 * or doubled. Each tracked operation ends once. Messages to destroyed objects fail at their sender.
 * Puts and gets arrive. A quiescence is declared when nothing is left and not before. Method: every
 * rank sends at random from its program and from handlers. The oracle stands outside the runtime:
 * all ranks share this process, so one global account sees each sending and each handling
 * immediately. It is for the simulator alone, one thread.
 *
 * Where memory is refused (ferry sim -f malloc=...) calls that did nothing are repeated. A call
 * that cannot be repeated ends the job with LACK_STATUS.
 *
 * Run as ferry sim -n N workload [ROUNDS [MESSAGES [CHAIN]]]. */
#include <string.h>

#include "oracle.h"

enum { OBJECTS = 3, TRIES_MAX = 1000, BYTES_MAX = 6000 };

/* Where a sending is called from. A call may poll before it sends, and handlers that run then send
 * first: order is promised within each stream. */
enum { FROM_MAIN, FROM_HANDLER, STREAMS };

typedef struct oracle {
    int ranks, objects;
    uint32_t *request_sent, *request_seen; /* by source, stream, target */
    uint32_t *message_sent, *message_seen; /* by source, stream, object */
    int *alive;                            /* copies of each object */
    bool *destroyed;
    uint64_t sent, ended; /* what a quiescence waits for */
    uint64_t tracked, tracked_ended;
    uint64_t quiescences, moves;
} oracle;

/* All ranks' truth. */
static oracle truth;

typedef struct thing {
    uint64_t index;
    uint64_t handled;
} thing;

typedef struct account {
    uint64_t random;
    ferry_handler request, message;
    ferry_object *objects; /* of all ranks */
    uint64_t *window;      /* of this rank, for puts */
    bool in_handler;
} account;

/* Whether to repeat a call that was refused memory; `*tries` counts. */
static bool again(ferry *f, const account *a, int error, int *tries)
{
    if (error != FERRY_ENOMEM || ++*tries > TRIES_MAX)
        return false;
    if (!a->in_handler)
        ferry_poll(f);
    return true;
}

static void *take(size_t count, size_t size_bytes)
{
    void *block = NULL;
    for (int i = 0; i < TRIES_MAX && block == NULL; i++)
        block = calloc(count, size_bytes);
    if (block == NULL)
        exit(LACK_STATUS);
    return block;
}

static size_t request_index(int source, int stream, int target)
{
    return ((size_t)source * STREAMS + (size_t)stream) * (size_t)truth.ranks + (size_t)target;
}

static size_t message_index(int source, int stream, size_t object)
{
    return ((size_t)source * STREAMS + (size_t)stream) * (size_t)truth.objects + object;
}

/* Data that tell where they belong. */
static size_t fill(account *a, unsigned char *data, uint64_t number)
{
    size_t size_bytes = draw(&a->random, 3) == 0 ? draw(&a->random, BYTES_MAX) : 0;
    for (size_t i = 0; i < size_bytes; i++)
        data[i] = (unsigned char)(number + i);
    return size_bytes;
}

static void check_data(ferry *f, const ferry_message *message, uint64_t number)
{
    const unsigned char *data = message->data;
    for (size_t i = 0; i < message->size_bytes; i++)
        if (data[i] != (unsigned char)(number + i))
            wrong(f, "data differ", number, i);
}

static void send_request(ferry *f, account *a, int target, uint64_t hops)
{
    unsigned char data[BYTES_MAX];
    uint64_t stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    uint32_t number = truth.request_sent[request_index(ferry_rank(f), (int)stream, target)]++;
    ferry_message message = {.handler = a->request,
                             .word_count = 3,
                             .words = {number, hops, stream},
                             .data = data,
                             .size_bytes = fill(a, data, number)};
    truth.sent++;
    int error, tries = 0;
    do
        error = ferry_request_send(f, target, &message, NULL);
    while (again(f, a, error, &tries));
    must(f, error, "request");
}

/* The end of a tracked message; `arg` is its own flag. */
static void on_end(ferry *f, bool *flag, const ferry_receipt *receipt, bool failed)
{
    if (*flag)
        wrong(f, "an operation ended twice", (uint64_t)receipt->tag, 0);
    free(flag);
    truth.tracked_ended++;
    if (!failed)
        return;
    if (receipt->error == FERRY_ENOMEM)
        must(f, FERRY_ENOMEM, "message");
    if (receipt->error != FERRY_ENOENT || !truth.destroyed[receipt->tag])
        wrong(f, "a message failed to an object that is alive", (uint64_t)receipt->tag, 0);
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    on_end(f, arg, receipt, false);
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    on_end(f, arg, receipt, true);
}

/* Every third object is mortal; what is sent to those is tracked, so that none is lost unseen. */
static bool is_mortal(size_t object)
{
    return object % OBJECTS == 2;
}

static void send_message(ferry *f, account *a, size_t object, uint64_t hops)
{
    unsigned char data[BYTES_MAX];
    uint64_t stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    uint32_t number = truth.message_sent[message_index(ferry_rank(f), (int)stream, object)]++;
    ferry_message message = {.handler = a->message,
                             .word_count = 3,
                             .tag = (int32_t)object,
                             .words = {number, hops, stream},
                             .data = data,
                             .size_bytes = is_mortal(object) ? 0 : fill(a, data, number)};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    bool *ended = is_mortal(object) ? take(1, sizeof(*ended)) : NULL;
    track.completed = on_completed;
    track.failed = on_failed;
    track.completed_arg = track.failed_arg = ended;
    truth.tracked += ended != NULL;
    truth.sent += ended == NULL;
    int error, tries = 0;
    do
        error = ferry_object_send(f, a->objects[object], &message, ended != NULL ? &track : NULL);
    while (again(f, a, error, &tries));
    if (error == FERRY_ENOENT && truth.destroyed[object]) {
        truth.tracked--;
        free(ended);
        return;
    }
    must(f, error, "message");
}

/* A handler goes on with the chain that it belongs to; some chains end early, some fork. Forks are
 * what a single wave of termination would miss: work created where it has counted already. */
static void go_on(ferry *f, account *a, uint64_t hops)
{
    if (draw(&a->random, 4) == 0)
        ferry_compute(f, (double)draw(&a->random, 2000) * 1e-9);
    uint64_t outcome = draw(&a->random, 6);
    int count = hops == 0 || outcome == 0 ? 0 : outcome == 1 ? 2 : 1;
    for (int i = 0; i < count; i++)
        if (draw(&a->random, 2) == 0)
            send_request(f, a, (int)draw(&a->random, (uint64_t)truth.ranks), hops - 1);
        else
            send_message(f, a, draw(&a->random, (uint64_t)truth.objects), hops - 1);
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    size_t index = request_index(source, (int)message->words[2], ferry_rank(f));
    if (message->words[0] != truth.request_seen[index]++)
        wrong(f, "request out of order, lost or doubled", message->words[0],
              truth.request_seen[index] - 1);
    check_data(f, message, message->words[0]);
    a->in_handler = true;
    go_on(f, a, message->words[1]);
    a->in_handler = false;
    truth.ended++;
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    uint64_t t_index = t->index; /* destroying or moving may free the thing */
    int error = 0, tries = 0;
    size_t index = message_index(source, (int)message->words[2], t->index);
    if (message->words[0] != truth.message_seen[index]++)
        wrong(f, "message out of order, lost or doubled", message->words[0],
              truth.message_seen[index] - 1);
    if (truth.destroyed[t->index])
        wrong(f, "message to a destroyed object", t->index, 0);
    check_data(f, message, message->words[0]);
    t->handled++;
    a->in_handler = true;
    go_on(f, a, message->words[1]);
    if (is_mortal(t->index) && draw(&a->random, 12) == 0) {
        truth.destroyed[t->index] = true;
        do
            error = ferry_object_destroy(f, object);
        while (again(f, a, error, &tries));
    } else if (draw(&a->random, 3) == 0) {
        truth.moves++;
        int target = (int)draw(&a->random, (uint64_t)truth.ranks);
        do
            error = ferry_object_move(f, object, target);
        while (again(f, a, error, &tries));
    }
    must(f, error, "destroy or move");
    a->in_handler = false;
    truth.ended += !is_mortal(t_index);
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    thing *t = take(1, sizeof(*t));
    if (size_bytes != sizeof(*t))
        wrong(f, "unpack", size_bytes, 0);
    memcpy(t, buffer, size_bytes);
    truth.alive[t->index]++;
    return t;
}

static void destroy(ferry *f, void *data)
{
    thing *t = data;
    if (--truth.alive[t->index] < 0)
        wrong(f, "object freed twice", t->index, 0);
    free(t);
}

static void create_objects(ferry *f, account *a, ferry_object_type type)
{
    a->objects = take((size_t)truth.objects, sizeof(*a->objects));
    for (int i = 0; i < OBJECTS; i++) {
        thing *t = take(1, sizeof(*t));
        t->index = (uint64_t)(ferry_rank(f) * OBJECTS + i);
        truth.alive[t->index]++;
        int error, tries = 0;
        do
            error = ferry_object_create(f, type, t, &a->objects[t->index]);
        while (again(f, a, error, &tries));
        must(f, error, "create");
        if (i == 1)
            must(f, ferry_balance_add(f, a->objects[t->index], NULL), "balance_add");
    }
    must(f,
         ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, a->objects, a->objects, (size_t)truth.objects),
         "allreduce");
}

/* Every rank puts its mark to every other's window and reads one back. */
static void exchange(ferry *f, account *a, uint64_t round)
{
    uint64_t me = (uint64_t)ferry_rank(f), ranks = (uint64_t)truth.ranks;
    uint64_t *windows = take(ranks, sizeof(*windows));
    windows[me] = (uint64_t)(uintptr_t)a->window;
    must(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, windows, windows, ranks), "allreduce");
    for (uint64_t i = 0; i < ranks && i < 8; i++) {
        uint64_t to = (me + i) % ranks, mark = round * 1000000 + me;
        ferry_op op;
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &op;
        uint64_t *place = (uint64_t *)(uintptr_t)windows[to] + me;
        must(f, ferry_put(f, (int)to, place, &mark, sizeof(mark), &track), "put");
        must(f, ferry_op_wait(f, &op), "put's end");
        uint64_t back = 0;
        must(f, ferry_get(f, (int)to, &back, place, sizeof(back), NULL), "get");
        if (back != mark)
            wrong(f, "got what was not put", back, mark);
    }
    must(f, ferry_barrier(f), "barrier");
    for (uint64_t i = 0; i < ranks && i < 8; i++) {
        uint64_t from = (me + ranks - i) % ranks;
        if (a->window[from] != round * 1000000 + from)
            wrong(f, "window", a->window[from], from);
    }
    must(f, ferry_barrier(f), "barrier");
    free(windows);
}

/* Nobody sends between a quiescence and the barrier behind it: the sums must agree. */
static void check_quiescence(ferry *f)
{
    truth.quiescences++;
    if (truth.sent != truth.ended)
        wrong(f, "quiescence declared with messages in flight", truth.sent, truth.ended);
    if (truth.tracked != truth.tracked_ended)
        wrong(f, "quiescence declared before ends were reported", truth.tracked,
              truth.tracked_ended);
    for (int i = 0; i < truth.objects; i++)
        if (truth.alive[i] > !truth.destroyed[i])
            wrong(f, "object doubled", (uint64_t)i, (uint64_t)truth.alive[i]);
        else if (truth.alive[i] < !truth.destroyed[i])
            wrong(f, "quiescence declared with an object in flight", (uint64_t)i, 0);
}

/* How long to play, and how many handlings one sending may lead to. */
typedef struct plan {
    uint64_t rounds, messages, chain;
} plan;

static void play_round(ferry *f, account *a, uint64_t round, const plan *p)
{
    must(f, ferry_balance_enable(f, round % 2 == 1), "phase");
    for (uint64_t i = 0; i < p->messages; i++) {
        uint64_t chain =
            draw(&a->random, p->chain); /* one draw a statement: compilers order arguments */
        if (draw(&a->random, 2) == 0)
            send_request(f, a, (int)draw(&a->random, (uint64_t)truth.ranks), chain);
        else
            send_message(f, a, draw(&a->random, (uint64_t)truth.objects), chain);
        if (draw(&a->random, 4) == 0)
            ferry_poll(f);
        if (draw(&a->random, 8) == 0)
            ferry_compute(f, (double)draw(&a->random, 20000) * 1e-9);
    }
    must(f, ferry_quiesce(f), "quiesce");
    check_quiescence(f);
    must(f, ferry_barrier(f), "barrier");
    exchange(f, a, round);
}

static void open_truth(ferry *f)
{
    if (truth.ranks != 0)
        return;
    truth.ranks = ferry_ranks(f);
    truth.objects = truth.ranks * OBJECTS;
    size_t requests = (size_t)truth.ranks * STREAMS * (size_t)truth.ranks;
    size_t messages = (size_t)truth.ranks * STREAMS * (size_t)truth.objects;
    truth.request_sent = take(requests, sizeof(uint32_t));
    truth.request_seen = take(requests, sizeof(uint32_t));
    truth.message_sent = take(messages, sizeof(uint32_t));
    truth.message_seen = take(messages, sizeof(uint32_t));
    truth.alive = take((size_t)truth.objects, sizeof(int));
    truth.destroyed = take((size_t)truth.objects, sizeof(bool));
}

/* The last rank frees it. */
static void close_truth(void)
{
    static int closed;
    if (++closed < truth.ranks)
        return;
    printf("%" PRIu64 " messages, %" PRIu64 " tracked, %" PRIu64 " moves, %" PRIu64
           " quiescences\n",
           truth.sent, truth.tracked, truth.moves, truth.quiescences);
    free(truth.request_sent);
    free(truth.request_seen);
    free(truth.message_sent);
    free(truth.message_seen);
    free(truth.alive);
    free(truth.destroyed);
}

/* Operations have ended and objects that travelled without work have arrived. */
static bool is_settled(void)
{
    bool settled = truth.tracked == truth.tracked_ended;
    for (int i = 0; i < truth.objects; i++)
        settled = settled && truth.alive[i] == !truth.destroyed[i];
    return settled;
}

static void finish(ferry *f, account *a)
{
    must(f, ferry_balance_enable(f, false), "phase");
    must(f, ferry_quiesce(f), "quiesce");
    must(f, ferry_barrier(f), "barrier");
    while (!is_settled())
        ferry_wait(f, 1000000);
    must(f, ferry_barrier(f), "barrier");
    for (int i = 0; i < truth.objects; i++)
        if (ferry_object_data(f, a->objects[i]) != NULL)
            must(f, ferry_object_destroy(f, a->objects[i]), "destroy");
    must(f, ferry_free(f, a->window), "free");
    free(a->objects);
    close_truth();
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof(ops),
                                         .name = "thing",
                                         .flat_bytes = sizeof(thing),
                                         .unpack = unpack,
                                         .destroy = destroy};
    const plan p = {.rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 3,
                    .messages = argc > 2 ? strtoull(argv[2], NULL, 10) : 40,
                    .chain = argc > 3 ? strtoull(argv[3], NULL, 10) : 4};
    account a = {.random = first_random(ferry_rank(f))};
    ferry_object_type type;
    void *window;
    open_truth(f);
    ferry_user_data_set(f, &a);
    must(f, ferry_object_type_register(f, &ops, &type), "type");
    must(f, ferry_handler_register(f, "request", on_request, &a.request), "handler");
    must(f, ferry_object_handler_register(f, "message", on_message, &a.message), "handler");
    must(f, ferry_alloc(f, (size_t)truth.ranks * sizeof(uint64_t), &window), "alloc");
    a.window = window;
    create_objects(f, &a, type);
    for (uint64_t round = 0; round < p.rounds; round++)
        play_round(f, &a, round, &p);
    finish(f, &a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
