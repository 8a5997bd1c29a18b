/* Network sort, as in dmcs.txt 5.2: integers in random order, cut into chunks that are spread over
 * the ranks, sorted by comparing neighbours in stages.
 *
 * A chunk is an object. At each stage it sends its values to its left or its right neighbour in the
 * array, in turn, and gets the neighbour's. It keeps the lower or the upper half of both. After as
 * many stages as there are chunks all is in order. Nothing waits for all: a chunk goes on when its
 * neighbour's values are there, and keeps what comes early. In the mobile variant it moves to a
 * random rank after each stage. At the end the values are checked: they are in order, and the same
 * as at the beginning.
 *
 *      netsort [static|mobile] [CHUNKS] [VALUES PER CHUNK]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

/* A neighbour can be two stages ahead of what it sent before, when that is late because both have
 * moved; not more, since then it needs this chunk's values. So there is room for four stages. */
enum { EARLY = 4 };

typedef struct chunk {
    uint32_t index, stage, count;
    bool sent; /* for this stage */
    bool here[EARLY];
    uint64_t random;
    uint32_t values[]; /* own, then those of neighbours, by stage */
} chunk;

typedef struct sort {
    ferry_object *names;
    ferry_handler handler;
    uint32_t chunks, count;
    bool mobile;
} sort;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static size_t bytes_of(uint32_t count)
{
    return sizeof(chunk) + (1 + EARLY) * (size_t)count * sizeof(uint32_t);
}

static size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    return bytes_of(((const chunk *)data)->count);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The neighbour to compare with at this stage; none at an end of the array. */
static bool partner_of(const sort *s, const chunk *c, uint32_t *partner)
{
    bool right = (c->index + c->stage) % 2 == 0;
    if (right ? c->index + 1 == s->chunks : c->index == 0)
        return false;
    *partner = right ? c->index + 1 : c->index - 1;
    return true;
}

/* Keeps the lower half of own and other values, or the upper. Both are sorted. */
static void keep_half(chunk *c, const uint32_t *other, bool lower, uint32_t *room)
{
    uint32_t n = c->count, i = lower ? 0 : n, j = lower ? 0 : n;
    for (uint32_t k = 0; k < n; k++) {
        if (lower)
            room[k] = c->values[i] <= other[j] ? c->values[i++] : other[j++];
        else
            room[n - 1 - k] = c->values[i - 1] >= other[j - 1] ? c->values[--i] : other[--j];
    }
    memcpy(c->values, room, n * sizeof(*room));
}

static int send_values(ferry *f, const sort *s, const chunk *c, uint32_t partner)
{
    const ferry_message m = {.handler = s->handler,
                             .word_count = 1,
                             .words = {c->stage},
                             .data = c->values,
                             .size_bytes = c->count * sizeof(uint32_t)};
    return ferry_object_send(f, s->names[partner], &m, NULL);
}

/* Goes through the stages for which all is there. */
static int advance(ferry *f, const sort *s, chunk *c)
{
    uint32_t partner, *room = malloc(c->count * sizeof(*room));
    int error = room == NULL ? FERRY_ENOMEM : 0;
    while (error == 0 && c->stage < s->chunks) {
        if (!partner_of(s, c, &partner)) {
            c->stage++;
            continue;
        }
        if (!c->sent)
            error = send_values(f, s, c, partner);
        c->sent = true;
        bool *here = &c->here[c->stage % EARLY];
        if (!*here)
            break;
        keep_half(c, c->values + (1 + c->stage % EARLY) * (size_t)c->count, partner > c->index,
                  room);
        *here = c->sent = false;
        c->stage++;
    }
    free(room);
    return error;
}

/* A neighbour's values, or, without data, the start. */
static void on_values(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    (void)source;
    const sort *s = ferry_user_data(f);
    chunk *c = data;
    uint32_t stage = c->stage;
    if (message->size_bytes > 0) {
        memcpy(c->values + (1 + message->words[0] % EARLY) * (size_t)c->count, message->data,
               message->size_bytes);
        c->here[message->words[0] % EARLY] = true;
    }
    int error = advance(f, s, c);
    if (error == 0 && s->mobile && c->stage > stage)
        error =
            ferry_object_move(f, object, (int)(next_random(&c->random) % (uint32_t)ferry_ranks(f)));
    if (error != 0) {
        fprintf(stderr, "netsort: chunk %" PRIu32 ": %s\n", c->index, ferry_error_message(f));
        abort();
    }
}

