/* Goal: a call that names a rank that has died or left fails with FERRY_EPEER, not with
 * FERRY_EINVAL as for a number that no rank has; ferry_close succeeds after that. Method: the last
 * rank dies by itself, or as the simulator's plan says; the others go on, and name it in every call
 * that takes a rank. Argument: plan, if the simulator has the plan. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/cell.h>
#include <ferry/collection.h>
#include <ferry/collective.h>
#include <ferry/group.h>
#include <ferry/two_sided.h>
#include <ferry/window.h>

#include "../support/check.h"
#include "../support/survive.h"

typedef struct state {
    ferry_handler request;
    ferry_object_type type;
    uint64_t word;
    uint64_t at; /* the address of that of the rank that dies */
    int dead, failed;
} state;

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

static void expect(ferry *f, state *s, int error, const char *call)
{
    char name[32];
    snprintf(name, sizeof(name), "rank %d ", s->dead);
    if (error == FERRY_EPEER && strstr(ferry_error_message(f), name) != NULL)
        return;
    fprintf(stderr, "rank %d: %s: %s (%s)\n", ferry_rank(f), call, ferry_strerror(error),
            ferry_error_message(f));
    s->failed++;
}

static void try_messages(ferry *f, state *s)
{
    const ferry_message m = {.handler = s->request};
    uint64_t word = 0, *there = (uint64_t *)(uintptr_t)s->at;
    const ferry_piece piece = {there, &word, 8}, back = {&word, there, 8};
    const ferry_strided strided = {.target = there, .source = &word, .block_bytes = 8};
    const ferry_transfer transfer = {.target = there, .source = &word, .size_bytes = 8};
    const ferry_atomic add = {.verb = FERRY_FETCH_ADD, .target = there, .operand = 1};
    int dead = s->dead;
    void *out;
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    expect(f, s, ferry_request_send(f, dead, &m, NULL), "request");
    expect(f, s, ferry_request_sync(f, dead, &m), "request");
    expect(f, s, ferry_send(f, dead, 1, &word, 8, NULL), "send");
    expect(f, s, ferry_receive(f, dead, 1, &word, 8, &track), "receive");
    expect(f, s, ferry_put(f, dead, there, &word, 8, NULL), "put");
    expect(f, s, ferry_get(f, dead, &word, there, 8, NULL), "get");
    expect(f, s, ferry_put_run(f, dead, &transfer, NULL), "put");
    expect(f, s, ferry_put_vector(f, dead, &piece, 1, NULL), "put");
    expect(f, s, ferry_get_vector(f, dead, &back, 1, NULL), "get");
    expect(f, s, ferry_put_strided(f, dead, &strided, NULL), "put");
    expect(f, s, ferry_atomic_update(f, dead, &add, &word, NULL), "atomic");
    expect(f, s, ferry_remote_alloc(f, dead, 8, &out, NULL), "remote_alloc");
    expect(f, s, ferry_remote_free(f, dead, there, NULL), "remote_free");
}

static void try_collectives(ferry *f, state *s)
{
    size_t sizes[64] = {0};
    uint64_t in = 0, out[64];
    int dead = s->dead, list[2] = {ferry_rank(f), dead};
    ferry_group *group;
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_BROADCAST,
                                   .root = dead,
                                   .out = out,
                                   .count = 8,
                                   .type = FERRY_BYTE};
    expect(f, s, ferry_broadcast(f, dead, &in, sizeof(in)), "broadcast");
    expect(f, s, ferry_reduce(f, dead, FERRY_UINT64, FERRY_SUM, &in, out, 1), "reduce");
    expect(f, s, ferry_gather(f, dead, &in, sizeof(in), out), "gather");
    expect(f, s, ferry_scatter(f, dead, &in, sizeof(in), out), "scatter");
    expect(f, s, ferry_gatherv(f, dead, &in, 0, out, sizes), "gatherv");
    expect(f, s, ferry_scatterv(f, dead, &in, sizes, out, 0), "scatterv");
    int error = ferry_collective_start(f, &what, &track);
    expect(f, s, error == 0 ? ferry_op_wait(f, &op) : error, "broadcast that is started");
    expect(f, s, ferry_group_create(f, NULL, list, 2, &group), "group_create");
}

static void try_objects(ferry *f, state *s)
{
    ferry_object object;
    ferry_move_info info;
    void *data;
    check(f, ferry_object_create(f, s->type, calloc(1, 8), &object) == 0, "create");
    expect(f, s, ferry_object_move(f, object, s->dead), "object_move");
    expect(f, s, ferry_object_uninstall(f, object, s->dead, &info, &data), "object_uninstall");
}

static void try_cells(ferry *f, state *s)
{
    const ferry_cell cell = {s->dead, 3};
    ferry_parcel parcel, out;
    check(f, ferry_parcel_create(f, 8, &parcel, NULL) == 0, "parcel");
    expect(f, s, ferry_cell_enqueue(f, cell, parcel, FERRY_KEEP, FERRY_FOREVER), "cell");
    expect(f, s, ferry_cell_dequeue(f, cell, &out, FERRY_FOREVER), "cell");
    expect(f, s, ferry_cell_read(f, cell, &out, FERRY_FOREVER), "cell");
}

static void try_windows(ferry *f, state *s)
{
    ferry_window *window;
    const ferry_window_value value = {.data = &s->word, .size_bytes = 8};
    check(f, ferry_window_create(f, NULL, &window) == 0, "window");
    check(f, ferry_window_fence(window) == 0, "fence");
    expect(f, s, ferry_window_put(window, s->dead, 0, &value, NULL), "window_put");
    expect(f, s, ferry_window_post(window, &s->dead, 1), "window_post");
    expect(f, s, ferry_window_start(window, &s->dead, 1), "window_start");
    expect(f, s, ferry_window_lock(window, FERRY_WINDOW_SHARED, s->dead), "window_lock");
    check(f, ferry_window_free(window) == 0, "window_free");
}

static int run(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof(ops), .name = "word", .flat_bytes = 8};
    bool planned = argc > 1 && strcmp(argv[1], "plan") == 0;
    state s = {.dead = ferry_ranks(f) - 1};
    check(f, ferry_handler_register(f, "request", on_request, &s.request) == 0, "register");
    check(f, ferry_object_type_register(f, &ops, &s.type) == 0, "type");
    check(f, survive_deaths(f) == 0, "watch");
    s.at = (uintptr_t)&s.word;
    check(f, ferry_broadcast(f, s.dead, &s.at, sizeof(s.at)) == 0, "broadcast");
    /* The root has all parts when all ranks watch; others may not know that when it dies. */
    uint8_t part = 0, parts[64];
    int error = ferry_gather(f, s.dead, &part, sizeof(part), parts);
    check(f, error == 0 || (error == FERRY_EPEER && ferry_rank(f) != s.dead), "gather");
    while (ferry_rank(f) == s.dead) {
        if (!planned)
            raise(SIGKILL);
        ferry_wait(f, FERRY_FOREVER);
    }
    while (!ferry_peer_is_gone(f, s.dead))
        ferry_wait(f, FERRY_FOREVER);
    try_collectives(f, &s);
    check(f, ferry_quiesce(f) == 0, "quiesce"); /* from here on there is another group */
    try_messages(f, &s);
    try_collectives(f, &s);
    try_objects(f, &s);
    try_cells(f, &s);
    try_windows(f, &s);
    check(f, s.failed == 0, "calls failed otherwise");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
