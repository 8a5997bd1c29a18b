/* Goal: if memory runs out at the root of a reduction, ferry_collection_check says so, and does not
 * say that elements differ. Method: elements with equal contributions make reductions. The
 * simulator fails allocations. Other calls end the job if they fail, for want of memory.
 */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { ELEMENTS = 12, ROUNDS = 8, VALUES = 16 };

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return calloc(1, sizeof(double));
}

static void contribute(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    static const double values[VALUES] = {1};
    ferry_contribution sum = FERRY_CONTRIBUTION_DEFAULTS;
    (void)object, (void)source, (void)message;
    sum.values = values;
    sum.count = VALUES;
    int error = ferry_element_contribute(data, &sum);
    CHECK(f, error == 0 || error == FERRY_ENOMEM);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    ferry_handler handler;
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ops.flat_bytes = sizeof(double);
    options.ops = &ops;
    options.make = make;
    options.extents[0] = ELEMENTS;
    CHECK(f, ferry_object_handler_register(f, "contribute", contribute, &handler) == 0);
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    const ferry_message message = {.handler = handler};
    for (int round = 0; round < ROUNDS; round++) {
        if (ferry_rank(f) == 0)
            CHECK(f, ferry_collection_send_section(c, NULL, &message) == 0);
        CHECK(f, ferry_quiesce(f) == 0);
        int error = ferry_collection_check(c);
        CHECK(f, error == 0 || (error == FERRY_ESTATE &&
                                strstr(ferry_error_message(f), "elements differ") == NULL));
    }
    CHECK(f, ferry_collection_destroy(c) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
