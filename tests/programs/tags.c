/* Goal: whatever ranks poll for, requests from one rank to another run in the order sent among
 * those with the same tag, and under polls for any tag among all. Puts keep their place among
 * requests. A rank that waits for an arrival never waits for a tag. Method: all ranks send at
 * random, from their programs and from handlers: requests of all sizes, tracked, with arrival and
 * synchronous; broadcasts; puts with handlers; puts and gets with a tag and without. In each round
 * one rank polls for one tag alone until all others have told it that they are done. Each message
 * says what its source has sent before; the target compares.
 *
 * If there are gets, puts without a tag may come before requests that are kept (tags.h): then only
 * the gets are compared with the requests.
 *
 * Run as tags [ROUNDS [SENDINGS [SEED]]]; under the simulator the seed is its. */
#include <stdbool.h>
#include <string.h>

#include "../sim/oracle.h"

enum {
    TAGS = 3, /* 1 to TAGS */
    RANKS_MAX = 8,
    HOPS_MAX = 3,
    SLOT_BYTES = 40000,
    /* Slots of a stream: for puts without a tag, with each tag, and with a handler of each tag. */
    PLAIN = 0,
    TAGGED = 0,
    RUN = TAGS,
    SLOTS = 2 * TAGS + 1,
};

/* Messages from the program and from handlers come in two orders: a call may poll first. */
enum { FROM_MAIN, FROM_HANDLER, STREAMS };

/* The messages of one stream to one rank. */
typedef struct sent {
    uint32_t all, by_tag[TAGS + 1], plain_put, tagged_put[TAGS + 1];
} sent;

/* The same, as the target has seen them. */
typedef struct seen {
    uint32_t by_tag[TAGS + 1];
    uint32_t low; /* all below have come */
    uint8_t *come;
    uint32_t capacity;
} seen;

typedef struct account {
    uint64_t random;
    bool gets, in_handler;
    int32_t polled; /* 0: any */
    int released;   /* ranks that are done with this round */
    ferry_handler request, broadcast, release, run, local;
    unsigned char *window, *windows[RANKS_MAX];
    sent sent[STREAMS][RANKS_MAX], cast[STREAMS];
    seen seen[STREAMS][RANKS_MAX], heard[STREAMS][RANKS_MAX];
    uint64_t started, ended, sent_count, seen_count, locals;
    unsigned char fetched[SLOT_BYTES];
} account;

static unsigned char *slot(unsigned char *window, int source, uint64_t stream, int number)
{
    return window + (((size_t)source * STREAMS + stream) * SLOTS + (size_t)number) * SLOT_BYTES;
}

/* A put fills the ends of its range with its number. */
static uint32_t read_slot(ferry *f, const unsigned char *at)
{
    uint32_t first, last;
    memcpy(&first, at, sizeof(first));
    memcpy(&last, at + SLOT_BYTES - sizeof(last), sizeof(last));
    if (first != last)
        wrong(f, "half of a put", first, last);
    return first;
}

static void note_come(ferry *f, seen *s, uint32_t number)
{
    if (number >= s->capacity) {
        uint32_t capacity = number * 2 + 64;
        s->come = realloc(s->come, capacity);
        if (s->come == NULL)
            exit(LACK_STATUS);
        memset(s->come + s->capacity, 0, capacity - s->capacity);
        s->capacity = capacity;
    }
    if (s->come[number])
        wrong(f, "something came twice", number, 0);
    s->come[number] = 1;
    while (s->low < s->capacity && s->come[s->low])
        s->low++;
}

/* Compares with what is expected next, of the tag and of all. */
static void check_order(ferry *f, account *a, seen *s, int tag, uint32_t number, uint32_t of_tag)
{
    if (a->polled != 0 && tag != a->polled)
        wrong(f, "ran though it was not polled for", (uint64_t)tag, (uint64_t)a->polled);
    if (s->by_tag[tag]++ != of_tag)
        wrong(f, "out of the order of its tag", of_tag, s->by_tag[tag] - 1);
    if (a->polled == 0 && s->low != number)
        wrong(f, "out of the order of its source", number, s->low);
    note_come(f, s, number);
    a->seen_count++;
}

