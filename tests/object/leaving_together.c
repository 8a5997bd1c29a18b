/* Goal: any number of ranks leave at the same time, all of them too, with objects of types that
 * they have registered and of types that they have not. Nothing waits forever, and where a rank
 * stays nothing is lost. Method: a random set of ranks knows the types. Those create objects, which
 * move at random, and all send to them. A random set leaves without meeting the others. The ranks
 * that stay register the types late, and count what the objects have got.
 *
 * With the argument `last` rank 0 sends its objects to ranks that do not know the type, and leaves.
 * The others leave together: each passes objects on to the next before it hears that this one
 * leaves too. Else the argument is a number that makes runs differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"
#include "../support/random.h"

enum { OBJECTS = 3, MESSAGES = 4 };

typedef struct walker {
    uint64_t handled, random;
} walker;

typedef struct state {
    ferry_handler visit, report;
    ferry_object_type type;
    ferry_object *objects;
    int count;
    int64_t handled, reports;
    bool left;
} state;

static void visit(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    walker *w = data;
    (void)source, (void)m;
    w->handled++;
    if (draw(&w->random, 2) != 0)
        return;
    int error = ferry_object_move(f, object, (int)draw(&w->random, (uint64_t)ferry_ranks(f)));
    check(f, error == 0 || error == FERRY_EPEER, "move");
}

static void report(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)object, (void)source, (void)m;
    s->handled += (int64_t)((walker *)data)->handled;
    s->reports++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    check(f, !event->died, "a rank died");
    ((state *)arg)->left = ((state *)arg)->left || event->rank == 0;
}

static void register_type(ferry *f, state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof(ops), .name = "walker", .flat_bytes = sizeof(walker)};
    check(f, ferry_object_type_register(f, &ops, &s->type) == 0, "type");
}

static void create(ferry *f, state *s, bool knows, uint64_t *random)
{
    ferry_object own[OBJECTS] = {0};
    if (knows)
        register_type(f, s);
    for (int i = 0; i < OBJECTS && knows; i++) {
        walker *w = calloc(1, sizeof *w);
        check(f, w != NULL, "memory");
        w->random = draw(random, UINT64_MAX) | 1;
        check(f, ferry_object_create(f, s->type, w, &own[i]) == 0, "create");
    }
    s->count = OBJECTS * ferry_ranks(f);
    s->objects = calloc((size_t)s->count, sizeof *s->objects);
    check(f, s->objects != NULL, "memory");
    check(f, ferry_allgather(f, own, sizeof own, s->objects) == 0, "allgather");
}

static void send_all(ferry *f, state *s, uint64_t *random)
{
    const ferry_message m = {.handler = s->visit};
    for (int i = 0; i < MESSAGES * s->count; i++) {
        if (s->objects[i % s->count].word == 0)
            continue;
        int error = ferry_object_send(f, s->objects[i % s->count], &m, NULL);
        check(f, error == 0 || error == FERRY_EPEER, "send");
        if (draw(random, 8) == 0)
            (void)ferry_poll(f);
    }
}

/* The first of the ranks that stay asks all objects what they have got. */
static void check_reports(ferry *f, state *s, int known)
{
    const ferry_message m = {.handler = s->report};
    int64_t sums[2];
    for (int i = 0; i < s->count && ferry_member_place(f, ferry_rank(f)) == 0; i++)
        if (s->objects[i].word != 0)
            check(f, ferry_object_send(f, s->objects[i], &m, NULL) == 0, "send");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    const int64_t own[2] = {s->reports, s->handled};
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, own, sums, 2) == 0, "allreduce");
    check(f, sums[0] == known * OBJECTS, "objects are missing");
    check(f, sums[1] == (int64_t)known * OBJECTS * MESSAGES * ferry_ranks(f),
          "messages are missing");
}

static void run_last(ferry *f, state *s)
{
    uint64_t random = 1;
    create(f, s, ferry_rank(f) == 0, &random);
    for (int i = 0; ferry_rank(f) == 0 && i < OBJECTS; i++)
        check(f, ferry_object_move(f, s->objects[i], 1 + i % (ferry_ranks(f) - 1)) == 0, "move");
    while (ferry_rank(f) != 0 && !s->left)
        check(f, ferry_poll(f) >= 0, "poll");
    check(f, ferry_leave(f) == 0, "leave");
}

static void run_random(ferry *f, state *s, uint64_t mix)
{
    uint64_t alike = (mix + 1) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t random = alike ^ (uint64_t)(ferry_rank(f) + 1) * UINT64_C(0xbf58476d1ce4e5b9);
    int ranks = ferry_ranks(f), known = 0;
    uint64_t knows = 0, leaves = 0;
    for (int i = 0; i < 8; i++)
        (void)draw(&alike, 2);
    bool all = draw(&alike, 3) == 0;
    for (int rank = 0; rank < ranks; rank++) {
        knows |= draw(&alike, 2) << rank;
        leaves |= (all ? 1 : draw(&alike, 2)) << rank;
        known += (int)(knows >> rank & 1);
    }
    create(f, s, knows >> ferry_rank(f) & 1, &random);
    send_all(f, s, &random);
    for (uint64_t i = draw(&random, 20); i > 0; i--)
        (void)ferry_poll(f);
    if (leaves >> ferry_rank(f) & 1) {
        check(f, ferry_leave(f) == 0, "leave");
        return;
    }
    if (!(knows >> ferry_rank(f) & 1))
        register_type(f, s);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check_reports(f, s, known);
}

static int run(ferry *f, int argc, char **argv)
{
    state s = {0};
    ferry_user_data_set(f, &s);
    check(f, ferry_peer_watch(f, on_peer, &s) == 0, "peer_watch");
    check(f, ferry_object_handler_register(f, "visit", visit, &s.visit) == 0, "register");
    check(f, ferry_object_handler_register(f, "report", report, &s.report) == 0, "register");
    if (argc > 1 && strcmp(argv[1], "last") == 0)
        run_last(f, &s);
    else
        run_random(f, &s, argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    free(s.objects);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
