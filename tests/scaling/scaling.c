/* Work whose cost per item does not grow with the number of items.
 *
 * Goal: no list is walked for each item. Method: scaling CASE ITEMS does the work of a case for so
 * many items on one rank, or on simulated ranks. scaling.sh counts the instructions of several
 * runs.
 *
 * - `insertions` removes and inserts one index, again and again, without a poll between.
 * - `waits` starts a dequeue at each of ITEMS empty cells, and polls often.
 * - `queue` starts ITEMS dequeues at one empty cell, and polls once for each.
 * - `steps` sends the messages of a step of ITEMS messages, from elements in mixed order.
 * - `ahead` likewise, while messages for a later step wait in the element.
 * - `listed` is as `steps`, and the step has a list of its senders.
 * - `groups` makes groups and frees them, the oldest first.
 * - `early` starts ITEMS gathers on all ranks but the root, which starts its own after the data of
 *   all gathers have come. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { STEPPER = 0, POLLS = 100, ELEMENT_BYTES = 8 };

typedef struct work {
    ferry *f;
    int64_t items;
    ferry_collection *c;
    ferry_handler go;
    bool ahead;
    ferry_index *senders; /* NULL: the steps have no list */
    size_t inputs;
} work;

static void *make(ferry *f, ferry_element *element, void *arg, const void *bytes, size_t size_bytes)
{
    const work *w = arg;
    (void)bytes, (void)size_bytes;
    ferry_step first = FERRY_STEP_DEFAULTS;
    first.messages = (uint32_t)w->items;
    first.from = w->senders;
    if (element->collection != NULL && w->go.index != 0 && element->index.at[0] == STEPPER)
        CHECK(f, ferry_step_next(element, &first) == 0);
    return calloc(1, ELEMENT_BYTES);
}

static void step(ferry *f, ferry_element *element, const ferry_inputs *in)
{
    work *w = ferry_user_data(f);
    ferry_step next = FERRY_STEP_DEFAULTS;
    next.messages = (uint32_t)w->items;
    for (size_t i = 1; i < in->count; i++)
        CHECK(f, in->inputs[i - 1].from.at[0] < in->inputs[i].from.at[0]);
    w->inputs += in->count;
    if (w->ahead && in->step == 0)
        CHECK(f, ferry_step_next(element, &next) == 0);
}

static void go(ferry *f, ferry_object object, void *data, int source, const ferry_message *message)
{
    const ferry_element *element = data;
    const ferry_message empty = {.word_count = 0};
    (void)object, (void)source;
    CHECK(f, ferry_step_send(element->collection, element, ferry_index_of(STEPPER, 0, 0),
                             message->words[0], &empty, NULL) == 0);
}

static void collection_make(work *w, int64_t elements, bool steps)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "element";
    ops.flat_bytes = ELEMENT_BYTES;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.ops = &ops;
    options.make = make;
    options.make_arg = w;
    options.extents[0] = elements;
    options.step = steps ? step : NULL;
    CHECK(w->f, ferry_collection_create(w->f, &options, &w->c) == 0);
}

static void insertions(work *w)
{
    const ferry_index index = ferry_index_of(0, 0, 0);
    collection_make(w, 1, false);
    for (int64_t i = 0; i < w->items; i++) {
        CHECK(w->f, ferry_collection_remove(w->c, index) == 0);
        CHECK(w->f, ferry_collection_insert(w->c, NULL, index, NULL, 0) == 0);
    }
    CHECK(w->f, ferry_collection_destroy(w->c) == 0);
}

/* Every element sends to step `number`, in an order that is not that of their indices. */
static void send_all(work *w, uint64_t number)
{
    enum { STRIDE = 7919 }; /* a prime, which the number of items does not divide */
    for (int64_t i = 0; i < w->items; i++) {
        const ferry_message message = {.handler = w->go, .word_count = 1, .words = {number}};
        ferry_index from = ferry_index_of(1 + i * STRIDE % w->items, 0, 0);
        CHECK(w->f, ferry_collection_send(w->c, from, &message, NULL) == 0);
    }
    while (ferry_poll(w->f) > 0)
        ;
}

static void steps(work *w, bool listed)
{
    CHECK(w->f, ferry_object_handler_register(w->f, "go", go, &w->go) == 0);
    if (listed) {
        w->senders = calloc((size_t)w->items, sizeof *w->senders);
        CHECK(w->f, w->senders != NULL);
        for (int64_t i = 0; i < w->items; i++)
            w->senders[i] = ferry_index_of(1 + i, 0, 0);
    }
    collection_make(w, w->items + 1, true);
    if (w->ahead)
        send_all(w, 1);
    send_all(w, 0);
    CHECK(w->f, ferry_collection_check(w->c) == 0);
    CHECK(w->f, w->inputs == (size_t)w->items * (w->ahead ? 2 : 1));
    CHECK(w->f, ferry_collection_destroy(w->c) == 0);
    free(w->senders);
}