static void act(ferry *f, account *a, uint64_t hops);

/* A put without a tag is behind what is kept of its source. So a request that a poll for its tag
 * runs may come before it, or between its pieces. */
static void check_plain(ferry *f, const account *a, const unsigned char *at, uint32_t expected)
{
    uint32_t first, last;
    memcpy(&first, at, sizeof(first));
    memcpy(&last, at + SLOT_BYTES - sizeof(last), sizeof(last));
    if (!a->gets && (a->polled == 0 ? first != expected || last != expected
                                    : first > expected || last > expected))
        wrong(f, "a put out of order with requests", first, expected);
}

/* Words: number and number of its tag; stream, hops; puts sent before, plain and with the tag. */
static void on_request(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    uint32_t number = (uint32_t)message->words[0], plain = (uint32_t)message->words[2];
    uint64_t stream = message->words[1] & 1, hops = message->words[1] >> 1;
    const unsigned char *data = message->data;
    for (size_t i = 0; i < message->size_bytes; i += 97)
        if (data[i] != (unsigned char)(number + i))
            wrong(f, "data differ", number, i);
    check_order(f, a, &a->seen[stream][source], message->tag, number,
                (uint32_t)(message->words[0] >> 32));
    check_plain(f, a, slot(a->window, source, stream, PLAIN), plain);
    uint32_t is = read_slot(f, slot(a->window, source, stream, TAGGED + message->tag));
    if (is != message->words[2] >> 32)
        wrong(f, "a put out of order with requests of its tag", is, message->words[2] >> 32);
    a->in_handler = true;
    if (hops > 0)
        act(f, a, hops - 1);
    a->in_handler = false;
}

static void on_broadcast(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    check_order(f, a, &a->heard[message->words[1]][source], message->tag,
                (uint32_t)message->words[0], (uint32_t)(message->words[0] >> 32));
}

static void on_release(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)source, (void)message;
    a->released++;
}

/* The argument: number, number of its tag, tag, stream. */
static void on_run(ferry *f, int source, void *address, size_t size_bytes, uint64_t argument)
{
    account *a = ferry_user_data(f);
    uint32_t number = argument & 0xffffff, of_tag = argument >> 24 & 0xffffff;
    int tag = (int)(argument >> 48 & 7);
    uint64_t stream = argument >> 51;
    check_order(f, a, &a->seen[stream][source], tag, number, of_tag);
    if (address != slot(a->window, source, stream, RUN + tag) || size_bytes != SLOT_BYTES ||
        read_slot(f, address) != number)
        wrong(f, "a handler runs on other data", number, read_slot(f, address));
}

/* The source is kept until its local handler has run. */
static void on_local(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    account *a = ferry_user_data(f);
    (void)peer, (void)size_bytes, (void)argument;
    free(address);
    a->locals++;
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = arg;
    must(f, receipt->error, "an operation");
    a->ended++;
}

/* A get that was started: what it is to bring. */
typedef struct fetch {
    uint32_t expected;
    unsigned char data[SLOT_BYTES];
} fetch;

static void on_fetched(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = ferry_user_data(f);
    fetch *b = arg;
    must(f, receipt->error, "get");
    if (read_slot(f, b->data) != b->expected)
        wrong(f, "a get brings other data", read_slot(f, b->data), b->expected);
    free(b);
    a->ended++;
}

static void on_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    free(arg);
}

static void *take(size_t size_bytes)
{
    void *block = malloc(size_bytes + 1);
    if (block == NULL)
        exit(LACK_STATUS);
    return block;
}

/* Memory that a request may lend. Written when it is submitted, and freed. */
static void *share(ferry *f, size_t size_bytes)
{
    void *block = NULL;
    must(f, ferry_alloc(f, size_bytes + 1, &block), "alloc");
    return block;
}

static void on_shared_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    memset(arg, 0xee, receipt->size_bytes);
    must(f, ferry_free(f, arg), "free");
}

