/* A rank removes an index that has had no element, and then inserts it.
 *
 * Goal: the insertion makes the element. Messages that the rank has sent before the removal fail,
 * and those that it sends afterwards arrive. Method: each rank does so with an index of its own and
 * then with that of its neighbour, whose home is any rank; with a quiescence in between, or not.
 */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { TURNS = 4 };

typedef struct counts {
    int taken, completed, failed;
    ferry_handler handler;
} counts;

static const char about[3];

/* The receipt says what was sent, also if the message has waited. */
static void check_receipt(ferry *f, uintptr_t number, const ferry_receipt *receipt)
{
    const counts *n = ferry_user_data(f);
    CHECK(f, receipt->handler.index == n->handler.index);
    CHECK(f, receipt->local_address == &about[number] && receipt->size_bytes == 1);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return calloc(1, sizeof(uint64_t));
}

static void take(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)object, (void)data, (void)source;
    CHECK(f, message->words[0] == 2);
    ((counts *)ferry_user_data(f))->taken++;
}

static void completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    check_receipt(f, 2, receipt);
    CHECK(f, (uintptr_t)arg == 2);
    ((counts *)ferry_user_data(f))->completed++;
}

static void failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    check_receipt(f, 1, receipt);
    CHECK(f, (uintptr_t)arg == 1);
    CHECK(f, receipt->error == FERRY_ENOENT &&
                 strstr(receipt->reason, "knows no such element") != NULL);
    ((counts *)ferry_user_data(f))->failed++;
}

static void say(ferry *f, ferry_collection *c, ferry_index index, ferry_handler handler,
                uintptr_t number)
{
    const ferry_message message = {.handler = handler,
                                   .word_count = 1,
                                   .words = {number},
                                   .data = &about[number],
                                   .size_bytes = 1};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = completed;
    track.failed = failed;
    track.completed_arg = track.failed_arg = (void *)number; // NOLINT: a number
    CHECK(f, ferry_collection_send(c, index, &message, &track) == 0);
}

static void act(ferry *f, ferry_collection *c, ferry_handler handler)
{
    const counts *n = ferry_user_data(f);
    int ranks = ferry_ranks(f), here = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t at = (int64_t)turn * ranks + (ferry_rank(f) + turn) % ranks;
        const ferry_index index = ferry_index_of(at, 0, 0);
        say(f, c, index, handler, 1);
        CHECK(f, ferry_collection_remove(c, index) == 0);
        if (turn % 2 == 1)
            CHECK(f, ferry_quiesce(f) == 0);
        CHECK(f, ferry_collection_insert(c, NULL, index, NULL, 0) == 0);
        say(f, c, index, handler, 2);
    }
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, n->failed == TURNS && n->completed == TURNS);
    for (ferry_element *e = NULL; (e = ferry_collection_next(c, e)) != NULL;)
        here++;
    int sums[2] = {here, n->taken};
    CHECK(f, ferry_allreduce(f, FERRY_INT32, FERRY_SUM, sums, sums, 2) == 0);
    CHECK(f, sums[0] == TURNS * ranks && sums[1] == TURNS * ranks);
    CHECK(f, ferry_collection_check(c) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    ferry_collection *c;
    counts n = {0};
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ferry_user_data_set(f, &n); /* handlers may run in ferry_collection_create */
    ops.flat_bytes = sizeof(uint64_t);
    options.ops = &ops;
    options.make = make;
    CHECK(f, ferry_object_handler_register(f, "take", take, &n.handler) == 0);
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    act(f, c, n.handler);
    CHECK(f, ferry_collection_destroy(c) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