static void cells(work *w, bool one, int64_t polls)
{
    ferry_parcel *taken = calloc((size_t)w->items, sizeof *taken);
    ferry_op *ops = calloc((size_t)w->items, sizeof *ops);
    CHECK(w->f, taken != NULL && ops != NULL);
    for (int64_t i = 0; i < w->items; i++) {
        const ferry_cell cell = {.number = one ? 0 : (int32_t)i};
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &ops[i];
        CHECK(w->f, ferry_cell_dequeue_start(w->f, cell, &taken[i], &track) == 0);
    }
    for (int64_t i = 0; i < polls; i++)
        CHECK(w->f, ferry_poll(w->f) >= 0);
    for (int64_t i = 0; i < w->items; i++)
        CHECK(w->f, ferry_op_cancel(w->f, &ops[i]) == 0);
    CHECK(w->f, ferry_quiesce(w->f) == 0);
    free(taken);
    free(ops);
}

static void groups(const work *w)
{
    ferry_group **made = calloc((size_t)w->items, sizeof *made);
    CHECK(w->f, made != NULL);
    for (int64_t i = 0; i < w->items; i++)
        CHECK(w->f, ferry_group_split(w->f, NULL, 0, 0, &made[i]) == 0);
    for (int64_t i = 0; i < w->items; i++)
        ferry_group_free(w->f, made[i]);
    free(made);
}

/* `in` has the value of each gather, `out` room for those of all ranks. */
static void start_gathers(const work *w, ferry_op *ops, const int64_t *in, int64_t *out)
{
    ferry_collective gather = FERRY_COLLECTIVE_DEFAULTS;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    gather.kind = FERRY_GATHER;
    gather.type = FERRY_INT64;
    gather.count = 1;
    for (int64_t i = 0; i < w->items; i++) {
        gather.in = &in[i];
        gather.out = &out[i * ferry_ranks(w->f)];
        track.op = &ops[i];
        CHECK(w->f, ferry_collective_start(w->f, &gather, &track) == 0);
    }
}

static void await_others(ferry *f)
{
    for (int rank = 1; rank < ferry_ranks(f); rank++) {
        ferry_op op;
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &op;
        CHECK(f, ferry_receive(f, rank, 0, NULL, 0, &track) == 0 && ferry_op_wait(f, &op) == 0);
    }
}

static void gathers_early(const work *w)
{
    int rank = ferry_rank(w->f), ranks = ferry_ranks(w->f);
    ferry_op *ops = calloc((size_t)w->items, sizeof *ops);
    int64_t *in = calloc((size_t)w->items, sizeof *in);
    int64_t *out = calloc((size_t)(w->items * ranks), sizeof *out);
    CHECK(w->f, ops != NULL && in != NULL && out != NULL);
    for (int64_t i = 0; i < w->items; i++)
        in[i] = i * ranks + rank;
    if (rank == 0)
        await_others(w->f);
    start_gathers(w, ops, in, out);
    if (rank != 0)
        CHECK(w->f, ferry_send(w->f, 0, 0, NULL, 0, NULL) == 0);
    for (int64_t i = 0; i < w->items; i++)
        CHECK(w->f, ferry_op_wait(w->f, &ops[i]) == 0);
    for (int64_t i = 0; i < w->items * ranks && rank == 0; i++)
        CHECK(w->f, out[i] == i);
    free(out);
    free(in);
    free(ops);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    CHECK(f, argc == 3);
    work w = {.f = f, .items = strtoll(argv[2], NULL, 10), .ahead = strcmp(argv[1], "ahead") == 0};
    ferry_user_data_set(f, &w);
    CHECK(f, w.items > 0);
    if (strcmp(argv[1], "insertions") == 0)
        insertions(&w);
    else if (strcmp(argv[1], "waits") == 0)
        cells(&w, false, POLLS);
    else if (strcmp(argv[1], "queue") == 0)
        cells(&w, true, w.items);
    else if (strcmp(argv[1], "groups") == 0)
        groups(&w);
    else if (strcmp(argv[1], "early") == 0)
        gathers_early(&w);
    else
        steps(&w, strcmp(argv[1], "listed") == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
