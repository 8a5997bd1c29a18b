/* One-to-many traffic of distributed Delaunay cavities, as in dmcs.txt 5.2: nobody knows beforehand
 * who will ask whom, and when.
 *
 * An event is a new point. In a quarter of the events its cavity reaches into other ranks: then 14
 * searches go out, to ranks near and far, of sizes as that paper's figure 1 shows them: nine of ten
 * below half a kilobyte. Each is answered by the elements found there, put into the memory of who
 * asked by a transfer with a handler, or, when they are few, by a request. The event ends with its
 * last answer. A rank has several events under way and never waits for one. Every answer is checked
 * for its elements, every event for all of its answers.
 *
 *     cavity [EVENTS PER RANK] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

enum { SEARCHES = 14, UNDER_WAY = 8, FOUND_MAX = 8192, FEW = 256 };

typedef struct event {
    uint64_t started_ns;
    uint64_t expected_bytes; /* of the answers that have not come */
    int left;                /* how many those are; 0: free */
} event;

typedef struct traffic {
    ferry_handler search, few, many;
    event events[UNDER_WAY];
    unsigned char *found[UNDER_WAY][SEARCHES]; /* room in the shared heap for large answers */
    unsigned char *elements;                   /* what others find here */
    uint64_t random;
    uint64_t ended, distributed, searches, bytes, latency_ns, wrong;
    int error;
} traffic;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Bytes of a message: most fit into a cache line, few are pages. */
static size_t draw_bytes(uint64_t *random)
{
    uint32_t choice = next_random(random) % 100;
    uint32_t most = choice < 60 ? 32 : choice < 92 ? 512 : choice < 98 ? 2048 : FOUND_MAX;
    return 1 + next_random(random) % most;
}

/* The elements of a rank, byte by byte. */
static unsigned char element(int rank, size_t index)
{
    return (unsigned char)(index * 31 + (size_t)rank);
}

static void answer_came(ferry *f, int source, uint64_t slot, const unsigned char *found,
                        size_t size_bytes)
{
    traffic *t = ferry_user_data(f);
    event *e = &t->events[slot % UNDER_WAY];
    t->bytes += size_bytes;
    for (size_t i = 0; i < size_bytes; i++)
        t->wrong += found[i] != element(source, i);
    e->expected_bytes -= size_bytes;
    if (--e->left > 0)
        return;
    t->wrong += e->expected_bytes != 0;
    t->ended++;
    t->latency_ns += ferry_now(f) - e->started_ns;
}

static void on_few(ferry *f, int source, const ferry_message *message)
{
    answer_came(f, source, message->words[0], message->data, message->size_bytes);
}

/* Runs when the elements stand in this rank's memory. */
static void on_many(ferry *f, int peer, void *address, size_t size_bytes, uint64_t slot)
{
    answer_came(f, peer, slot, address, size_bytes);
}

/* words: event, bytes to find, where they may be put. */
static void on_search(ferry *f, int source, const ferry_message *message)
{
    traffic *t = ferry_user_data(f);
    size_t size = message->words[1] < FOUND_MAX ? (size_t)message->words[1] : FOUND_MAX;
    int error;
    t->searches++;
    if (size <= FEW) {
        const ferry_message m = {.handler = t->few,
                                 .word_count = 1,
                                 .words = {message->words[0]},
                                 .data = t->elements,
                                 .size_bytes = size};
        error = ferry_request_send(f, source, &m, NULL);
    } else {
        const ferry_memory_call arrived = {.handler = t->many, .argument = message->words[0]};
        const ferry_transfer put = {.target = (void *)(uintptr_t)message->words[2],
                                    .source = t->elements,
                                    .size_bytes = size,
                                    .remote = &arrived};
        error = ferry_put_run(f, source, &put, NULL);
    }
    t->error = t->error == 0 ? error : t->error;
}

