#include "outcome.h"

#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "cell/state.h"
#include "failing.h"

enum { TAG = 5, CELL = 3 };

/* The message of a handler needs room. Without room it needs memory, which the end of its own
 * operation must not lack. */
static void reply(ferry *f)
{
    scene *s = ferry_user_data(f);
    const ferry_message message = {.handler = s->quiet};
    if (s->in_handler != NULL)
        s->in_handler();
    for (int i = 0; i < s->replies; i++) {
        if (i == s->replies / 2)
            failing_all(true);
        if (ferry_request_send(f, 1 - ferry_rank(f), &message, NULL) != 0)
            return;
    }
}

static void quiet(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

static void note(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    reply(f);
}

static void memory_note(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    (void)peer, (void)address, (void)size_bytes, (void)argument;
    reply(f);
}

static void object_note(ferry *f, ferry_object object, void *data, int source,
                        const ferry_message *message)
{
    (void)object, (void)data, (void)source, (void)message;
    reply(f);
}

static void survive(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)arg, (void)event;
}

static void create(ferry *f, ferry_object_type type, ferry_object *out)
{
    void *data = NULL;
    CHECK(posix_memalign(&data, sizeof(void *), SHORT_BYTES) == 0);
    memset(data, 0, SHORT_BYTES);
    CHECK(ferry_object_create(f, type, data, out) == 0);
}

void scene_open(scene *s, uint32_t ring_slots)
{
    static const ferry_object_ops ops = {.size = sizeof(ops), .flat_bytes = SHORT_BYTES};
    memset(s, 0, sizeof(*s));
    job_open(&s->job, RANKS, ring_slots, 0);
    for (int i = 0; i < RANKS; i++) {
        ferry *f = s->job.f[i];
        ferry_user_data_set(f, s);
        CHECK(ferry_peer_watch(f, survive, NULL) == 0);
        CHECK(ferry_handler_register(f, "note", note, &s->note) == 0);
        CHECK(ferry_handler_register(f, "quiet", quiet, &s->quiet) == 0);
        CHECK(ferry_memory_handler_register(f, "memory", memory_note, &s->memory_note) == 0);
        CHECK(ferry_object_type_register(f, &ops, &s->type) == 0);
        CHECK(ferry_object_handler_register(f, "object", object_note, &s->object_note) == 0);
    }
    ferry *f = s->job.f[1];
    CHECK(ferry_memory_register(f, s->theirs, sizeof(s->theirs)) == 0);
    create(f, s->type, &s->object);
    create(f, s->type, &s->destroyed);
    CHECK(ferry_object_destroy(f, s->destroyed) == 0);
    job_settle(&s->job);
}

static ferry_message message_of(scene *s, bool wrong)
{
    if (wrong)
        CHECK(ferry_handler_register(s->job.f[0], "only here", note, &s->only_here) == 0);
    return (ferry_message){
        .handler = wrong ? s->only_here : s->note, .data = s->out, .size_bytes = SHORT_BYTES};
}

static int request(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = message_of(s, wrong);
    return ferry_request_send(s->job.f[0], 1, &m, track);
}

static int broadcast(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = message_of(s, wrong);
    return ferry_request_broadcast(s->job.f[0], &m, track);
}

/* The receipts of vectors and strides name the address of the first piece. */
static uint64_t *among(scene *s, bool wrong)
{
    return wrong ? s->wild : s->theirs;
}

static uint64_t *there(scene *s, bool wrong)
{
    s->far = among(s, wrong);
    return among(s, wrong);
}

static int put(scene *s, const ferry_track *track, bool wrong)
{
    return ferry_put(s->job.f[0], 1, there(s, wrong), s->mine, SHORT_BYTES, track);
}

static int get(scene *s, const ferry_track *track, bool wrong)
{
    return ferry_get(s->job.f[0], 1, s->mine, there(s, wrong), SHORT_BYTES, track);
}

static int put_vector(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_piece pieces[] = {{s->theirs, s->mine, 8}, {among(s, wrong) + 4, s->mine + 4, 16}};
    s->far = s->theirs;
    return ferry_put_vector(s->job.f[0], 1, pieces, 2, track);
}

static int get_vector(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_piece pieces[] = {{s->mine, s->theirs, 8}, {s->mine + 4, among(s, wrong) + 4, 16}};
    s->far = s->theirs;
    return ferry_get_vector(s->job.f[0], 1, pieces, 2, track);
}

static const ferry_stride stride = {.count = 4, .target_bytes = 16, .source_bytes = 16};

static int put_strided(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_strided what = {there(s, wrong), s->mine, 8, 1, &stride};
    return ferry_put_strided(s->job.f[0], 1, &what, track);
}