/* `data`: freed when it has been submitted; NULL: the caller frees it. */
static ferry_track random_track(account *a, void *data)
{
    return (ferry_track){.submitted = data == NULL ? NULL : on_submitted,
                         .submitted_arg = data,
                         .size = sizeof(ferry_track),
                         .completed = on_end,
                         .completed_arg = a,
                         .failed = on_end,
                         .failed_arg = a,
                         .arrival = draw(&a->random, 2) == 0};
}

static size_t random_size(account *a)
{
    static const size_t sizes[] = {0, 0, 0, 8, 100, 1000, 5000, 40000, SLOT_BYTES * 3};
    return sizes[draw(&a->random, sizeof(sizes) / sizeof(sizes[0]))];
}

static void send_request(ferry *f, account *a, int target, uint64_t hops)
{
    int stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    int tag = 1 + (int)draw(&a->random, TAGS);
    sent *s = &a->sent[stream][target];
    uint32_t number = s->all++;
    size_t size_bytes = random_size(a);
    uint64_t way = draw(&a->random, 4);
    unsigned char *data = way == 1 ? share(f, size_bytes) : take(size_bytes);
    ferry_message m = {.handler = a->request,
                       .word_count = 3,
                       .tag = tag,
                       .words = {number | (uint64_t)s->by_tag[tag]++ << 32,
                                 hops << 1 | (uint64_t)stream,
                                 s->plain_put | (uint64_t)s->tagged_put[tag] << 32},
                       .data = data,
                       .size_bytes = size_bytes};
    for (size_t i = 0; i < m.size_bytes; i += 97)
        data[i] = (unsigned char)(number + i);
    ferry_track track = random_track(a, data);
    track.submitted = on_shared_submitted;
    a->sent_count++;
    if (way == 0 && !a->in_handler) {
        must(f, ferry_request_sync(f, target, &m), "request_sync");
    } else {
        a->started += way == 1;
        must(f, ferry_request_send(f, target, &m, way == 1 ? &track : NULL), "request_send");
    }
    if (way != 1)
        free(data);
}

static void send_broadcast(ferry *f, account *a)
{
    int stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    int tag = 1 + (int)draw(&a->random, TAGS);
    sent *s = &a->cast[stream];
    const ferry_message m = {
        .handler = a->broadcast,
        .word_count = 2,
        .tag = tag,
        .words = {s->all++ | (uint64_t)s->by_tag[tag]++ << 32, (uint64_t)stream}};
    const ferry_track track = random_track(a, NULL);
    bool tracked = draw(&a->random, 2) == 0;
    a->started += tracked;
    a->sent_count += (uint64_t)ferry_ranks(f) - 1;
    must(f, ferry_request_broadcast(f, &m, tracked ? &track : NULL), "request_broadcast");
}

/* The source of a put of `number`. */
static void *numbered(uint32_t number)
{
    unsigned char *data = take(SLOT_BYTES);
    memcpy(data, &number, sizeof(number));
    memcpy(data + SLOT_BYTES - sizeof(number), &number, sizeof(number));
    return data;
}

/* A put without a tag. Some that are tracked are waited for, and then read. */
static void put_plain(ferry *f, account *a, int target)
{
    int stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    uint32_t number = ++a->sent[stream][target].plain_put;
    unsigned char *there = slot(a->windows[target], ferry_rank(f), (uint64_t)stream, PLAIN);
    void *data = numbered(number);
    const ferry_track track = random_track(a, data);
    ferry_op op;
    const ferry_track waited = {.size = sizeof(waited), .op = &op};
    uint64_t way = draw(&a->random, a->in_handler ? 2 : 3);
    a->started += way == 1;
    must(f,
         ferry_put(f, target, there, data, SLOT_BYTES,
                   way == 0   ? NULL
                   : way == 1 ? &track
                              : &waited),
         "put");
    if (way == 2)
        must(f, ferry_op_wait(f, &op), "the wait for a put");
    if (way != 1)
        free(data);
    if (way != 2)
        return;
    if (!a->gets)
        return;
    must(f, ferry_get(f, target, a->fetched, there, SLOT_BYTES, NULL), "get");
    if (read_slot(f, a->fetched) != number)
        wrong(f, "a get does not see the put before", read_slot(f, a->fetched), number);
}

