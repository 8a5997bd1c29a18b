/* Goal: objects that migrate as places lose nothing. They outlive the rank that has written their
 * images, and a rank that dies takes no disk space of others with it. Method: every rank makes
 * objects beyond its budget and sends tracked messages to them. Between rounds each rank moves
 * objects that are on disk here to any rank. Each handler checks all data of its object, and that
 * its sum is that of the messages that were completed. The swarm kills at any time. Then an object
 * may be lost, and after a failed message its sum is not known. If a simulated disk cannot read an
 * object, its message fails with FERRY_ESYSTEM and was not run.
 *
 * With `giver`, rank 0 is killed when the others have its objects as places: they must read them.
 * With `taker`, rank 1 is killed when it has places of rank 0: rank 0 must use these again.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] places [giver|taker], or ferry swarm --all places. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#define CHECK_STATUS 122 /* ferry swarm --unreadable does not excuse it */
#include "../support/check.h"
#include "../support/random.h"
#include "../support/survive.h"
#include "store/state.h"

enum { OBJECTS = 24, BYTES = 1024, ROOM = 6, ROUNDS = 6 };

/* An object, as the rank knows it that has made it. */
typedef struct made {
    ferry_object object;
    uint64_t sum, value; /* of completed messages; of the message in flight */
    bool unsure;         /* a message has failed that may have run */
} made;

typedef struct account {
    uint64_t random;
    ferry_object_type type;
    ferry_handler add;
    ferry_store *store;
    made all[OBJECTS];
    int sent, ended, completed;
    bool unread; /* an object could not be read */
} account;

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    uint64_t *values = data;
    (void)source;
    check(f, values[1] == object.word && values[BYTES / 8 - 1] == values[0], "data");
    check(f, m->words[1] == UINT64_MAX || values[0] == m->words[1], "an object has another sum");
    values[0] += m->words[0];
    values[BYTES / 8 - 1] = values[0];
}

static bool somebody_is_gone(ferry *f)
{
    bool gone = false;
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        gone = gone || ferry_peer_is_gone(f, rank);
    return gone;
}

/* Whether the ranks go on. A death may end any collective, and so may an object that cannot be
 * read. */
static bool goes_on(ferry *f, account *a, int error)
{
    a->unread = a->unread || error == FERRY_ELOST;
    check(f, error == 0 || error == FERRY_ELOST || somebody_is_gone(f), "a collective failed");
    return error == 0;
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = ferry_user_data(f);
    made *m = arg;
    (void)receipt;
    a->ended++;
    a->completed++;
    m->sum += m->value;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = ferry_user_data(f);
    bool read = receipt->error != FERRY_ESYSTEM;
    a->ended++;
    a->unread = a->unread || !read;
    ((made *)arg)->unsure |= read;
    check(f, !read || receipt->error == FERRY_EPEER || receipt->error == FERRY_ENOENT,
          "a message failed otherwise");
}

static void send_one(ferry *f, account *a, made *m)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    m->value = draw(&a->random, 1000);
    const ferry_message message = {
        .handler = a->add, .word_count = 2, .words = {m->value, m->unsure ? UINT64_MAX : m->sum}};
    track.completed = on_completed;
    track.failed = on_failed;
    track.completed_arg = track.failed_arg = m;
    int error = ferry_object_send(f, m->object, &message, &track);
    check(f, error == 0 || error == FERRY_EPEER || error == FERRY_ENOENT, "send");
    a->sent += error == 0;
}

/* Waits until all messages of this rank have ended. */
static void settle(ferry *f, account *a)
{
    int error = ferry_quiesce(f);
    a->unread = a->unread || error == FERRY_ELOST;
    check(f, error == 0 || a->unread || somebody_is_gone(f), "quiesce");
    while (a->ended != a->sent)
        (void)ferry_poll(f);
}

static void make_objects(ferry *f, account *a, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t *data = calloc(1, BYTES);
        check(f, data != NULL, "memory");
        a->all[i] = (made){.sum = 0};
        check(f, ferry_object_create(f, a->type, data, &a->all[i].object) == 0, "create");
        data[1] = a->all[i].object.word;
        ferry_store_trim(a->store);
    }
}

/* Waits until all that leaves memory is on disk. */
static void await_disk(ferry *f, const account *a)
{
    while (a->store->leaving_bytes != 0)
        (void)ferry_poll(f);
}

/* Moves objects that are on disk here to `rank`, or each to any rank. Returns how many. */
static int move_out(ferry *f, account *a, int rank, int most)
{
    ferry_object here[OBJECTS * 8];
    int count = 0, moved = 0;
    for (size_t index = 0; count < OBJECTS * 8 && fy_object_next(f, a->type, &index, &here[count]);)
        count++;
    for (int i = 0; i < count && moved < most; i++) {
        const fy_record *record = fy_record_here(f, here[i]);
        int target = rank >= 0 ? rank : (int)draw(&a->random, (uint64_t)ferry_ranks(f));
        if (record == NULL || !record->out || target == ferry_rank(f))
            continue;
        int error = ferry_object_move(f, here[i], target);
        check(f, error == 0 || error == FERRY_EPEER || error == FERRY_ESYSTEM, "move");
        moved += error == 0;
    }
    return moved;
}

