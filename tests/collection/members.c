/* Goal: a collection is of the members of the job, also if other numbers of ranks are not in use.
 *
 * Method: by the argument, the job has room for ranks that never come (`room`), rank 1 leaves
 * (`leave`) or dies (`die`), or a rank joins (`join`), also after the others have had a collection
 * (`late`). Then each map places elements, which get messages and contribute to reductions. With
 * `home` rank 1 dies while the collection exists, and rank 0 sends to a section. With `hold` the
 * ranks try to leave and to start others meanwhile.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { ELEMENTS = 60, RANKS = 8, HOLE = 1, MAPS = 6 };

typedef struct state {
    ferry_handler count, contribute, result;
    int counted, results;
    bool gone;
    int members[RANKS]; /* for the program's map */
} state;

static state *state_of(ferry *f)
{
    return ferry_user_data(f);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return calloc(1, sizeof(double));
}

static int member_of(void *arg, ferry_index index, int ranks)
{
    const state *s = arg;
    return s->members[index.at[0] % ranks];
}

static int hole_of(void *arg, ferry_index index, int ranks)
{
    (void)index, (void)ranks;
    return *(const int *)arg;
}

static void count(ferry *f, ferry_object object, void *data, int source,
                  const ferry_message *message)
{
    (void)object, (void)data, (void)source, (void)message;
    state_of(f)->counted++;
}

static void contribute(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    const double one = 1;
    ferry_contribution sum = FERRY_CONTRIBUTION_DEFAULTS;
    (void)object, (void)source;
    sum.values = &one;
    sum.count = 1;
    sum.to = (ferry_reduced)message->words[0];
    sum.rank = (int)message->words[1];
    sum.handler = state_of(f)->result;
    CHECK(f, ferry_element_contribute(data, &sum) == 0);
}

static void result(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    CHECK(f, *(const double *)message->data == ELEMENTS);
    state_of(f)->results++;
}

static ferry_collection_options options_of(const ferry_object_ops *ops)
{
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.ops = ops;
    options.make = make;
    options.extents[0] = ELEMENTS;
    return options;
}

static int sum_of(ferry *f, int value)
{
    int32_t sum = value;
    CHECK(f, ferry_allreduce(f, FERRY_INT32, FERRY_SUM, &sum, &sum, 1) == 0);
    return sum;
}

/* Other ranks may send as soon as their last collective has ended: so all meet again first. */
static void begin_anew(ferry *f)
{
    state_of(f)->counted = state_of(f)->results = 0;
    CHECK(f, ferry_barrier(f) == 0);
}

/* Each member sends to all elements, by a section and one by one. */
static void send_to_all(ferry *f, ferry_collection *c)
{
    const ferry_message message = {.handler = state_of(f)->count};
    begin_anew(f);
    CHECK(f, ferry_collection_send_section(c, NULL, &message) == 0);
    for (int i = 0; i < ELEMENTS; i++)
        CHECK(f, ferry_collection_send(c, ferry_index_of(i, 0, 0), &message, NULL) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, sum_of(f, state_of(f)->counted) == 2 * ELEMENTS * ferry_member_count(f));
}

static void reduce(ferry *f, ferry_collection *c, ferry_reduced to)
{
    int last = ferry_member_rank(f, ferry_member_count(f) - 1);
    const ferry_message message = {
        .handler = state_of(f)->contribute, .word_count = 2, .words = {to, (uint64_t)last}};
    begin_anew(f);
    if (ferry_rank(f) == 0)
        CHECK(f, ferry_collection_send_section(c, NULL, &message) == 0);
    CHECK(f, ferry_quiesce(f) == 0 && ferry_collection_check(c) == 0);
    bool here = to == FERRY_REDUCED_RANKS || ferry_rank(f) == last;
    CHECK(f, state_of(f)->results == here);
}

static void use_map(ferry *f, ferry_map map, ferry_map_fn *fn)
{
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = options_of(&ops);
    int here = 0;
    ops.flat_bytes = sizeof(double);
    options.map = map;
    options.map_fn = fn;
    options.map_arg = state_of(f);
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    for (ferry_element *e = NULL; (e = ferry_collection_next(c, e)) != NULL; here++)
        CHECK(f, ferry_collection_home(c, e->index) == ferry_rank(f));
    CHECK(f, here > 0 && sum_of(f, here) == ELEMENTS);
    send_to_all(f, c);
    for (int i = 0; i < ferry_member_count(f); i++) /* roots on all members */
        reduce(f, c, i % 2 == 0 ? FERRY_REDUCED_RANKS : FERRY_REDUCED_RANK);
    CHECK(f, ferry_collection_destroy(c) == 0);
}

/* A collection with a type of its own, from each rank of which an element moves to the next. */
static void use_other_type(ferry *f)
{
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = options_of(&ops);
    int place = ferry_member_place(f, ferry_rank(f)) + 1;
    ops.name = "other";
    ops.flat_bytes = sizeof(double);
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    ferry_object first = ferry_collection_next(c, NULL)->object;
    CHECK(f, ferry_object_move(f, first, ferry_member_rank(f, place % ferry_member_count(f))) == 0);
    send_to_all(f, c);
    CHECK(f, ferry_collection_destroy(c) == 0);
}

