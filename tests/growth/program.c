/* Gives the library one of each struct that may grow, and takes one of each that the library fills.
 * Written in what C11 and C++17 share. The headers that it is compiled with may have a field more
 * or a field less in each struct than the library; ADDED says that they have one more. */
#include <ferry/ferry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void expect(ferry *f, int got, int wanted, const char *what)
{
    if (got == wanted)
        return;
    fprintf(stderr, "%s: %s, expected %s: %s\n", what, ferry_strerror(got), ferry_strerror(wanted),
            ferry_error_message(f));
    failures++;
}

/* A value in a field that the library does not know must not be ignored in silence. */
#ifdef ADDED
#define REFUSED(f, given, call)                                                                    \
    do {                                                                                           \
        (given).added_later = 1;                                                                   \
        expect(f, call, FERRY_EINVAL, #call);                                                      \
        (given).added_later = 0;                                                                   \
    } while (0)
#else
#define REFUSED(f, given, call) ((void)0)
#endif

static void handshake(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

static void operations(ferry *f)
{
    ferry_handler handler;
    expect(f, ferry_handler_register(f, "shake hands with", handshake, &handler), 0,
           "handler_register");
    ferry_message message;
    memset(&message, 0, sizeof message);
    message.handler = handler;
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    REFUSED(f, track, ferry_request_send(f, 0, &message, &track));
    expect(f, ferry_request_send(f, 0, &message, &track), 0, "request_send");
    expect(f, ferry_op_wait(f, &op), 0, "op_wait");

    int32_t in = 5, out = 0;
    ferry_collective sum = FERRY_COLLECTIVE_DEFAULTS;
    sum.kind = FERRY_ALLREDUCE;
    sum.in = &in;
    sum.out = &out;
    sum.count = 1;
    REFUSED(f, sum, ferry_collective_run(f, &sum));
    expect(f, ferry_collective_run(f, &sum), 0, "collective_run");
    expect(f, out, 5, "the sum");
}

static size_t packed_size(ferry *f, const void *data)
{
    (void)f, (void)data;
    return 8;
}

static void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    memcpy(buffer, data, size_bytes);
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f, (void)object;
    void *data = malloc(size_bytes);
    if (data != NULL)
        memcpy(data, buffer, size_bytes);
    return data;
}

static void destroy(ferry *f, void *data)
{
    (void)f;
    free(data);
}

/* A policy that never has anything to run. */
static int policy_create(ferry_scheduling *s, void **state)
{
    (void)s;
    *state = NULL;
    return 0;
}

static void policy_destroy(ferry_scheduling *s, void *state)
{
    (void)s, (void)state;
}

static ferry_schedulable *policy_next(ferry_scheduling *s, void *state)
{
    (void)s, (void)state;
    return NULL;
}

static void policy_item(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s, (void)state, (void)item;
}

static bool policy_empty(ferry_scheduling *s, void *state)
{
    (void)s, (void)state;
    return true;
}

static void policy_message(ferry_scheduling *s, void *state, int source, const uint64_t *words)
{
    (void)s, (void)state, (void)source, (void)words;
}

static ferry_scheduler policy(void)
{
    ferry_scheduler p = FERRY_SCHEDULER_DEFAULTS;
    p.name = "idle";
    p.create = policy_create;
    p.destroy = policy_destroy;
    p.next = policy_next;
    p.activate = p.notify = p.remove = policy_item;
    p.empty = policy_empty;
    p.message = policy_message;
    return p;
}

/* A plug-in gives this struct; no call takes it. */
static void directory(ferry *f)
{
    ferry_directory_protocol protocol = FERRY_DIRECTORY_PROTOCOL_DEFAULTS;
    expect(f, protocol.size == sizeof protocol, 1, "the size of a directory protocol");
    expect(f, protocol.name == NULL, 1, "a directory protocol without a name");
}

static void objects(ferry *f)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "thing";
    ops.packed_size = packed_size;
    ops.pack = pack;
    ops.unpack = unpack;
    ops.destroy = destroy;
    ferry_object_type type;
    REFUSED(f, ops, ferry_object_type_register(f, &ops, &type));
    expect(f, ferry_object_type_register(f, &ops, &type), 0, "object_type_register");
    ferry_object object;
    expect(f, ferry_object_create(f, type, malloc(8), &object), 0, "object_create");

    static ferry_scheduler idle; /* lent until ferry_close */
    idle = policy();
    REFUSED(f, idle, ferry_scheduler_register(f, &idle));
    expect(f, ferry_scheduler_register(f, &idle), 0, "scheduler_register");
    expect(f, ferry_balance_choose(f, "idle"), 0, "balance_choose");
    ferry_balance_options options = FERRY_BALANCE_OPTIONS_DEFAULTS;
    options.load = 2;
    REFUSED(f, options, ferry_balance_add(f, object, &options));
    expect(f, ferry_balance_add(f, object, &options), 0, "balance_add_with");
    expect(f, ferry_object_destroy(f, object), 0, "object_destroy");
}