static int start_event(ferry *f, traffic *t, uint64_t slot)
{
    static const unsigned char point[512];
    event *e = &t->events[slot];
    bool distributed = ferry_ranks(f) > 1 && next_random(&t->random) % 4 == 0;
    e->started_ns = ferry_now(f);
    if (!distributed) {
        t->ended++;
        return 0;
    }
    t->distributed++;
    e->left = SEARCHES;
    for (int i = 0; i < SEARCHES; i++) {
        int away = 1 + (int)(next_random(&t->random) % (uint32_t)(ferry_ranks(f) - 1));
        size_t asked = draw_bytes(&t->random), size = draw_bytes(&t->random);
        e->expected_bytes += size;
        const ferry_message m = {.handler = t->search,
                                 .word_count = 3,
                                 .words = {slot, size, (uintptr_t)t->found[slot][i]},
                                 .data = point,
                                 .size_bytes = asked < sizeof point ? asked : sizeof point};
        int error = ferry_request_send(f, (ferry_rank(f) + away) % ferry_ranks(f), &m, NULL);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Starts events in free slots. Returns whether there is one left. */
static bool start_some(ferry *f, traffic *t, uint64_t events, uint64_t *started)
{
    bool room = false;
    for (uint64_t slot = 0; slot < UNDER_WAY && t->error == 0; slot++) {
        if (t->events[slot].left == 0 && *started < events) {
            t->error = start_event(f, t, slot);
            ++*started;
        }
        room = room || t->events[slot].left == 0;
    }
    return room;
}

static int insert_points(ferry *f, traffic *t, uint64_t events)
{
    uint64_t started = 0;
    while (t->ended < events && t->error == 0) {
        bool more = start_some(f, t, events, &started) && started < events;
        int done = more || t->ended == events ? ferry_poll(f) : ferry_wait(f, FERRY_FOREVER);
        if (done < 0 && t->error == 0)
            t->error = done;
    }
    return t->error;
}

static int allocate(ferry *f, traffic *t)
{
    void *block;
    if (ferry_alloc(f, FOUND_MAX, &block) != 0)
        return 1;
    t->elements = block;
    for (size_t i = 0; i < FOUND_MAX; i++)
        t->elements[i] = element(ferry_rank(f), i);
    for (int i = 0; i < UNDER_WAY; i++)
        for (int j = 0; j < SEARCHES; j++) {
            if (ferry_alloc(f, FOUND_MAX, &block) != 0)
                return 1;
            t->found[i][j] = block;
        }
    return 0;
}

static int report(ferry *f, const traffic *t, uint64_t events, double seconds)
{
    enum { ENDED, DISTRIBUTED, FOUND, BYTES, LATENCY, WRONG, SUMS };
    uint64_t sums[SUMS] = {t->ended, t->distributed, t->searches,
                           t->bytes, t->latency_ns,  t->wrong};
    if (ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, SUMS) != 0)
        return 1;
    bool whole = sums[ENDED] == events * (uint64_t)ferry_ranks(f) &&
                 sums[FOUND] == sums[DISTRIBUTED] * SEARCHES && sums[WRONG] == 0;
    if (ferry_rank(f) == 0)
        printf("%" PRIu64 " events on %d ranks in %.3f s, %" PRIu64 " distributed, %" PRIu64
               " searches, %.1f MB found; %.2f us from a point to its cavity; %s\n",
               sums[ENDED], ferry_ranks(f), seconds, sums[DISTRIBUTED], sums[FOUND],
               (double)sums[BYTES] / 1e6,
               sums[DISTRIBUTED] == 0 ? 0
                                      : (double)sums[LATENCY] / (double)sums[DISTRIBUTED] / 1000,
               whole ? "all answers right" : "WRONG or lost answers");
    return whole ? 0 : 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long events = 20000;
    const parameter table[] = {
        {"EVENTS", "points that each rank inserts", 1, 1e9, .whole = &events}, {0}};
    int status =
        parameters_read(f, argc, argv, "The traffic of a parallel Delaunay mesher.", table);
    if (status >= 0)
        return status;
    traffic t = {.random = (uint64_t)ferry_rank(f) + 1};
    ferry_user_data_set(f, &t);
    if (ferry_handler_register(f, "search", on_search, &t.search) != 0 ||
        ferry_handler_register(f, "few", on_few, &t.few) != 0 ||
        ferry_memory_handler_register(f, "many", on_many, &t.many) != 0 || allocate(f, &t) != 0 ||
        ferry_barrier(f) != 0)
        return 1;
    uint64_t start = ferry_now(f);
    if (insert_points(f, &t, (uint64_t)events) != 0 || ferry_quiesce(f) != 0) {
        fprintf(stderr, "cavity: %s\n", ferry_error_message(f));
        return 1;
    }
    return report(f, &t, (uint64_t)events, (double)(ferry_now(f) - start) / 1e9);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