static void put_tagged(ferry *f, account *a, int target)
{
    int stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    int tag = 1 + (int)draw(&a->random, TAGS);
    uint32_t number = ++a->sent[stream][target].tagged_put[tag];
    void *data = numbered(number);
    const ferry_transfer what = {
        .target = slot(a->windows[target], ferry_rank(f), (uint64_t)stream, TAGGED + tag),
        .source = data,
        .size_bytes = SLOT_BYTES,
        .tag = tag};
    const ferry_track track = random_track(a, data);
    bool tracked = draw(&a->random, 2) == 0;
    a->started += tracked;
    must(f, ferry_put_run(f, target, &what, tracked ? &track : NULL), "put_run");
    if (!tracked)
        free(data);
}

static void get_tagged(ferry *f, account *a, int target)
{
    int stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    int tag = 1 + (int)draw(&a->random, TAGS);
    fetch *b = take(sizeof(*b));
    b->expected = a->sent[stream][target].tagged_put[tag];
    const ferry_transfer what = {
        .target = b->data,
        .source = slot(a->windows[target], ferry_rank(f), (uint64_t)stream, TAGGED + tag),
        .size_bytes = SLOT_BYTES,
        .tag = tag};
    const ferry_track track = {.size = sizeof(track),
                               .completed = on_fetched,
                               .completed_arg = b,
                               .failed = on_fetched,
                               .failed_arg = b};
    a->started++;
    must(f, ferry_get_run(f, target, &what, &track), "get_run");
}

/* A put with handlers; with `arrival` it is the synchronous form, and waited for. */
static void put_run(ferry *f, account *a, int target)
{
    int stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    int tag = 1 + (int)draw(&a->random, TAGS);
    sent *s = &a->sent[stream][target];
    uint32_t number = s->all++;
    bool has_local = draw(&a->random, 2) == 0;
    void *data = numbered(number);
    const ferry_memory_call local = {.handler = a->local};
    const ferry_memory_call remote = {.handler = a->run,
                                      .tag = tag,
                                      .argument = number | (uint64_t)s->by_tag[tag]++ << 24 |
                                                  (uint64_t)tag << 48 | (uint64_t)stream << 51};
    const ferry_transfer what = {
        .target = slot(a->windows[target], ferry_rank(f), (uint64_t)stream, RUN + tag),
        .source = data,
        .size_bytes = SLOT_BYTES,
        .remote = &remote,
        .local = has_local ? &local : NULL};
    uint64_t locals = a->locals, way = draw(&a->random, 3);
    const ferry_track track = random_track(a, has_local ? NULL : data);
    ferry_op op;
    const ferry_track sync = {.size = sizeof(sync), .op = &op, .arrival = true};
    bool waits = way == 0 && !a->in_handler;
    a->sent_count++;
    a->started += !waits && way != 2;
    must(f, ferry_put_run(f, target, &what, waits ? &sync : way == 2 ? NULL : &track), "put_run");
    if (waits)
        must(f, ferry_op_wait(f, &op), "the wait for a put with handler");
    if (waits && has_local && a->locals == locals)
        wrong(f, "the local handler has not run", number, 0);
    if (!has_local && (waits || way == 2))
        free(data);
}

static void act(ferry *f, account *a, uint64_t hops)
{
    int target = (int)draw(&a->random, (uint64_t)ferry_ranks(f));
    /* A put to the rank itself is done in the call, before older requests run. */
    switch (draw(&a->random, target == ferry_rank(f) ? 2 : 10)) {
    case 9:
        send_broadcast(f, a);
        break;
    case 2:
        put_plain(f, a, target);
        break;
    case 3:
        put_tagged(f, a, target);
        break;
    case 4:
        if (a->gets) {
            get_tagged(f, a, target);
            break;
        }
        put_run(f, a, target);
        break;
    case 5:
        put_run(f, a, target);
        break;
    default:
        send_request(f, a, target, hops);
    }
}

