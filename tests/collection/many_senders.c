/* A step with a long list of senders, whose element moves while their messages come.
 *
 * Goal: the step gets the first message of each sender, in the order of the list, and a second one
 * is reported. Method: half of the senders send, the element moves to the next rank, all senders
 * send: those of the first half for the second time. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { STEPPER, SENDERS = 100, STRIDE = 37 };

typedef struct world {
    ferry_collection *c;
    ferry_handler move;
    ferry_index senders[SENDERS];
    size_t inputs;
} world;

static void *make(ferry *f, ferry_element *element, void *arg, const void *bytes, size_t size_bytes)
{
    const world *w = arg;
    ferry_step first = FERRY_STEP_DEFAULTS;
    (void)bytes, (void)size_bytes;
    first.messages = SENDERS;
    first.from = w->senders;
    if (element->index.at[0] == STEPPER)
        CHECK(f, ferry_step_next(element, &first) == 0);
    return calloc(1, sizeof(uint64_t));
}

static void step(ferry *f, ferry_element *element, const ferry_inputs *in)
{
    world *w = ferry_user_data(f);
    (void)element;
    CHECK(f, in->count == SENDERS);
    for (size_t i = 0; i < in->count; i++) {
        CHECK(f, ferry_index_equal(in->inputs[i].from, w->senders[i]));
        CHECK(f, in->inputs[i].message->words[0] == (i < SENDERS / 2 ? 1 : 2));
    }
    w->inputs += in->count;
}

static void move(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)data, (void)source, (void)message;
    CHECK(f, ferry_object_move(f, object, (ferry_rank(f) + 1) % ferry_ranks(f)) == 0);
}

/* The first `count` senders of the list that are on this rank send `turn`. */
static void send(ferry *f, const world *w, int count, uint64_t turn)
{
    const ferry_message message = {.word_count = 1, .words = {turn}};
    for (const ferry_element *e = NULL; (e = ferry_collection_next(w->c, e)) != NULL;)
        for (int i = 0; i < count; i++)
            if (ferry_index_equal(e->index, w->senders[i]))
                CHECK(f, ferry_step_send(w->c, e, ferry_index_of(STEPPER, 0, 0), 0, &message,
                                         NULL) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    world w = {.c = NULL};
    int64_t inputs = 0;
    (void)argc, (void)argv;
    for (int i = 0; i < SENDERS; i++)
        w.senders[i] = ferry_index_of(1 + i * STRIDE % SENDERS, 0, 0);
    ferry_user_data_set(f, &w);
    CHECK(f, ferry_object_handler_register(f, "move", move, &w.move) == 0);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "element";
    ops.flat_bytes = sizeof(uint64_t);
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.ops = &ops;
    options.make = make;
    options.make_arg = &w;
    options.extents[0] = SENDERS + 1;
    options.step = step;
    CHECK(f, ferry_collection_create(f, &options, &w.c) == 0);
    send(f, &w, SENDERS / 2, 1);
    const ferry_message leave = {.handler = w.move};
    if (ferry_rank(f) == 0)
        CHECK(f, ferry_collection_send(w.c, ferry_index_of(STEPPER, 0, 0), &leave, NULL) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, ferry_collection_check(w.c) == FERRY_ESTATE); /* half of the messages are missing */
    send(f, &w, SENDERS, 2);
    int64_t here = (int64_t)w.inputs;
    CHECK(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &here, &inputs, 1) == 0);
    CHECK(f, inputs == SENDERS);
    CHECK(f, ferry_collection_check(w.c) == FERRY_ESTATE); /* half came twice */
    CHECK(f, ferry_collection_destroy(w.c) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
