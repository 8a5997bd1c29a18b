/* The set-up of tests whose objects are flat: a store of the type, data servers, objects. */
#ifndef FY_TEST_PERCOLATION_SETUP_H
#define FY_TEST_PERCOLATION_SETUP_H

#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check.h"

/* Registers the type of objects of `bytes`, and opens a store of `budget_bytes` for them. */
static inline ferry_object_type store_set_up(ferry *f, size_t bytes, size_t budget_bytes)
{
    const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = bytes};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_store *store = NULL;
    ferry_object_type type = {0};
    options.budget_bytes = budget_bytes;
    check(f,
          ferry_object_type_register(f, &ops, &type) == 0 &&
              ferry_store_open(f, &options, &store) == 0 && ferry_store_add(store, type) == 0,
          "set-up of the store");
    return type;
}

/* Whether percolation has started with the first `servers` ranks as data servers. */
static inline bool percolation_begins(ferry *f, int servers)
{
    ferry_percolation_options options = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    options.servers = servers;
    return ferry_percolation_start(f, &options) == 0;
}

/* Creates `count` objects of `bytes` here, for the scheduler. */
static inline void objects_create(ferry *f, ferry_object_type type, size_t bytes,
                                  ferry_object *objects, int count)
{
    for (int i = 0; i < count; i++)
        check(f,
              ferry_object_create(f, type, calloc(1, bytes), &objects[i]) == 0 &&
                  ferry_balance_add(f, objects[i], NULL) == 0,
              "create");
}

#endif
