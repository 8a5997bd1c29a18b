/* Goal: percolation runs every task on an engine, in order, and keeps every object at rest on a
 * data server within the budgets. Method: all ranks create objects of different lengths and send
 * them numbered messages at random. Each handler checks all data of its object and that it runs on
 * an engine, unless the server could not read it, grows the object, and sends on. The data are four
 * times the budgets of the servers. After each round the servers have all objects, and in the end
 * their sums are those of the messages sent. Odd seeds move objects too, to any rank. If a
 * simulated disk cannot read an object, a quiescence or collective says so, and the objects in
 * memory have lost nothing.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] [FERRY_SERVERS=S] cycle [seed]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/kept.h"
#include "../support/random.h"
#include "../support/thing.h"

enum { OBJECTS = 120, ROUNDS = 3, MESSAGES = 150, BYTES = 2000, BYTES_MAX = 6000, WINDOW = 3 };

typedef struct account {
    uint64_t random, sent_sum, sent, handled, wrong;
    uint64_t sum, counted;
    int servers;
    bool moves;
    bool unread; /* a message was lost, since its object could not be read */
    ferry_handler handler, ask;
    ferry_store *store;
    ferry_object *objects;
    int count;
} account;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f, (void)object;
    return thing_unpack(buffer, size_bytes, BYTES_MAX);
}

static void destroy(ferry *f, void *data)
{
    (void)f;
    free(data);
}

static void fail(account *a, bool condition, const char *what)
{
    if (condition)
        return;
    if (a->wrong++ < 3)
        fprintf(stderr, "cycle: %s\n", what);
}

/* Whether a quiescence or collective ended well. */
static bool ended(account *a, int error, const char *what)
{
    a->unread = a->unread || error == FERRY_ELOST;
    fail(a, error == 0 || a->unread, what);
    return error == 0;
}

static void send_one(ferry *f, account *a, uint64_t hops)
{
    ferry_object target = a->objects[draw(&a->random, (uint64_t)a->count)];
    uint64_t value = draw(&a->random, 65536);
    const ferry_message message = {.handler = a->handler, .word_count = 2, .words = {value, hops}};
    int error = ferry_object_send(f, target, &message, NULL);
    if (error == FERRY_EAGAIN)
        return;
    fail(a, error == 0, ferry_error_message(f));
    a->sent++;
    a->sent_sum += value;
}

static ferry_store_stats stats_of(account *a)
{
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    fail(a, ferry_store_stats_get(a->store, &stats) == 0, "stats");
    return stats;
}

/* Whether this server may run tasks: it could not read an object when an engine asked for it. */
static bool may_keep(ferry *f, account *a)
{
    ferry_percolation_stats counts = FERRY_PERCOLATION_STATS_DEFAULTS;
    fail(a, ferry_percolation_stats_get(f, &counts) == 0, "stats");
    return counts.kept != 0 && stats_of(a).read_errors != 0;
}

static void check_place(ferry *f, account *a, const thing *t, ferry_object object, const void *data)
{
    fail(a, is_whole(t) && ferry_object_data(f, object) == data, "an object is damaged");
    fail(a, ferry_rank(f) >= a->servers || may_keep(f, a), "a task runs on a data server");
}

static void handle(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    (void)source;
    check_place(f, a, t, object, data);
    a->handled++;
    t->sum += m->words[0];
    t->count++;
    kept_add(a->objects, a->count, object, m->words[0]);
    if (draw(&a->random, 4) == 0 && t->size_bytes + 80 <= BYTES_MAX) {
        fill(t, t->size_bytes / 8, t->size_bytes / 8 + 10);
        t->size_bytes += 80;
    }
    if (draw(&a->random, 3) == 0)
        ferry_compute(f, (double)draw(&a->random, 50000) * 1e-9);
    if (a->moves && draw(&a->random, 8) == 0)
        fail(a, ferry_object_move(f, object, (int)draw(&a->random, (uint64_t)ferry_ranks(f))) == 0,
             "an object cannot be moved");
    if (m->words[1] != 0)
        send_one(f, a, m->words[1] - 1);
}

