/* Goal: when ranks die, insertions and messages to the elements of a collection end on the others,
 * and so does ferry_quiesce, although nobody can tell of an element that was lost. Method: all
 * ranks insert and remove elements of the same few indices, and send to them, from main and from
 * handlers, in which elements move. For the simulator: ferry swarm --all -n N. */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../sim/oracle.h"
#include "../support/survive.h"
#include "../support/tracked.h"

enum { RANKS_MAX = 32, INDICES = 5, CALLS = 60, HOPS = 4 };

typedef struct account {
    ferry_collection *elements;
    ferry_handler step;
    uint64_t random;
    int sent;
    tracked ends;
} account;

static void allow(ferry *f, int error)
{
    if (error != FERRY_EPEER && error != FERRY_ENOENT && error != FERRY_EAGAIN)
        must(f, error, "a call of the collection");
}

static void act(ferry *f, account *a, ferry_element *element, uint64_t hops)
{
    const ferry_message message = {.handler = a->step, .word_count = 1, .words = {hops}};
    ferry_index index = ferry_index_of((int64_t)draw(&a->random, INDICES), 0, 0);
    uint64_t what = draw(&a->random, 8);
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = tracked_completed;
    track.failed = tracked_failed;
    track.completed_arg = track.failed_arg = &a->ends;
    if (what == 0 || what == 2)
        allow(f, ferry_collection_remove(a->elements, index));
    if (what == 1 || what == 2)
        allow(f, ferry_collection_insert(a->elements, element, index, NULL, 0));
    if (what < 3)
        return;
    int error = ferry_collection_send(a->elements, index, &message, &track);
    a->sent += error == 0;
    allow(f, error);
}

static void on_step(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)source;
    if (draw(&a->random, 3) == 0)
        allow(f, ferry_object_move(f, object, (int)draw(&a->random, (uint64_t)ferry_ranks(f))));
    if (message->words[0] > 0 && a->elements != NULL)
        act(f, a, data, message->words[0] - 1);
}

static void *make(ferry *f, ferry_element *element, void *arg, const void *data, size_t size_bytes)
{
    (void)f, (void)element, (void)arg, (void)data, (void)size_bytes;
    return calloc(1, 64);
}

/* A message to an index that nobody has inserted waits for that. The others may have died before
 * they did, and this rank may have drawn no insertion. */
static void insert_missing(ferry *f, account *a)
{
    for (int i = 0; i < INDICES; i++) {
        int error;
        while ((error = ferry_collection_insert(a->elements, NULL, ferry_index_of(i, 0, 0), NULL,
                                                0)) == FERRY_EAGAIN)
            (void)ferry_poll(f);
        allow(f, error);
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static account accounts[RANKS_MAX];
    account *a = &accounts[ferry_rank(f)];
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    int error;
    (void)argc, (void)argv;
    ops.flat_bytes = 64;
    options.ops = &ops;
    options.make = make;
    a->random = first_random(ferry_rank(f));
    ferry_user_data_set(f, a);
    must(f, survive_deaths(f), "watch");
    must(f, ferry_object_handler_register(f, "step", on_step, &a->step), "handler");
    error = ferry_collection_create(f, &options, &a->elements);
    if (error == FERRY_EPEER)
        return 0; /* a rank died before there was a collection */
    must(f, error, "create");
    for (int i = 0; i < CALLS; i++) {
        act(f, a, NULL, HOPS);
        if (draw(&a->random, 2) == 0)
            (void)ferry_poll(f);
    }
    must(f, survive_quiesce(f), "quiesce while messages wait");
    insert_missing(f, a);
    error = survive_quiesce(f);
    must(f, error, "quiesce");
    int ended = a->ends.completed + a->ends.failed;
    if (a->sent != ended)
        wrong(f, "messages sent, and ended", (uint64_t)a->sent, (uint64_t)ended);
    error = ferry_collection_destroy(a->elements);
    while (error == FERRY_EPEER)
        error = ferry_quiesce(f);
    must(f, error, "destroy");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