/* A number without a rank is no home, and gets no result. */
static void refuse_holes(ferry *f)
{
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = options_of(&ops);
    int hole = ferry_ranks(f);
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        hole = ferry_member_place(f, rank) < 0 ? rank : hole;
    ops.flat_bytes = sizeof(double);
    options.map_fn = hole_of;
    options.map_arg = &hole;
    CHECK(f, ferry_collection_create(f, &options, &c) == FERRY_EINVAL);
    CHECK(f, strstr(ferry_error_message(f), "expected one of the") != NULL);
    options.map_fn = NULL;
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    ferry_contribution to_hole = FERRY_CONTRIBUTION_DEFAULTS;
    to_hole.to = FERRY_REDUCED_RANK;
    to_hole.rank = hole;
    CHECK(f, ferry_element_contribute(ferry_collection_next(c, NULL), &to_hole) == FERRY_EINVAL);
    CHECK(f, ferry_collection_destroy(c) == 0);
}

/* Every rank is told which element has not contributed. */
static void miss_one(ferry *f)
{
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = options_of(&ops);
    const ferry_section most[] = {{{{0, 0, 0}}, {{40, 0, 0}}, {{1, 0, 0}}},
                                  {{{42, 0, 0}}, {{ELEMENTS - 1, 0, 0}}, {{1, 0, 0}}}};
    const ferry_message message = {.handler = state_of(f)->contribute, .word_count = 2};
    ops.flat_bytes = sizeof(double);
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    for (int i = 0; ferry_rank(f) == 0 && i < 2; i++)
        CHECK(f, ferry_collection_send_section(c, &most[i], &message) == 0);
    CHECK(f, ferry_quiesce(f) == 0 && ferry_collection_check(c) == FERRY_ESTATE);
    CHECK(f, strstr(ferry_error_message(f),
                    "59 of 60 elements contributed; element (41) did not") != NULL);
    CHECK(f, ferry_collection_destroy(c) == 0);
}

static void note_gone(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)arg;
    state_of(f)->gone |= !event->joined;
}

static void await_gone(ferry *f)
{
    while (!state_of(f)->gone)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
}

/* A section goes to the homes that are left. */
static void lose_home(ferry *f)
{
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = options_of(&ops);
    const ferry_message message = {.handler = state_of(f)->count};
    const ferry_section lost = {{{20, 0, 0}}, {{39, 0, 0}}, {{1, 0, 0}}};
    ops.flat_bytes = sizeof(double);
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    if (ferry_rank(f) == HOLE)
        raise(SIGKILL);
    await_gone(f);
    if (ferry_rank(f) == 0) {
        CHECK(f, ferry_collection_send_section(c, &lost, &message) == FERRY_EPEER);
        CHECK(f, ferry_collection_send_section(c, NULL, &message) == 0);
    }
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, sum_of(f, state_of(f)->counted) == 40);
    CHECK(f, ferry_collection_check(c) == FERRY_ESTATE);
    CHECK(f, strstr(ferry_error_message(f), "section did not reach rank 1") != NULL);
    CHECK(f, ferry_collection_destroy(c) == 0);
}

/* No rank leaves or is started while there is a collection. Afterwards rank 1 leaves. */
static int hold(ferry *f)
{
    ferry_collection *first, *second;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = options_of(&ops);
    int started;
    ops.flat_bytes = sizeof(double);
    ops.name = "held";
    CHECK(f, ferry_collection_create(f, &options, &first) == 0);
    CHECK(f, ferry_leave(f) == FERRY_ESTATE);
    CHECK(f, strstr(ferry_error_message(f), "leave: collection held exists") != NULL);
    CHECK(f, ferry_collection_create(f, &options, &second) == 0);
    CHECK(f, ferry_spawn(f, 1, NULL, &started) == FERRY_ESTATE);
    CHECK(f, strstr(ferry_error_message(f), "spawn: collection held and 1 more exist") != NULL);
    send_to_all(f, first); /* the job goes on */
    CHECK(f, ferry_collection_destroy(first) == 0);
    CHECK(f, ferry_leave(f) == FERRY_ESTATE);
    CHECK(f, ferry_collection_destroy(second) == 0);
    if (ferry_rank(f) == HOLE)
        return ferry_leave(f);
    CHECK(f, ferry_quiesce(f) == 0 && ferry_member_count(f) == 2);
    return 0;
}

/* Returns whether this rank goes on. */
static bool change_members(ferry *f, const char *how)
{
    bool late = strcmp(how, "late") == 0;
    if (late && ferry_member_count(f) != 0)
        use_other_type(f);
    if ((late || strcmp(how, "join") == 0) && ferry_rank(f) == 0) {
        int first;
        CHECK(f, ferry_spawn(f, 1, NULL, &first) == 0);
    }
    if (ferry_member_count(f) != 0) /* else it has joined */
        CHECK(f, ferry_barrier(f) == 0);
    if (strcmp(how, "die") == 0 && ferry_rank(f) == HOLE)
        raise(SIGKILL);
    if (strcmp(how, "leave") == 0 && ferry_rank(f) == HOLE)
        return false;
    CHECK(f, ferry_quiesce(f) == 0);
    return true;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "room";
    state s = {.gone = false};
    ferry_user_data_set(f, &s);
    CHECK(f, ferry_peer_watch(f, note_gone, NULL) == 0);
    CHECK(f, ferry_object_handler_register(f, "count", count, &s.count) == 0);
    CHECK(f, ferry_object_handler_register(f, "contribute", contribute, &s.contribute) == 0);
    CHECK(f, ferry_handler_register(f, "result", result, &s.result) == 0);
    if (strcmp(how, "home") == 0) {
        lose_home(f);
        return 0;
    }
    if (strcmp(how, "hold") == 0)
        return hold(f);
    if (!change_members(f, how))
        return ferry_leave(f);
    for (int place = 0; place < ferry_member_count(f); place++)
        s.members[place] = ferry_member_rank(f, place);
    for (int map = 0; map < MAPS; map++)
        use_map(f, (ferry_map)(map % 5), map == 5 ? member_of : NULL);
    use_other_type(f);
    refuse_holes(f);
    miss_one(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