static void ask(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    const thing *t = data;
    (void)source, (void)m;
    check_place(f, a, t, object, data);
    a->sum += t->sum;
    a->counted += t->count;
}

static thing *make_thing(account *a)
{
    thing *t = malloc(sizeof *t + BYTES_MAX);
    if (t == NULL)
        exit(2);
    *t = (thing){.size_bytes = BYTES + draw(&a->random, 50) * 8, .seed = xorshift(&a->random)};
    fill(t, 0, t->size_bytes / 8);
    return t;
}

static void make_objects(ferry *f, account *a, ferry_object_type type)
{
    int each = OBJECTS / ferry_ranks(f);
    a->count = each * ferry_ranks(f);
    a->objects = calloc((size_t)a->count, sizeof *a->objects);
    if (a->objects == NULL)
        exit(2);
    for (int i = 0; i < each; i++) {
        ferry_object *object = &a->objects[ferry_rank(f) * each + i];
        int error = ferry_object_create(f, type, make_thing(a), object);
        error = error == 0 ? ferry_balance_add(f, *object, NULL) : error;
        fail(a, error == 0, "an object cannot be created");
        ferry_store_trim(a->store);
        while (a->servers != 0 && ferry_rank(f) >= a->servers && ferry_object_count(f) != 0)
            (void)ferry_poll(f); /* it goes to its server, or has to wait for room there */
    }
    size_t count = (size_t)a->count;
    ended(a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, a->objects, a->objects, count),
          "allreduce");
    ended(a, ferry_barrier(f), "barrier"); /* handlers use the names */
}

/* After a quiescence. */
static void check_rest(ferry *f, account *a)
{
    const ferry_store_stats stats = stats_of(a);
    uint64_t here = ferry_object_count(f), all = here;
    if (a->servers != 0)
        fail(a, ferry_rank(f) < a->servers || here == 0, "an engine has an object at rest");
    /* Objects that the program moves to an engine come unasked. Objects that cannot be written stay
     * in memory. */
    bool asked = ferry_rank(f) < a->servers || !a->moves;
    fail(a,
         !asked || stats.write_errors != 0 ||
             stats.peak_bytes <= stats.budget_bytes + sizeof(thing) + BYTES_MAX,
         "more in memory than the budget and one object");
    if (ended(a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &all, &all, 1), "allreduce"))
        fail(a, all == (uint64_t)a->count, "an object is lost");
}

static void run_rounds(ferry *f, account *a)
{
    for (int round = 0; round < ROUNDS && !a->unread; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            send_one(f, a, 2);
            if (i % 16 == 0)
                (void)ferry_poll(f);
        }
        if (ended(a, ferry_quiesce(f), "quiesce"))
            check_rest(f, a);
    }
    for (int i = ferry_rank(f); i < a->count; i += ferry_ranks(f)) {
        const ferry_message message = {.handler = a->ask};
        fail(a, ferry_object_send(f, a->objects[i], &message, NULL) == 0, "a question is refused");
    }
    if (ended(a, ferry_quiesce(f), "quiesce"))
        check_rest(f, a);
}

/* Adds the counts of all ranks: objects that go up come back, and each message has run once. */
static void check_counts(ferry *f, account *a)
{
    ferry_percolation_stats stats = FERRY_PERCOLATION_STATS_DEFAULTS;
    fail(a, ferry_percolation_stats_get(f, &stats) == 0, "stats");
    if (a->servers != 0 && ferry_rank(f) >= a->servers)
        fail(a,
             stats.peak_bytes <= (WINDOW + 1) * (sizeof(thing) + BYTES_MAX) &&
                 stats.assembled + stats.initiated == 0,
             "counts of an engine");
    uint64_t sums[13] = {a->sent_sum,
                         a->sum,
                         a->sent,
                         a->counted,
                         a->handled,
                         stats.kept,
                         stats.initiated,
                         stats.assembled,
                         stats.taken,
                         stats.terminated,
                         stats.tasks,
                         a->wrong,
                         stats_of(a).read_errors};
    if (!ended(a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 13), "allreduce"))
        return;
    fail(a, sums[0] == sums[1] && sums[2] == sums[3] && sums[2] == sums[4], "sums differ");
    if (a->servers != 0) {
        fail(a, sums[5] == 0 || sums[12] != 0, "a server has kept a task");
        fail(a, sums[10] + sums[5] == sums[4] + (uint64_t)a->count, "tasks of engines");
        fail(a, sums[7] != 0 && sums[7] <= sums[6], "tokens and objects");
        fail(a, sums[7] == sums[8] || sums[12] != 0, "an object was sent and has not arrived");
        fail(a, a->moves || sums[9] >= sums[8], "an object has not gone back");
    }
    a->wrong += sums[11];
}

