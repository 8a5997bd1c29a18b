/* The scheduler moves elements, and each destroys itself in its last step. Goal: the library's own
 * message that runs a step may come after the element has ended, and nobody is told of a loss.
 * Method: the test fails if the output says that a message is lost. */
#include <stdlib.h>

#include <ferry/ferry.h>

#define CHECK(f, x) ((x) ? (void)0 : ferry_abort(f, 1, #x))

enum { ELEMENTS = 24, STEPS = 20 };

/* Contributes to a reduction, and waits for its result. */
static void go(ferry_element *e)
{
    ferry *f = ferry_collection_rank(e->collection);
    const ferry_contribution barrier = FERRY_CONTRIBUTION_DEFAULTS;
    const ferry_step needs = {.size = sizeof needs, .reduction = true};
    CHECK(f, ferry_element_contribute(e, &barrier) == 0);
    CHECK(f, ferry_step_next(e, &needs) == 0);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)arg, (void)bytes, (void)size_bytes;
    const ferry_step first = FERRY_STEP_DEFAULTS;
    CHECK(f, ferry_step_next(e, &first) == 0);
    return calloc(1, 8);
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    ferry_compute(f, e->index.at[0] < ELEMENTS / 4 ? 1e-3 : 1e-4);
    if (in->step + 1 == STEPS) {
        CHECK(f, ferry_object_destroy(f, e->object) == 0);
        return;
    }
    if ((uint64_t)e->index.at[0] % 3 == in->step % 3)
        CHECK(f, ferry_object_move(f, e->object, (ferry_rank(f) + 1) % ferry_ranks(f)) == 0);
    go(e);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.flat_bytes = 8;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.extents[0] = ELEMENTS;
    options.ops = &ops;
    options.make = make;
    options.step = step;
    CHECK(f, ferry_balance_enable(f, true) == 0);
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    CHECK(f, ferry_quiesce(f) == 0 && ferry_collection_check(c) == 0);
    CHECK(f, ferry_object_count(f) == 0);
    CHECK(f, ferry_collection_destroy(c) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