static void windows(ferry *f)
{
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w = NULL;
    REFUSED(f, options, ferry_window_create(f, &options, &w));
    expect(f, ferry_window_create(f, &options, &w), 0, "window_create");
    expect(f, ferry_window_free(w), 0, "window_free");
}

/* Without servers it only reads its options. */
static void percolation(ferry *f)
{
    ferry_percolation_options options = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    ferry_percolation_stats stats = FERRY_PERCOLATION_STATS_DEFAULTS;
    REFUSED(f, options, ferry_percolation_start(f, &options));
    expect(f, ferry_percolation_start(f, &options), 0, "percolation_start");
    expect(f, ferry_percolation_stats_get(f, &stats), 0, "percolation_stats_get");
#ifdef ADDED
    expect(f, (int)stats.added_later, 0, "a field of percolation's that the library lacks");
#endif
    stats.size = 0;
    expect(f, ferry_percolation_stats_get(f, &stats), FERRY_EINVAL,
           "percolation_stats_get without a size");
}

static void stores(ferry *f)
{
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    ferry_store *store = NULL;
    options.budget_bytes = 4096;
    REFUSED(f, options, ferry_store_open(f, &options, &store));
    expect(f, ferry_store_open(f, &options, &store), 0, "store_open");
    expect(f, ferry_store_stats_get(store, &stats), 0, "store_stats_get");
    expect(f, (int)stats.budget_bytes, 4096, "budget_bytes");
#ifdef ADDED
    expect(f, (int)stats.added_later, 0, "a field of the store's that the library lacks");
#endif
    stats.size = 0;
    expect(f, ferry_store_stats_get(store, &stats), FERRY_EINVAL, "store_stats_get without a size");
    expect(f, ferry_store_close(store), 0, "store_close");
}

static void on_mark(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    (void)f, (void)cell, (void)count, (void)arg;
}

static void cells(ferry *f)
{
    ferry_cell_handler handler = FERRY_CELL_HANDLER_DEFAULTS;
    handler.fn = on_mark;
    REFUSED(f, handler, ferry_cell_handler_set(f, 0, &handler));
    expect(f, ferry_cell_handler_set(f, 0, &handler), 0, "cell_handler_set");
    expect(f, ferry_cell_handler_set(f, 0, NULL), 0, "cell_handler_set");
}

static size_t element_bytes(ferry *f, const void *data)
{
    (void)f, (void)data;
    return 8;
}

static void step_never(ferry *f, ferry_element *element, const ferry_inputs *inputs)
{
    (void)f, (void)element, (void)inputs;
}

static void *make_element(ferry *f, ferry_element *element, void *arg, const void *bytes,
                          size_t size_bytes)
{
    ferry_contribution contribution = FERRY_CONTRIBUTION_DEFAULTS;
    ferry_step step = FERRY_STEP_DEFAULTS;
    (void)arg, (void)bytes, (void)size_bytes;
    REFUSED(f, contribution, ferry_element_contribute(element, &contribution));
    expect(f, ferry_element_contribute(element, &contribution), 0, "element_contribute");
    step.messages = 1;
    REFUSED(f, step, ferry_step_next(element, &step));
    expect(f, ferry_step_next(element, &step), 0, "step_next");
    return malloc(8);
}

static void collections(ferry *f)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ferry_collection *c = NULL;
    ops.packed_size = element_bytes;
    options.extents[0] = 3;
    options.ops = &ops;
    options.make = make_element;
    options.step = step_never;
    REFUSED(f, options, ferry_collection_create(f, &options, &c));
    expect(f, ferry_collection_create(f, &options, &c), 0, "collection_create");
    expect(f, ferry_quiesce(f), 0, "quiesce");
    expect(f, ferry_collection_check(c), FERRY_ESTATE, "collection_check");
    expect(f, ferry_collection_destroy(c), 0, "collection_destroy");
}