static bool set_up(ferry *f, account *a, ferry_object_type *type)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .packed_size = packed_size,
                                         .pack = pack,
                                         .unpack = unpack,
                                         .destroy = destroy};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options percolation = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    int ranks = ferry_ranks(f);
    percolation.servers = ranks == 1 ? 0 : 1 + (ranks - 2) / 3;
    percolation.window = WINDOW;
    bool serves = ferry_rank(f) < percolation.servers;
    options.budget_bytes =
        serves ? (uint64_t)OBJECTS * BYTES / 4 / (uint64_t)percolation.servers : WINDOW * BYTES_MAX;
    ferry_user_data_set(f, a);
    if (ferry_object_type_register(f, &ops, type) != 0 ||
        ferry_object_handler_register(f, "handle", handle, &a->handler) != 0 ||
        ferry_object_handler_register(f, "ask", ask, &a->ask) != 0 ||
        ferry_store_open(f, &options, &a->store) != 0 || ferry_store_add(a->store, *type) != 0 ||
        ferry_percolation_start(f, &percolation) != 0)
        return false;
    a->servers = ferry_percolation_servers(f);
    return true;
}

/* Ends a rank that cannot go on. Status 1 is that of every job that has lost work. */
static int end_unread(ferry *f, account *a)
{
    if (ferry_quiesce(f) != FERRY_ELOST ||
        strstr(ferry_error_message(f), "cannot be read") == NULL || a->wrong != 0)
        abort();
    kept_check(f, a->objects, a->count);
    free(a->objects);
    return 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *text = argc > 1 ? argv[1] : getenv("FERRY_SEED"); /* of the swarm */
    uint64_t seed = text == NULL ? 0 : strtoull(text, NULL, 10);
    account a = {.random = (seed * 1000003 + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1,
                 .moves = seed % 2 == 1};
    ferry_object_type type;
    if (!set_up(f, &a, &type)) {
        fprintf(stderr, "cycle: %s\n", ferry_error_message(f));
        return 1;
    }
    make_objects(f, &a, type);
    run_rounds(f, &a);
    if (a.unread)
        return end_unread(f, &a);
    const ferry_store_stats stats = stats_of(&a);
    bool serves = ferry_rank(f) < a.servers;
    bool used = stats.write_errors != 0 || (stats.reads != 0 && stats.writes != 0);
    fail(&a, !serves || used, "the disk of a server was idle");
    fail(&a, serves || a.moves || a.servers == 0 || stats.writes == 0, "an engine has written");
    check_counts(f, &a);
    if (a.unread)
        return end_unread(f, &a);
    if (a.servers != 0)
        fail(&a, ferry_store_close(a.store) == FERRY_ESTATE, "the store of a server was closed");
    if (a.wrong != 0)
        fprintf(stderr, "cycle: rank %d of seed %llu is wrong\n", ferry_rank(f),
                (unsigned long long)seed);
    if (a.wrong != 0)
        abort(); /* no status excuses it */
    if (ferry_rank(f) == 0)
        printf("cycle: right, with %d data servers; rank 0 read %llu objects and wrote %llu\n",
               a.servers, (unsigned long long)stats.reads, (unsigned long long)stats.writes);
    free(a.objects);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