static void poll(ferry *f, account *a, int32_t tag)
{
    a->polled = tag;
    int count = tag == 0 ? ferry_poll(f) : ferry_poll_tag(f, tag);
    a->polled = 0;
    must(f, count < 0 ? count : 0, "poll");
    if (count == 0)
        ferry_compute(f, 1e-7);
}

/* All but `holder` send; that one polls for `tag` alone until all others have said that they are
 * done, which has the tag. */
static void go_round(ferry *f, account *a, int holder, int sendings)
{
    int32_t tag = 1 + (int32_t)draw(&a->random, TAGS);
    const ferry_message release = {.handler = a->release, .tag = TAGS + 1};
    a->released = 0;
    must(f, ferry_barrier(f), "barrier");
    if (ferry_rank(f) == holder) {
        for (int i = 0; i < sendings; i++)
            act(f, a, draw(&a->random, HOPS_MAX));
        while (a->released < ferry_ranks(f) - 1) {
            poll(f, a, tag);
            poll(f, a, TAGS + 1);
        }
        return;
    }
    for (int i = 0; i < sendings; i++) {
        act(f, a, draw(&a->random, HOPS_MAX));
        poll(f, a, (int32_t)draw(&a->random, TAGS + 1));
    }
    must(f, ferry_request_sync(f, holder, &release), "release");
}

static void check_end(ferry *f, account *a)
{
    must(f, ferry_quiesce(f), "quiesce");
    while (a->ended < a->started)
        must(f, ferry_wait(f, FERRY_FOREVER) < 0 ? FERRY_ESTATE : 0, "wait");
    uint64_t sums[2] = {a->sent_count, a->seen_count};
    must(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 2), "allreduce");
    if (sums[0] != sums[1])
        wrong(f, "not all that was sent has come", sums[0], sums[1]);
    if (ferry_rank(f) == 0)
        printf("%" PRIu64 " came in order\n", sums[1]);
}

static account *create_account(ferry *f, uint64_t seed)
{
    account *a = calloc(1, sizeof(*a));
    size_t size_bytes = (size_t)ferry_ranks(f) * STREAMS * SLOTS * SLOT_BYTES;
    if (a == NULL || (a->window = calloc(1, size_bytes)) == NULL)
        exit(LACK_STATUS);
    a->random = first_random(ferry_rank(f)) + seed * 0x9e3779b97f4a7c15u;
    uint64_t common = first_random(0) + seed * 0x9e3779b97f4a7c15u;
    a->gets = draw(&common, 2) == 0;
    ferry_user_data_set(f, a);
    must(f, ferry_handler_register(f, "request", on_request, &a->request), "register");
    must(f, ferry_handler_register(f, "broadcast", on_broadcast, &a->broadcast), "register");
    must(f, ferry_handler_register(f, "release", on_release, &a->release), "register");
    must(f, ferry_memory_handler_register(f, "run", on_run, &a->run), "register");
    must(f, ferry_memory_handler_register(f, "local", on_local, &a->local), "register");
    must(f, ferry_memory_register(f, a->window, size_bytes), "register");
    must(f, ferry_allgather(f, &a->window, sizeof(a->window), a->windows), "allgather");
    return a;
}

static void free_account(ferry *f, account *a)
{
    must(f, ferry_barrier(f), "barrier");
    must(f, ferry_memory_unregister(f, a->window), "unregister");
    for (int stream = 0; stream < STREAMS; stream++)
        for (int rank = 0; rank < RANKS_MAX; rank++) {
            free(a->seen[stream][rank].come);
            free(a->heard[stream][rank].come);
        }
    free(a->window);
    free(a);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 6, sendings = argc > 2 ? atoi(argv[2]) : 30;
    if (ferry_ranks(f) > RANKS_MAX)
        wrong(f, "more ranks than this program is for", (uint64_t)ferry_ranks(f), RANKS_MAX);
    account *a = create_account(f, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
    for (int i = 0; i < rounds; i++)
        go_round(f, a, i % ferry_ranks(f), sendings);
    check_end(f, a);
    free_account(f, a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