static void bind_and_move(ferry *f, const ferry_plan *plan, ferry_xarray *x)
{
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover *mover = NULL;
    REFUSED(f, options, ferry_mover_bind(f, plan, x, x, &options, &mover));
    expect(f, ferry_mover_bind(f, plan, x, x, &options, &mover), 0, "mover_bind");
    expect(f, ferry_mover_start(mover, NULL), 0, "mover_start");
    expect(f, ferry_mover_wait(mover), 0, "mover_wait");
    ferry_mover_stats stats = FERRY_MOVER_STATS_DEFAULTS;
    expect(f, ferry_mover_stats_get(mover, &stats), 0, "mover_stats_get");
    expect(f, (int)stats.copies_local, 2, "copies between two neighbours");
#ifdef ADDED
    expect(f, (int)stats.added_later, 0, "a field that the library lacks");
#endif
    expect(f, ferry_mover_free(mover), 0, "mover_free");
}

static void movers(ferry *f, const char *folder)
{
    ferry_floorplan blocks;
    const int64_t extent = 8;
    expect(NULL, ferry_floorplan_cut(ferry_region_sized(1, &extent), ferry_point_all(2), &blocks),
           0, "floorplan_cut");
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.low = halo.high = ferry_point_all(1);
    ferry_plan plan;
    memset(&plan, 0, sizeof plan);
    REFUSED(NULL, halo, ferry_plan_halo(&plan, &blocks, &halo, -1));
    expect(NULL, ferry_plan_halo(&plan, &blocks, &halo, -1), 0, "plan_halo");
    ferry_xarray *x = NULL;
    expect(f, ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_all(1), &x), 0,
           "xarray_create");
    bind_and_move(f, &plan, x);

    ferry_intersection meeting = FERRY_INTERSECTION_DEFAULTS;
    REFUSED(NULL, meeting, ferry_plan_intersect(&plan, &blocks, &blocks, &meeting, -1));
    expect(NULL, ferry_plan_intersect(&plan, &blocks, &blocks, &meeting, -1), 0, "plan_intersect");
    ferry_plan_stats stats = FERRY_PLAN_STATS_DEFAULTS;
    expect(NULL, ferry_plan_account(&plan, &blocks, &blocks, &stats), 0, "plan_account");
    expect(NULL, stats.copies == plan.count, 1, "copies of a plan");
#ifdef ADDED
    expect(NULL, (int)stats.added_later, 0, "a field that the library lacks");
#endif
    free(stats.pairs);
    ferry_vtk picture = FERRY_VTK_DEFAULTS;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/picture", folder);
    REFUSED(f, picture, ferry_vtk_write(x, path, &picture));
    expect(f, ferry_vtk_write(x, path, &picture), 0, "picture_write");
    ferry_dataset dataset = FERRY_DATASET_DEFAULTS;
    (void)snprintf(path, sizeof path, "%s/none.h5", folder);
    REFUSED(f, dataset, ferry_dataset_read(path, &dataset, x));
    dataset.name = "nothing";
    expect(f, ferry_dataset_read(path, &dataset, x) != 0, 1, "dataset_read of no file");
    ferry_xarray_destroy(x);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

static void account(ferry *f)
{
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    expect(f, ferry_stats_get(f, &stats), 0, "stats_get");
    expect(f, (int)stats.requests_sent, 1, "requests_sent");
#ifdef ADDED
    expect(f, (int)stats.added_later, 0, "a field that the library lacks");
#endif
    stats.size = 0;
    expect(f, ferry_stats_get(f, &stats), FERRY_EINVAL, "stats_get without a size");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: program FOLDER\n");
        return 2;
    }
    ferry *f = NULL;
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    REFUSED(NULL, options, ferry_open(&options, &f));
    expect(NULL, ferry_open(&options, &f), 0, "open");
    if (f == NULL)
        return 1;
    operations(f);
    objects(f);
    directory(f);
    cells(f);
    collections(f);
    windows(f);
    stores(f);
    percolation(f);
    movers(f, argv[1]);
    account(f);
    expect(NULL, ferry_close(f), 0, "close");

    ferry_launch_options launch = FERRY_LAUNCH_OPTIONS_DEFAULTS;
    char program[] = "true";
    char *const arguments[] = {program, NULL};
    REFUSED(NULL, launch, ferry_launch(&launch, arguments));
    expect(NULL, ferry_launch(&launch, arguments), 0, "launch");
    return failures == 0 ? 0 : 1;
}
