/* Goal: objects that a store writes out and reads back lose nothing, and the budget is kept.
 * Method: ranks send numbered random messages to 200 objects of different lengths. Each handler
 * adds to the object's sum, checks all of its data, sometimes grows or moves it, and sends on. The
 * data are four times what all budgets take. At the end the sums of all objects must be those of
 * the messages sent. Odd rounds balance the objects. If a simulated disk cannot read an object, a
 * quiescence or collective says so. Then the store reads all objects back, however often that
 * fails, and each has the sum that its handlers have left.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] random [seed]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/kept.h"
#include "../support/random.h"
#include "../support/thing.h"

enum { OBJECTS = 200, ROUNDS = 3, MESSAGES = 300, BYTES = 2000, BYTES_MAX = 8000 };

typedef struct account {
    uint64_t random, sent_sum, sent, handled, wrong, alive;
    ferry_handler handler, ask;
    ferry_object *objects;
    int count;
    bool unread; /* a message was lost, since its object could not be read */
    uint64_t sum, counted;
} account;

static void note(account *a, int error)
{
    a->unread = a->unread || error == FERRY_ELOST;
    a->wrong += error != 0;
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    void *data = thing_unpack(buffer, size_bytes, BYTES_MAX);
    account *a = ferry_user_data(f);
    (void)object;
    if (a != NULL)
        a->alive += data != NULL;
    return data;
}

static void destroy(ferry *f, void *data)
{
    account *a = ferry_user_data(f);
    if (a != NULL)
        a->alive--;
    free(data);
}

static double load_of(ferry *f, const void *data, const ferry_message *message)
{
    (void)f;
    (void)message;
    return (double)((const thing *)data)->size_bytes;
}

static void send_one(ferry *f, account *a, uint64_t hops)
{
    ferry_object target = a->objects[xorshift(&a->random) % (uint64_t)a->count];
    uint64_t value = xorshift(&a->random) & 0xffff;
    ferry_message message = {.handler = a->handler, .word_count = 2, .words = {value, hops}};
    int error = ferry_object_send(f, target, &message, NULL);
    if (error == FERRY_EAGAIN)
        return;
    a->wrong += error != 0;
    a->sent++;
    a->sent_sum += value;
}

static void handle(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    (void)source;
    a->wrong += !is_whole(t) || ferry_object_data(f, object) != data;
    a->handled++;
    t->sum += message->words[0];
    t->count++;
    kept_add(a->objects, a->count, object, message->words[0]);
    if (xorshift(&a->random) % 8 == 0 && t->size_bytes + 80 <= BYTES_MAX) {
        fill(t, t->size_bytes / 8, t->size_bytes / 8 + 10);
        t->size_bytes += 80;
    }
    if (xorshift(&a->random) % 10 == 0 && ferry_ranks(f) > 1)
        a->wrong += ferry_object_move(f, object,
                                      (int)(xorshift(&a->random) % (uint64_t)ferry_ranks(f))) != 0;
    if (message->words[1] != 0)
        send_one(f, a, message->words[1] - 1);
}

static void ask(ferry *f, ferry_object object, void *data, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    const thing *t = data;
    (void)object;
    (void)source;
    (void)message;
    a->wrong += !is_whole(t);
    a->sum += t->sum;
    a->counted += t->count;
}

static void check_budget(ferry_store *store, account *a)
{
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    a->wrong += ferry_store_stats_get(store, &stats) != 0;
    /* Objects that cannot be written stay in memory. */
    if (stats.write_errors == 0 &&
        stats.peak_bytes > stats.budget_bytes + sizeof(thing) + BYTES_MAX) {
        printf("%llu bytes in memory, expected %llu and one object\n",
               (unsigned long long)stats.peak_bytes, (unsigned long long)stats.budget_bytes);
        a->wrong++;
    }
}

static void make_objects(ferry *f, account *a, ferry_store *store, ferry_object_type type)
{
    int each = OBJECTS / ferry_ranks(f);
    a->count = each * ferry_ranks(f);
    a->objects = calloc((size_t)a->count, sizeof *a->objects);
    a->wrong += ferry_store_add(store, type) != 0;
    for (int i = 0; i < each; i++) {
        thing *t = malloc(sizeof *t + BYTES_MAX);
        if (t == NULL)
            exit(2);
        *t = (thing){.size_bytes = BYTES + xorshift(&a->random) % 50 * 8,
                     .seed = xorshift(&a->random)};
        fill(t, 0, t->size_bytes / 8);
        a->alive++;
        ferry_object *object = &a->objects[ferry_rank(f) * each + i];
        a->wrong += ferry_object_create(f, type, t, object) != 0 ||
                    (i % 2 == 0 && ferry_balance_add(f, *object, NULL) != 0);
        ferry_store_trim(store);
    }
    note(a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, a->objects, a->objects, (size_t)a->count));
}

