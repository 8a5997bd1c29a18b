/* An index whose element is removed and inserted anew.
 *
 * Goal: an index never has two elements, and messages of one rank to it keep their order, whoever
 * removes the element. Method: rank 2 holds the element. The home sends it a message, which it
 * handles for long. Meanwhile rank 1 removes it and inserts the index again, and the home sends
 * another message. In the first turn rank 1 has sent to the element before, so it knows the name;
 * in the second it asks. With an argument there is one turn, and rank 2 dies meanwhile: then nobody
 * tells that the element has ended, and the next one is made all the same.
 */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { HOME, REMOVER, HOLDER, RANKS };
enum { NOTHING, FIRST, SECOND }; /* messages */

typedef struct shared {
    ferry_collection *c;
    ferry_index index;
    ferry_handler take, go_on;
    bool has_word;
    int64_t first_ns, second_ns, made_ns;
} shared;

static shared *shared_of(ferry *f)
{
    return ferry_user_data(f);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)e, (void)arg, (void)bytes, (void)size_bytes;
    shared_of(f)->made_ns = (int64_t)ferry_now(f);
    return calloc(1, sizeof(uint64_t));
}

static int home(void *arg, ferry_index index, int ranks)
{
    (void)arg, (void)index, (void)ranks;
    return HOME;
}

static void send(ferry *f, uint64_t what)
{
    const ferry_message message = {.handler = shared_of(f)->take, .word_count = 1, .words = {what}};
    CHECK(f, ferry_collection_send(shared_of(f)->c, shared_of(f)->index, &message, NULL) == 0);
}

static void take(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)object, (void)data, (void)source;
    if (message->words[0] == FIRST) {
        ferry_compute(f, 0.01);
        shared_of(f)->first_ns = (int64_t)ferry_now(f);
    } else if (message->words[0] == SECOND) {
        shared_of(f)->second_ns = (int64_t)ferry_now(f);
    }
}

/* The home has sent the first message, or rank 1 has inserted the index. */
static void go_on(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    shared_of(f)->has_word = true;
}

static void tell(ferry *f, int rank)
{
    const ferry_message message = {.handler = shared_of(f)->go_on};
    CHECK(f, ferry_request_send(f, rank, &message, NULL) == 0);
}

static void await_word(ferry *f)
{
    while (!shared_of(f)->has_word)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
    shared_of(f)->has_word = false;
}

static void note_gone(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)arg, (void)event;
}

static void turn(ferry *f, bool known)
{
    const shared *s = shared_of(f);
    if (ferry_rank(f) == REMOVER && known)
        send(f, NOTHING);
    CHECK(f, ferry_quiesce(f) == 0);
    if (ferry_rank(f) == HOME) {
        send(f, FIRST);
        tell(f, REMOVER);
        await_word(f);
        send(f, SECOND);
    }
    if (ferry_rank(f) == REMOVER) {
        await_word(f);
        CHECK(f, ferry_collection_remove(s->c, s->index) == 0);
        CHECK(f, ferry_collection_insert(s->c, NULL, s->index, NULL, 0) == 0);
        tell(f, HOME);
    }
    CHECK(f, ferry_quiesce(f) == 0);
}

static void check_order(ferry *f)
{
    const shared *s = shared_of(f);
    int64_t times[3] = {s->first_ns, s->made_ns, s->second_ns};
    CHECK(f, ferry_allreduce(f, FERRY_INT64, FERRY_MAX, times, times, 3) == 0);
    CHECK(f, 0 < times[0] && times[0] <= times[1] && times[0] <= times[2]);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argv;
    const bool dies = argc > 1;
    shared s = {.index = ferry_index_of(7, 0, 0)};
    ferry_user_data_set(f, &s);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    CHECK(f, ferry_ranks(f) == RANKS);
    CHECK(f, ferry_object_handler_register(f, "take", take, &s.take) == 0);
    CHECK(f, ferry_handler_register(f, "go on", go_on, &s.go_on) == 0);
    ops.flat_bytes = sizeof(uint64_t);
    options.ops = &ops;
    options.make = make;
    options.map_fn = home;
    options.fixed = true;
    CHECK(f, ferry_collection_create(f, &options, &s.c) == 0);
    if (ferry_rank(f) == HOME)
        CHECK(f, ferry_collection_insert(s.c, NULL, s.index, NULL, 0) == 0);
    if (dies)
        CHECK(f, ferry_peer_watch(f, note_gone, NULL) == 0);
    for (int i = 0; i < (dies ? 1 : 2); i++) {
        CHECK(f, ferry_quiesce(f) == 0);
        if (ferry_rank(f) == HOME)
            CHECK(f, ferry_object_move(f, ferry_collection_next(s.c, NULL)->object, HOLDER) == 0);
        turn(f, i == 0);
        if (!dies)
            check_order(f);
    }
    if (dies && ferry_rank(f) == HOME)
        CHECK(f, s.first_ns == 0 && s.made_ns != 0 && s.second_ns >= s.made_ns);
    CHECK(f, ferry_collection_destroy(s.c) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
