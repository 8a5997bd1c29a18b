/* An index whose element is removed and inserted anew.
 *
 * Goal: a removal reaches the element that the rank knows to be the last of the index. Method: on
 * three simulated ranks the home removes an element that rank 2 holds, inserts another and moves
 * that one to rank 1. Rank 2 computes meanwhile, so it has not taken the removal when it moves the
 * old element to rank 1, where it comes second. Then rank 1 removes the element of the index: the
 * new one, since the old one has been removed already. Both must end.
 */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { HOME, TARGET, HOLDER, RANKS };

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return calloc(1, sizeof(uint64_t));
}

static int home(void *arg, ferry_index index, int ranks)
{
    (void)arg, (void)index, (void)ranks;
    return HOME;
}

static void take(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)object, (void)data, (void)source, (void)message;
    ++*(int *)ferry_user_data(f);
}

static int count_here(ferry_collection *c, ferry_object *last)
{
    int count = 0;
    for (ferry_element *e = NULL; (e = ferry_collection_next(c, e)) != NULL; count++)
        *last = e->object;
    return count;
}

/* Polls until `count` elements are here. */
static void await(ferry *f, ferry_collection *c, int count, ferry_object *last)
{
    while (count_here(c, last) != count)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
}

static void act(ferry *f, ferry_collection *c, ferry_handler poke)
{
    const ferry_index index = ferry_index_of(7, 0, 0);
    const ferry_message message = {.handler = poke};
    ferry_object object = {0};
    int pokes = 0;
    ferry_user_data_set(f, &pokes);
    if (ferry_rank(f) == HOME) {
        CHECK(f, ferry_collection_insert(c, NULL, index, NULL, 0) == 0);
        await(f, c, 1, &object);
        CHECK(f, ferry_object_move(f, object, HOLDER) == 0);
    }
    if (ferry_rank(f) == TARGET) /* this rank knows the first element's name from here on */
        CHECK(f, ferry_collection_send(c, index, &message, NULL) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    if (ferry_rank(f) == HOME) {
        CHECK(f, ferry_collection_remove(c, index) == 0);
        CHECK(f, ferry_collection_insert(c, NULL, index, NULL, 0) == 0);
        await(f, c, 1, &object);
        CHECK(f, ferry_object_move(f, object, TARGET) == 0);
    }
    if (ferry_rank(f) == HOLDER) {
        CHECK(f, count_here(c, &object) == 1);
        ferry_compute(f, 0.01);
        CHECK(f, ferry_object_move(f, object, TARGET) == 0);
        ferry_compute(f, 0.01);
    }
    if (ferry_rank(f) == TARGET) {
        await(f, c, 1, &object);
        pokes = 0;
        CHECK(f, ferry_collection_send(c, index, &message, NULL) == 0);
        while (pokes == 0) /* so it knows the name of the new element */
            CHECK(f, ferry_wait(f, 1000000) >= 0);
        await(f, c, 2, &object);
        CHECK(f, ferry_collection_remove(c, index) == 0);
    }
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, count_here(c, &object) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ferry_collection *c;
    ferry_handler poke;
    (void)argc, (void)argv;
    CHECK(f, ferry_ranks(f) == RANKS);
    CHECK(f, ferry_object_handler_register(f, "poke", take, &poke) == 0);
    ops.flat_bytes = sizeof(uint64_t);
    options.ops = &ops;
    options.make = make;
    options.map_fn = home;
    options.fixed = true;
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    act(f, c, poke);
    CHECK(f, ferry_collection_destroy(c) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
