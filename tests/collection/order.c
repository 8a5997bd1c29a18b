/* Goal: insertions, removals and messages of one rank to one index take effect in the order of its
 * calls, wherever the home and the element are. Method: each rank makes random calls for indices of
 * its own, whose homes are on all ranks. Messages move the elements at random. An oracle says which
 * element each message meets, and which element is there at the end. Arguments: calls for each
 * rank, seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/random.h"

enum { INDICES = 6, NEVER = 0, REMOVED = -1 }; /* of each rank */
enum { FAILS = -1, UNKNOWN = -2 };

typedef struct sent {
    int index, expected, got; /* the number of the element; FAILS; UNKNOWN */
} sent;

/* An index as its rank expects it. */
typedef struct expected {
    int element;  /* its number; NEVER: there has been none; REMOVED */
    bool removed; /* NEVER: a removal waits */
} expected;

typedef struct world {
    ferry *f;
    ferry_collection *c;
    ferry_handler hit, met;
    uint64_t random;
    expected at[INDICES];
    sent *messages;
    int count, ended;
    int numbers; /* of elements that this rank has inserted */
} world;

static world *world_of(ferry *f)
{
    return ferry_user_data(f);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    int *number = malloc(sizeof *number);
    (void)e, (void)arg;
    CHECK(f, number != NULL && size_bytes == sizeof *number);
    memcpy(number, bytes, sizeof *number);
    return number;
}

static void hit(ferry *f, ferry_object object, void *data, int source, const ferry_message *message)
{
    const ferry_element *e = data;
    world *w = world_of(f);
    const ferry_message answer = {.handler = w->met,
                                  .word_count = 2,
                                  .words = {message->words[0], (uint64_t) * (int *)e->data}};
    CHECK(f, ferry_request_send(f, source, &answer, NULL) == 0);
    if (draw(&w->random, 2) == 0)
        CHECK(f,
              ferry_object_move(f, object, (int)draw(&w->random, (uint64_t)ferry_ranks(f))) == 0);
}

static void met(ferry *f, int source, const ferry_message *message)
{
    sent *m = &world_of(f)->messages[message->words[0]];
    (void)source;
    CHECK(f, m->got == UNKNOWN);
    m->got = (int)message->words[1];
}

static void completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg, (void)receipt;
    world_of(f)->ended++;
}

static void failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    sent *m = arg;
    CHECK(f, receipt->error == FERRY_ENOENT && m->got == UNKNOWN);
    m->got = FAILS;
    world_of(f)->ended++;
}

static ferry_index index_of(const world *w, int which)
{
    return ferry_index_of((int64_t)which * ferry_ranks(w->f) + ferry_rank(w->f), 0, 0);
}

static void say(world *w, int which)
{
    expected *at = &w->at[which];
    sent *m = &w->messages[w->count];
    const ferry_message message = {
        .handler = w->hit, .word_count = 1, .words = {(uint64_t)w->count}};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    *m = (sent){which, at->element > 0 ? at->element : FAILS, UNKNOWN};
    w->count++;
    track.completed = completed;
    track.failed = failed;
    track.failed_arg = m;
    int error = ferry_collection_send(w->c, index_of(w, which), &message, &track);
    CHECK(w->f, error == 0 || error == FERRY_ENOENT);
    if (error == 0)
        return;
    m->got = FAILS;
    w->ended++;
}

static void insert(world *w, int which)
{
    expected *at = &w->at[which];
    int number = ++w->numbers;
    CHECK(w->f,
          ferry_collection_insert(w->c, NULL, index_of(w, which), &number, sizeof number) == 0);
    if (at->element > 0)
        return;
    for (int i = 0; at->element == NEVER && !at->removed && i < w->count; i++)
        if (w->messages[i].index == which)
            w->messages[i].expected = number; /* they wait for the first element */
    at->element = number;
}

static void take_away(world *w, int which)
{
    expected *at = &w->at[which];
    int error = ferry_collection_remove(w->c, index_of(w, which));
    CHECK(w->f, error == 0 || error == FERRY_ENOENT);
    at->removed = true;
    if (at->element != NEVER)
        at->element = REMOVED;
}

static void act(world *w, int calls)
{
    for (int i = 0; i < calls; i++) {
        int which = (int)draw(&w->random, INDICES);
        switch (draw(&w->random, 8)) {
        case 0:
        case 1:
            insert(w, which);
            break;
        case 2:
        case 3:
            take_away(w, which);
            break;
        case 4:
        case 5:
        case 6:
            say(w, which);
            break;
        default:
            if (draw(&w->random, 3) == 0)
                CHECK(w->f, ferry_wait(w->f, draw(&w->random, 300000)) >= 0);
            else
                CHECK(w->f, ferry_poll(w->f) >= 0);
        }
    }
    for (int which = 0; which < INDICES; which++)
        if (w->at[which].element == NEVER)
            insert(w, which); /* nothing waits forever */
}

static void compare(world *w)
{
    ferry *f = w->f;
    int all = INDICES * ferry_ranks(f);
    int32_t *numbers = calloc((size_t)all, sizeof *numbers);
    CHECK(f, numbers != NULL && w->ended == w->count);
    for (int i = 0; i < w->count; i++)
        if (w->messages[i].got != w->messages[i].expected) {
            (void)fprintf(stderr, "message %d to index %d met %d, expected %d\n", i,
                          w->messages[i].index, w->messages[i].got, w->messages[i].expected);
            CHECK(f, false);
        }
    for (ferry_element *e = NULL; (e = ferry_collection_next(w->c, e)) != NULL;)
        numbers[e->index.at[0]] += *(int *)e->data;
    CHECK(f, ferry_allreduce(f, FERRY_INT32, FERRY_SUM, numbers, numbers, (size_t)all) == 0);
    for (int which = 0; which < INDICES; which++) {
        int element = w->at[which].element;
        CHECK(f, numbers[index_of(w, which).at[0]] == (element > 0 ? element : 0));
    }
    free(numbers);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 200;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    world w = {.f = f, .random = seed * 0x9e3779b97f4a7c15u + (uint64_t)ferry_rank(f) * 77 + 1};
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    w.messages = calloc((size_t)calls, sizeof *w.messages);
    ferry_user_data_set(f, &w);
    ops.flat_bytes = sizeof(int);
    options.ops = &ops;
    options.make = make;
    CHECK(f, w.messages != NULL);
    CHECK(f, ferry_object_handler_register(f, "hit", hit, &w.hit) == 0);
    CHECK(f, ferry_handler_register(f, "met", met, &w.met) == 0);
    CHECK(f, ferry_collection_create(f, &options, &w.c) == 0);
    act(&w, calls);
    CHECK(f, ferry_quiesce(f) == 0 && ferry_collection_check(w.c) == 0);
    /* The end of an operation is no work: it may come after quiescence. */
    uint64_t limit_ns = ferry_now(f) + UINT64_C(20000000000);
    while (w.ended != w.count && ferry_now(f) < limit_ns)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
    compare(&w);
    CHECK(f, ferry_collection_destroy(w.c) == 0 && ferry_object_count(f) == 0);
    free(w.messages);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
