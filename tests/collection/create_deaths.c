/* Goal: if a rank dies while a collection is made, and some ranks get it and others do not, the
 * next ferry_quiesce matches on all ranks, and the collectives after it work. A rank without the
 * collection can leave, and a later creation succeeds. Method: a rank dies at many times, which the
 * test gives to the simulator. Elements move while the collection is made. */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../sim/oracle.h"
#include "../support/survive.h"

enum { ELEMENTS = 40, HOPS = 6, TRIES = 4 };

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    const ferry_step first = FERRY_STEP_DEFAULTS;
    (void)arg, (void)bytes, (void)size_bytes;
    must(f, ferry_step_next(e, &first), "first step");
    return calloc(1, 8);
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    const ferry_step next = FERRY_STEP_DEFAULTS;
    ferry_compute(f, 1e-6);
    int error = ferry_object_move(f, e->object, (ferry_rank(f) + 1) % ferry_ranks(f));
    must(f, error == FERRY_EPEER ? 0 : error, "move");
    if (in->step < HOPS)
        must(f, ferry_step_next(e, &next), "next step");
}

/* Ends the collection, which this rank has, or not. False: not all ranks had it. */
static bool end(ferry *f, ferry_collection *c)
{
    int32_t here = c != NULL, everywhere = 0;
    int error = ferry_allreduce(f, FERRY_INT32, FERRY_MIN, &here, &everywhere, 1);
    must(f, error == FERRY_EPEER ? 0 : error, "allreduce");
    for (int i = 0; i < 2 && c == NULL; i++)
        must(f, survive_quiesce(f), "in place of destroy");
    if (c != NULL)
        must(f, ferry_collection_destroy(c), "destroy");
    return error == 0 && everywhere != 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    bool done = false;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ops.flat_bytes = 8;
    options.ops = &ops;
    options.make = make;
    options.step = step;
    options.extents[0] = ELEMENTS;
    must(f, survive_deaths(f), "watch");
    for (int i = 0; i < TRIES && !done; i++) {
        ferry_collection *c = NULL;
        int error = ferry_collection_create(f, &options, &c);
        must(f, error == FERRY_EPEER ? 0 : error, "create");
        must(f, survive_quiesce(f), "quiesce");
        done = end(f, c);
        must(f, survive_quiesce(f), "quiesce after the end");
    }
    must(f, done ? 0 : FERRY_ESTATE, "a collection on all ranks");
    if (ferry_rank(f) == 1)
        return ferry_leave(f) == 0 ? 0 : 1;
    must(f, survive_quiesce(f), "last quiesce");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
