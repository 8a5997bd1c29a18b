/* Goal: reductions give their results although memory runs out on the way. Method: elements
 * contribute to one reduction after the other. The results go to all ranks, and to one element, by
 * turns. A contribution that finds no memory is repeated. The simulator fails allocations. Other
 * calls end the job if they fail, for want of memory.
 */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { ELEMENTS = 12, ROUNDS = 8, VALUES = 16 };

typedef struct account {
    ferry_collection *c;
    ferry_handler contribute, at_rank, at_element;
    int64_t results; /* that have come to this rank or its elements */
} account;

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return calloc(1, sizeof(uint64_t));
}

/* The data are the number of the element's next round. */
static void contribute(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    static const double values[VALUES] = {1, 2};
    const account *a = ferry_user_data(f);
    ferry_contribution sum = FERRY_CONTRIBUTION_DEFAULTS;
    uint64_t *next = ((ferry_element *)data)->data, round = message->words[0];
    (void)object, (void)source;
    if (*next != round)
        return;
    sum.values = values;
    sum.count = VALUES;
    sum.to = round % 2 == 0 ? FERRY_REDUCED_RANKS : FERRY_REDUCED_ELEMENT;
    sum.handler = round % 2 == 0 ? a->at_rank : a->at_element;
    sum.index = ferry_index_of((int64_t)(7 * round % ELEMENTS), 0, 0);
    int error = ferry_element_contribute(data, &sum);
    CHECK(f, error == 0 || error == FERRY_ENOMEM);
    *next += error == 0;
}

static void take_result(ferry *f, const ferry_message *message)
{
    double values[VALUES];
    CHECK(f, message->size_bytes == sizeof values);
    memcpy(values, message->data, sizeof values);
    CHECK(f, values[0] == ELEMENTS && values[1] == 2 * ELEMENTS && values[2] == 0);
    ((account *)ferry_user_data(f))->results++;
}

static void at_rank(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    take_result(f, message);
}

static void at_element(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)object, (void)data, (void)source;
    take_result(f, message);
}

static int64_t sum(ferry *f, int64_t value)
{
    CHECK(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &value, &value, 1) == 0);
    return value;
}

/* Returns when all elements have contributed. */
static void run_round(ferry *f, account *a, uint64_t round)
{
    const ferry_message message = {.handler = a->contribute, .word_count = 1, .words = {round}};
    int64_t lacking;
    do {
        if (ferry_rank(f) == 0)
            CHECK(f, ferry_collection_send_section(a->c, NULL, &message) == 0);
        CHECK(f, ferry_quiesce(f) == 0);
        lacking = 0;
        for (ferry_element *e = NULL; (e = ferry_collection_next(a->c, e)) != NULL;)
            lacking += *(uint64_t *)e->data == round;
    } while (sum(f, lacking) != 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    account *a = calloc(1, sizeof *a);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    CHECK(f, a != NULL);
    ferry_user_data_set(f, a);
    ops.flat_bytes = sizeof(uint64_t);
    options.ops = &ops;
    options.make = make;
    options.extents[0] = ELEMENTS;
    CHECK(f, ferry_object_handler_register(f, "contribute", contribute, &a->contribute) == 0);
    CHECK(f, ferry_object_handler_register(f, "at element", at_element, &a->at_element) == 0);
    CHECK(f, ferry_handler_register(f, "at rank", at_rank, &a->at_rank) == 0);
    CHECK(f, ferry_collection_create(f, &options, &a->c) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(f, a, (uint64_t)round);
        int error = ferry_collection_check(a->c);
        CHECK(f, error == 0 || error == FERRY_ESTATE);
        bool right = sum(f, a->results) == (round / 2 + 1) * ferry_ranks(f) + (round + 1) / 2;
        if (error != 0 || !right)
            abort(); /* no want of memory excuses it */
    }
    CHECK(f, ferry_collection_destroy(a->c) == 0);
    free(a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