static void run_rounds(ferry *f, account *a, ferry_store *store)
{
    for (int round = 0; round < ROUNDS && !a->unread; round++) {
        a->wrong += ferry_balance_enable(f, round % 2 == 1) != 0;
        for (int i = 0; i < MESSAGES; i++) {
            send_one(f, a, 2);
            if (i % 16 == 0)
                (void)ferry_poll(f);
        }
        note(a, ferry_quiesce(f));
        check_budget(store, a);
    }
    a->wrong += ferry_balance_enable(f, false) != 0;
}

/* Every object tells its sum, once more through the store, and then without it. */
static bool sums_agree(ferry *f, account *a)
{
    a->sum = a->counted = 0;
    note(a, ferry_barrier(f));
    for (int i = ferry_rank(f); i < a->count; i += ferry_ranks(f)) {
        const ferry_message message = {.handler = a->ask};
        a->wrong += ferry_object_send(f, a->objects[i], &message, NULL) != 0;
    }
    note(a, ferry_quiesce(f));
    uint64_t sums[6] = {a->sent_sum, a->sum, a->sent, a->counted, a->handled, a->wrong};
    note(a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 6));
    if (a->unread)
        return false;
    bool right = sums[0] == sums[1] && sums[2] == sums[3] && sums[2] == sums[4] && sums[5] == 0;
    if (!right && ferry_rank(f) == 0)
        fprintf(stderr,
                "random: sums %llu and %llu, sent %llu, counted %llu, handled %llu, wrong "
                "%llu\n",
                (unsigned long long)sums[0], (unsigned long long)sums[1],
                (unsigned long long)sums[2], (unsigned long long)sums[3],
                (unsigned long long)sums[4], (unsigned long long)sums[5]);
    return right;
}

/* Ends a rank that cannot go on. Status 1 is that of every job that has lost work. */
static int end_unread(ferry *f, account *a, ferry_store *store)
{
    int error = ferry_quiesce(f); /* its error names the object */
    if (error != FERRY_ELOST || strstr(ferry_error_message(f), "cannot be read") == NULL)
        abort();
    for (int i = 0; i < 100000 && (error = ferry_store_close(store)) != 0; i++)
        if (error == FERRY_EAGAIN) /* only then, since a poll writes objects out again */
            (void)ferry_poll(f);
    if (error != 0) {
        fprintf(stderr, "random: %s\n", ferry_error_message(f));
        abort();
    }
    (void)ferry_quiesce(f);
    kept_check(f, a->objects, a->count);
    ferry_user_data_set(f, NULL);
    return 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .packed_size = packed_size,
                                         .pack = pack,
                                         .unpack = unpack,
                                         .destroy = destroy,
                                         .load = load_of};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    account a = {.random = (seed * 1000003 + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_store *store = NULL;
    ferry_object_type type;
    options.budget_bytes = (uint64_t)OBJECTS * BYTES / 4 / (uint64_t)ferry_ranks(f);
    ferry_user_data_set(f, &a);
    if (ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "handle", handle, &a.handler) != 0 ||
        ferry_object_handler_register(f, "ask", ask, &a.ask) != 0 ||
        ferry_store_open(f, &options, &store) != 0) {
        fprintf(stderr, "random: %s\n", ferry_error_message(f));
        return 1;
    }
    make_objects(f, &a, store, type);
    run_rounds(f, &a, store);
    bool right = !a.unread && sums_agree(f, &a);
    if (a.unread)
        return end_unread(f, &a, store);
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    check_budget(store, &a);
    right = right && a.wrong == 0 && ferry_store_stats_get(store, &stats) == 0 &&
            stats.objects == ferry_object_count(f) &&
            (stats.reads != 0 || stats.write_errors != 0) &&
            a.alive == stats.objects - stats.disk_objects;
    if (seed % 2 == 0) {
        while (ferry_store_close(store) == FERRY_ESYSTEM)
            stats.read_errors++; /* it can try again */
        right = a.alive == ferry_object_count(f) && sums_agree(f, &a) && right;
    }
    if (!right)
        fprintf(stderr, "random: rank %d of seed %llu is wrong: %s\n", ferry_rank(f),
                (unsigned long long)seed, ferry_error_message(f));
    if (!right)
        abort(); /* no status excuses it */
    if (ferry_rank(f) == 0)
        printf("random: seed %llu: right; rank 0 read %llu times, wrote %llu, at most %llu bytes "
               "of %llu; %llu objects came as places, %llu left so\n",
               (unsigned long long)seed, (unsigned long long)stats.reads,
               (unsigned long long)stats.writes, (unsigned long long)stats.peak_bytes,
               (unsigned long long)stats.budget_bytes, (unsigned long long)stats.taken,
               (unsigned long long)stats.lent);
    free(a.objects);
    ferry_user_data_set(f, NULL); /* closing destroys objects */
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