/* Whatever order values are in, the sum of this says which they are. */
static uint64_t mixed(uint32_t value)
{
    uint64_t z = (value + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (z ^ z >> 29) * UINT64_C(0x94d049bb133111eb);
}

/* Makes this rank's chunks, and tells all their names. */
static int create(ferry *f, sort *s, ferry_object_type type, uint64_t *sum)
{
    memset(s->names, 0, s->chunks * sizeof(*s->names));
    for (uint32_t i = (uint32_t)ferry_rank(f); i < s->chunks; i += (uint32_t)ferry_ranks(f)) {
        chunk *c = calloc(1, bytes_of(s->count));
        if (c == NULL)
            return 1;
        c->index = i;
        c->count = s->count;
        c->random = i + 1;
        for (uint32_t j = 0; j < s->count; j++) {
            c->values[j] = next_random(&c->random);
            *sum += mixed(c->values[j]);
        }
        qsort(c->values, s->count, sizeof(*c->values), by_value);
        if (ferry_object_create(f, type, c, &s->names[i]) != 0)
            return 1;
    }
    return ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, s->names, s->names, s->chunks);
}

static int start(ferry *f, const sort *s)
{
    const ferry_message go = {.handler = s->handler};
    for (uint32_t i = (uint32_t)ferry_rank(f); i < s->chunks; i += (uint32_t)ferry_ranks(f))
        if (ferry_object_send(f, s->names[i], &go, NULL) != 0)
            return 1;
    return ferry_quiesce(f);
}

/* Looks at the chunks that are here: writes the ends of each, takes its values from `sum` and
 * returns how many are out of order within. */
static uint64_t look(ferry *f, const sort *s, uint64_t *ends, uint64_t *sum)
{
    uint64_t disorder = 0;
    for (uint32_t i = 0; i < s->chunks; i++) {
        const chunk *c = ferry_object_data(f, s->names[i]);
        if (c == NULL)
            continue;
        ends[2 * i] = c->values[0];
        ends[2 * i + 1] = c->values[c->count - 1];
        for (uint32_t j = 0; j < c->count; j++) {
            *sum -= mixed(c->values[j]);
            disorder += j > 0 && c->values[j - 1] > c->values[j];
        }
    }
    return disorder;
}

/* Returns 0 when all is in order and nothing was lost, wherever the chunks are now. */
static int check(ferry *f, const sort *s, uint64_t sum)
{
    size_t count = 2 * (size_t)s->chunks;
    uint64_t *ends = calloc(count + 2, sizeof(*ends));
    if (ends == NULL)
        return 1;
    ends[count] = look(f, s, ends, &sum);
    ends[count + 1] = sum;
    int error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, ends, ends, count + 2);
    bool sorted = ends[count] == 0 && ends[count + 1] == 0;
    for (size_t i = 1; i < count; i++)
        sorted = sorted && ends[i - 1] <= ends[i];
    free(ends);
    return error != 0 || !sorted;
}

static int run(ferry *f, sort *s, ferry_object_type type)
{
    uint64_t sum = 0;
    if (create(f, s, type, &sum) != 0 || ferry_barrier(f) != 0)
        return 1;
    uint64_t begin = ferry_now(f);
    if (start(f, s) != 0)
        return 1;
    double seconds = (double)(ferry_now(f) - begin) / 1e9;
    int wrong = check(f, s, sum);
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &stats);
    uint64_t totals[2] = {stats.messages_sent, stats.objects_out};
    if (ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, totals, totals, 2) != 0)
        return 1;
    if (ferry_rank(f) == 0)
        printf("%s: %" PRIu32 " chunks of %" PRIu32 ", %d ranks: %.4f s, %" PRIu64
               " messages, %" PRIu64 " moves; %s\n",
               s->mobile ? "mobile" : "static", s->chunks, s->count, ferry_ranks(f), seconds,
               totals[0], totals[1], wrong ? "WRONG" : "sorted");
    return wrong;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const ferry_object_ops ops = {.size = sizeof ops, .name = "chunk", .packed_size = packed_size};
    static const char *const ways[] = {"static", "mobile", NULL};
    int way = 0;
    long chunks = 64, count = 256;
    const parameter table[] = {
        {"WAY", "static or mobile", .choice = &way, .of = ways},
        {"CHUNKS", "of values", 1, 1 << 20, .whole = &chunks},
        {"VALUES", "per chunk", 1, 1 << 20, .whole = &count},
        {0},
    };
    int wrong = parameters_read(f, argc, argv, "Sorts by a network of comparators.", table);
    if (wrong >= 0)
        return wrong;
    sort s = {.mobile = way == 1, .chunks = (uint32_t)chunks, .count = (uint32_t)count};
    ferry_object_type type;
    s.names = calloc(s.chunks, sizeof(*s.names));
    ferry_user_data_set(f, &s);
    if (s.names == NULL || ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "values", on_values, &s.handler) != 0)
        return 1;
    int status = run(f, &s, type);
    free(s.names);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