static void play_round(ferry *f, account *a)
{
    for (int i = 0; i < OBJECTS; i++) {
        send_one(f, a, &a->all[i]);
        (void)ferry_poll(f);
    }
    settle(f, a);
    for (int i = 0; i < 2; i++) {
        (void)move_out(f, a, -1, OBJECTS);
        settle(f, a);
    }
}

static bool set_up(ferry *f, account *a)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = BYTES};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    options.budget_bytes = (uint64_t)ROOM * BYTES;
    ferry_user_data_set(f, a);
    check(f,
          survive_deaths(f) == 0 && ferry_object_type_register(f, &ops, &a->type) == 0 &&
              ferry_object_handler_register(f, "add", on_add, &a->add) == 0 &&
              ferry_store_open(f, &options, &a->store) == 0 &&
              ferry_store_add(a->store, a->type) == 0,
          "set-up");
    return goes_on(f, a, ferry_barrier(f));
}

static ferry_store_stats stats_of(ferry *f, const account *a)
{
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    check(f, ferry_store_stats_get(a->store, &stats) == 0, "stats");
    return stats;
}

static void play(ferry *f, account *a)
{
    make_objects(f, a, OBJECTS);
    (void)goes_on(f, a, ferry_barrier(f));
    for (int round = 0; round < ROUNDS; round++)
        play_round(f, a);
    const ferry_store_stats stats = stats_of(f, a);
    uint64_t counts[3] = {stats.lent, stats.taken, stats.write_errors};
    if (!goes_on(f, a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, counts, counts, 3)) ||
        ferry_rank(f) != 0 || somebody_is_gone(f))
        return;
    check(f, a->unread || counts[2] != 0 || ferry_ranks(f) == 1 || counts[1] != 0,
          "no object came as a place");
    printf("places: right, %llu objects left as places, %llu came so\n",
           (unsigned long long)counts[0], (unsigned long long)counts[1]);
}

/* No quiescence waits for the words by which ranks agree on places. */
static void await_readers(ferry *f, const account *a)
{
    for (int rank = 1; rank <= 2 && ferry_rank(f) == 0; rank++)
        while (!fy_store_is_read_by(a->store, rank))
            (void)ferry_poll(f);
}

/* Rank 0 moves half of its objects to each of two ranks. The first two go as images. */
static void give(ferry *f, account *a)
{
    if (ferry_rank(f) == 0)
        make_objects(f, a, OBJECTS);
    await_disk(f, a);
    for (int part = 0; part < 2; part++) {
        for (int rank = 1; rank <= 2 && ferry_rank(f) == 0; rank++)
            check(f, move_out(f, a, rank, part == 0 ? 1 : ROOM) != 0, "move");
        await_readers(f, a);
        check(f, ferry_quiesce(f) == 0, "quiesce");
    }
}

/* After the death of the rank that has written the images. */
static void use_all(ferry *f, account *a)
{
    ferry_object object;
    int count = 0;
    for (size_t index = 0; count < OBJECTS && fy_object_next(f, a->type, &index, &object);)
        a->all[count++] = (made){.object = object};
    check(f, count == 1 + ROOM && stats_of(f, a).taken == ROOM, "objects");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i++)
            send_one(f, a, &a->all[i]);
        while (a->ended != a->sent)
            (void)ferry_poll(f);
    }
    check(f, a->completed == 2 * count, "an object is lost with the rank that has written it");
    printf("places: rank %d has read %d objects of the dead\n", ferry_rank(f), ROOM);
}

/* After the death of the rank that has taken the places: new objects take them. */
static void use_again(ferry *f, account *a)
{
    uint64_t end_bytes = a->store->end_bytes;
    check(f, fy_list_empty(&a->store->lent), "a place is kept for the dead");
    make_objects(f, a, ROOM);
    await_disk(f, a);
    check(f, a->store->end_bytes == end_bytes, "the file has grown");
    printf("places: rank 0 has used the places of the dead again\n");
}

static void kill_one(ferry *f, account *a, int victim)
{
    give(f, a);
    if (ferry_rank(f) == victim)
        raise(SIGKILL);
    while (!ferry_peer_is_gone(f, victim))
        (void)ferry_poll(f);
    if (victim == 0) {
        use_all(f, a);
        return;
    }
    for (int i = 0; i < 100 && ferry_rank(f) == 0; i++)
        (void)ferry_poll(f);
    /* The places of rank 2 come back. */
    if (ferry_rank(f) == 2)
        (void)move_out(f, a, 0, OBJECTS);
    (void)ferry_quiesce(f);
    if (ferry_rank(f) == 0)
        use_again(f, a);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *seed = getenv("FERRY_SEED");
    account a = {.random = (seed == NULL ? 1 : strtoull(seed, NULL, 10)) * 1000003};
    a.random = (a.random + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1;
    if (!set_up(f, &a))
        return 0;
    if (argc > 1)
        kill_one(f, &a, strcmp(argv[1], "giver") == 0 ? 0 : 1);
    else
        play(f, &a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