static int get_strided(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_strided what = {s->mine, there(s, wrong), 8, 1, &stride};
    return ferry_get_strided(s->job.f[0], 1, &what, track);
}

static int put_run(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_memory_call call = {.handler = s->memory_note};
    const ferry_transfer what = {there(s, wrong), s->mine, SHORT_BYTES, &call, &call, 0};
    return ferry_put_run(s->job.f[0], 1, &what, track);
}

static int get_run(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_memory_call call = {.handler = s->memory_note};
    const ferry_transfer what = {s->mine, there(s, wrong), SHORT_BYTES, &call, &call, 0};
    return ferry_get_run(s->job.f[0], 1, &what, track);
}

static int atomic(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_atomic what = {.verb = FERRY_FETCH_ADD, .target = there(s, wrong), .operand = 1};
    return ferry_atomic_update(s->job.f[0], 1, &what, &s->old, track);
}

static int remote_alloc(scene *s, const ferry_track *track, bool wrong)
{
    size_t size_bytes = wrong ? (size_t)1 << 40 : 64;
    return ferry_remote_alloc(s->job.f[0], 1, size_bytes, &s->remote, track);
}

static void block_make(scene *s)
{
    CHECK(ferry_alloc(s->job.f[1], 64, &s->block) == 0);
}

static int remote_free(scene *s, const ferry_track *track, bool wrong)
{
    s->far = wrong ? s->wild : s->block;
    return ferry_remote_free(s->job.f[0], 1, (void *)(uintptr_t)s->far, track);
}

static int object_send(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = {.handler = s->object_note, .data = s->out, .size_bytes = SHORT_BYTES};
    return ferry_object_send(s->job.f[0], wrong ? s->destroyed : s->object, &m, track);
}

/* To an object that leaves for rank 1 with its message, or right before it. */
static void create_traveller(scene *s)
{
    create(s->job.f[0], s->type, &s->traveller);
}

static ferry_message queued(scene *s, bool wrong)
{
    if (wrong)
        CHECK(ferry_object_handler_register(s->job.f[0], "only here", object_note, &s->only_here) ==
              0);
    return (ferry_message){.handler = wrong ? s->only_here : s->object_note,
                           .data = s->out,
                           .size_bytes = SHORT_BYTES};
}

static int object_take_along(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = queued(s, wrong);
    int error = ferry_object_send(s->job.f[0], s->traveller, &m, track);
    if (error == 0 && ferry_object_move(s->job.f[0], s->traveller, 1) != 0)
        s->stayed = true;
    return error;
}

static int object_send_after(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = queued(s, wrong);
    if (ferry_object_move(s->job.f[0], s->traveller, 1) != 0)
        s->stayed = true;
    return ferry_object_send(s->job.f[0], s->traveller, &m, track);
}

static const ferry_track nobody = {.size = sizeof(nobody)};

/* The other side's part, which is not what is looked at. */
static int meet(scene *s, size_t size_bytes, const ferry_track *track, bool wrong)
{
    int error =
        s->dead ? 0 : ferry_receive(s->job.f[1], 0, TAG, s->in, size_bytes - wrong, &nobody);
    return error != 0 ? error : ferry_send(s->job.f[0], 1, TAG, s->out, size_bytes, track);
}

static int send_short(scene *s, const ferry_track *track, bool wrong)
{
    return meet(s, SHORT_BYTES, track, wrong);
}

static int send_long(scene *s, const ferry_track *track, bool wrong)
{
    return meet(s, LONG_BYTES, track, wrong);
}

static int receive(scene *s, size_t size_bytes, const ferry_track *track, bool wrong)
{
    int error = s->dead ? 0 : ferry_send(s->job.f[1], 0, TAG, s->out, size_bytes, &nobody);
    return error != 0 ? error
                      : ferry_receive(s->job.f[0], 1, TAG, s->in, size_bytes - wrong, track);
}

static int receive_short(scene *s, const ferry_track *track, bool wrong)
{
    return receive(s, SHORT_BYTES, track, wrong);
}

static int receive_long(scene *s, const ferry_track *track, bool wrong)
{
    return receive(s, LONG_BYTES, track, wrong);
}

/* Cells of rank 1: a parcel to take comes later, or room for one. */
static const ferry_cell cell = {.rank = 1, .number = CELL};

static ferry_parcel parcel_of(ferry *f)
{
    ferry_parcel parcel;
    CHECK(ferry_parcel_create(f, SHORT_BYTES, &parcel, NULL) == 0);
    return parcel;
}

static void add_parcel(scene *s)
{
    CHECK(ferry_cell_enqueue(s->job.f[1], cell, parcel_of(s->job.f[1]), FERRY_GIVE, 0) == 0);
}

