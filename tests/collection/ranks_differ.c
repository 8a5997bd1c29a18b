/* Goal: ferry_collection_create fails on all ranks if one rank gives another option, and names the
 * option with its values. If a rank fails, for its options or in `make`, the others get its error,
 * its number and its reason, although an element ends on that rank meanwhile. Method: rank 1
 * differs. Its `make` removes the first element and gives no second one. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)bytes, (void)size_bytes;
    const ferry_element *first = ferry_collection_next(e->collection, NULL);
    if (arg == NULL || first == NULL)
        return calloc(1, sizeof(double));
    CHECK(f, ferry_collection_remove(e->collection, first->index) == 0);
    return NULL;
}

static int home(void *arg, ferry_index index, int ranks)
{
    (void)arg;
    return (int)(index.at[0] % ranks);
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *inputs)
{
    (void)f, (void)e, (void)inputs;
}

static const char *const expected[] = {"dims differs between ranks, from 1 to 2",
                                       "extents[0] differs between ranks, from 9 to 10",
                                       "map_fn (0: NULL) differs between ranks, from 0 to 1",
                                       "step (0: NULL) differs between ranks, from 0 to 1",
                                       "fixed differs between ranks, from 0 to 1",
                                       "ops->flat_bytes differs between ranks, from 8 to 16",
                                       "collection element: `make` gave no element (4)",
                                       "collection_create: flags are 0x8"};
enum { NO_ELEMENT = 6, WRONG };

static void differ(ferry_collection_options *options, ferry_object_ops *ops, int which)
{
    options->dims = which == 0 ? 2 : 1;
    options->extents[0] = which == 1 ? 10 : 9;
    options->extents[1] = which == 0 ? 1 : 0;
    options->map_fn = which == 2 ? home : NULL;
    options->step = which == 3 ? step : NULL;
    options->fixed = which == 4;
    ops->flat_bytes = which == 5 ? 16 : 8;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    const bool differs = ferry_rank(f) == 1;
    for (int i = 0; i <= WRONG; i++) {
        ferry_collection *c;
        ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
        ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
        options.ops = &ops;
        options.make = make;
        differ(&options, &ops, differs ? i : -1);
        options.make_arg = i == NO_ELEMENT && differs ? &ops : NULL;
        ops.flags = i == WRONG && differs ? 8 : 0;
        CHECK(f, ferry_collection_create(f, &options, &c) ==
                     (i == NO_ELEMENT ? FERRY_ENOMEM : FERRY_EINVAL));
        CHECK(f, strstr(ferry_error_message(f), expected[i]) != NULL);
        CHECK(f, differs || i < NO_ELEMENT ||
                     strstr(ferry_error_message(f), "failed on rank 1: ") != NULL);
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