static void take_parcel(scene *s)
{
    ferry_parcel parcel;
    CHECK(ferry_cell_dequeue(s->job.f[1], cell, &parcel, 0) == 0);
    CHECK(ferry_parcel_release(s->job.f[1], parcel) == 0);
}

static void fill_cell(scene *s)
{
    CHECK(ferry_cell_limit_set(s->job.f[1], CELL, 1) == 0);
    add_parcel(s);
    s->parcel = parcel_of(s->job.f[0]);
}

/* As if the ranks stood on two nodes: cells go by frames. */
static void part_nodes(scene *s)
{
    for (int i = 0; i < RANKS; i++)
        fy_cells_of(s->job.f[i])->boards[1 - i] = NULL;
}

static void fill_far_cell(scene *s)
{
    part_nodes(s);
    fill_cell(s);
}

static int cell_enq(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_parcel none = {0};
    return ferry_cell_enqueue_start(s->job.f[0], cell, wrong ? none : s->parcel, FERRY_KEEP, track);
}

static int cell_deq(scene *s, const ferry_track *track, bool wrong)
{
    return ferry_cell_dequeue_start(s->job.f[0], cell, wrong ? NULL : &s->parcel, track);
}

static int cell_read(scene *s, const ferry_track *track, bool wrong)
{
    return ferry_cell_read_start(s->job.f[0], cell, wrong ? NULL : &s->parcel, track);
}

/* Collectives. */

static ferry_collective sum_of(const scene *s, int rank)
{
    return (ferry_collective){.size = sizeof(ferry_collective),
                              .kind = FERRY_ALLREDUCE,
                              .reduction = FERRY_SUM,
                              .type = FERRY_UINT64,
                              .in = rank == 0 ? s->mine : s->theirs,
                              .out = (void *)(uintptr_t)(rank == 0 ? s->mine : s->theirs),
                              .count = WORDS};
}

static const ferry_collective barrier_call = {.size = sizeof(barrier_call), .kind = FERRY_BARRIER};

static void meet_allreduce(scene *s)
{
    const ferry_collective sum = sum_of(s, 1);
    CHECK(ferry_collective_start(s->job.f[1], &sum, &nobody) == 0);
}

static int barrier(scene *s, const ferry_track *track, bool wrong)
{
    if (wrong)
        meet_allreduce(s);
    return ferry_collective_start(s->job.f[0], &barrier_call, track);
}

static void meet_barrier(scene *s)
{
    CHECK(ferry_collective_start(s->job.f[1], &barrier_call, &nobody) == 0);
}

static int allreduce(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_collective sum = sum_of(s, 0);
    if (wrong)
        meet_barrier(s);
    return ferry_collective_start(s->job.f[0], &sum, track);
}

/* Movers: each rank's line of elements has copies of the other's. Binding waits for both ranks. */
typedef struct binding {
    scene *s;
    int rank;
    bool messages;
    pthread_t thread;
} binding;

static void *bind_one(void *arg)
{
    const binding *b = arg;
    ferry *f = b->s->job.f[b->rank];
    ferry_grid *line = &b->s->lines[b->rank];
    ferry_ghost items[ELEMENTS / 2];
    for (int i = 0; i < ELEMENTS / 2; i++)
        items[i] = (ferry_ghost){.local = ELEMENTS / 2 + i, .remote = i, .owner = 1 - b->rank};
    const ferry_ghosts ghosts = {.items = items, .count = ELEMENTS / 2};
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    options.messages = b->messages;
    const int64_t extent = ELEMENTS;
    CHECK(ferry_grid_alloc(f, ferry_region_sized(1, &extent), sizeof(double), line) == 0);
    memset(line->data, 0, ELEMENTS * sizeof(double));
    CHECK(ferry_mover_bind_ghosts(f, &ghosts, line, line, &options, &b->s->movers[b->rank]) == 0);
    return NULL;
}

static void bind_movers(scene *s, bool messages)
{
    binding b[RANKS];
    for (int i = 0; i < RANKS; i++) {
        b[i] = (binding){.s = s, .rank = i, .messages = messages};
        CHECK(pthread_create(&b[i].thread, NULL, bind_one, &b[i]) == 0);
    }
    for (int i = 0; i < RANKS; i++)
        CHECK(pthread_join(b[i].thread, NULL) == 0);
    job_settle(&s->job);
}

static void bind_with_messages(scene *s)
{
    bind_movers(s, true);
}

static void bind_by_memory(scene *s)
{
    bind_movers(s, false);
}

static int mover(scene *s, const ferry_track *track, bool wrong)
{
    if (wrong)
        CHECK(ferry_mover_start(s->movers[0], NULL) == 0);
    return ferry_mover_start(s->movers[0], track);
}

static void start_other_mover(scene *s)
{
    CHECK(ferry_mover_start(s->movers[1], NULL) == 0);
}

const operation operations[] = {
    {.name = "request",
     .arrives = true,
     .sends = true,
     .start = request,
     .refusal = FERRY_ENOENT,
     .rank = 1,
     .has_local = true},
    {.name = "broadcast",
     .sends = true,
     .start = broadcast,
     .refusal = FERRY_ENOENT,
     .rank = -1,
     .to_the_living = true},
    {.name = "put",
     .sends = true,
     .start = put,
     .refusal = FERRY_ERANGE,
     .rank = 1,
     .has_local = true},
    {.name = "get", .start = get, .refusal = FERRY_ERANGE, .rank = 1, .has_local = true},
    {.name = "put_vector", .sends = true, .start = put_vector, .refusal = FERRY_ERANGE, .rank = 1},
    {.name = "get_vector", .start = get_vector, .refusal = FERRY_ERANGE, .rank = 1},
    {.name = "put_strided",
     .sends = true,
     .start = put_strided,
     .refusal = FERRY_ERANGE,
     .rank = 1},
    {.name = "get_strided", .start = get_strided, .refusal = FERRY_ERANGE, .rank = 1},
    {.name = "put_run",
     .sends = true,
     .arrives = true,
     .start = put_run,
     .refusal = FERRY_ERANGE,
     .rank = 1,
     .has_local = true},
    {.name = "get_run",
     .arrives = true,
     .start = get_run,
     .refusal = FERRY_ERANGE,
     .rank = 1,
     .has_local = true},
    {.name = "atomic", .start = atomic, .refusal = FERRY_ERANGE, .rank = 1, .has_local = true},
    {.name = "remote_alloc",
     .start = remote_alloc,
     .refusal = FERRY_ENOMEM,
     .rank = 1,
     .has_local = true},
    {.name = "remote_free",
     .prepare = block_make,
     .start = remote_free,
     .refusal = FERRY_EINVAL,
     .rank = 1,
     .waits = true,
     .at_once = true},
    {.name = "object_send",
     .arrives = true,
     .sends = true,
     .start = object_send,
     .refusal = FERRY_ENOENT,
     .rank = 1},
    {.name = "object_take_along",
     .arrives = true,
     .sends = true,
     .start = object_take_along,
     .refusal = FERRY_ENOENT,
     .rank = -1,
     .prepare = create_traveller},
    {.name = "object_send_after",
     .arrives = true,
     .sends = true,
     .start = object_send_after,
     .refusal = FERRY_ENOENT,
     .rank = -1,
     .prepare = create_traveller},
    {.name = "send_short",
     .sends = true,
     .start = send_short,
     .refusal = FERRY_ETOOLONG,
     .rank = 1,
     .has_local = true},
    {.name = "send_long",
     .sends = true,
     .start = send_long,
     .refusal = FERRY_ETOOLONG,
     .rank = 1,
     .has_local = true},
    {.name = "receive_short",
     .start = receive_short,
     .refusal = FERRY_ETOOLONG,
     .rank = 1,
     .waits = true,
     .has_local = true},
    {.name = "receive_long",
     .start = receive_long,
     .refusal = FERRY_ETOOLONG,
     .rank = 1,
     .has_local = true},
    {.name = "cell_enq",
     .start = cell_enq,
     .rank = 1,
     .prepare = fill_cell,
     .take_part = take_parcel},
    {.name = "cell_deq", .start = cell_deq, .rank = 1, .take_part = add_parcel},
    {.name = "cell_read", .start = cell_read, .rank = 1, .take_part = add_parcel},
    {.name = "far_cell_enq",
     .start = cell_enq,
     .rank = 1,
     .prepare = fill_far_cell,
     .take_part = take_parcel},
    {.name = "far_cell_deq",
     .start = cell_deq,
     .rank = 1,
     .prepare = part_nodes,
     .take_part = add_parcel},
    {.name = "far_cell_read",
     .start = cell_read,
     .rank = 1,
     .prepare = part_nodes,
     .take_part = add_parcel},
    {.name = "barrier",
     .start = barrier,
     .refusal = FERRY_EINVAL,
     .rank = 0,
     .take_part = meet_barrier},
    {.name = "allreduce",
     .start = allreduce,
     .refusal = FERRY_EINVAL,
     .rank = 0,
     .take_part = meet_allreduce},
    {.name = "mover_messages",
     .start = mover,
     .rank = 0,
     .prepare = bind_with_messages,
     .take_part = start_other_mover},
    {.name = "mover_memory",
     .start = mover,
     .rank = 0,
     .prepare = bind_by_memory,
     .take_part = start_other_mover},
};
const int operation_count = sizeof(operations) / sizeof(operations[0]);
