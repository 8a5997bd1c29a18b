/* Jobs that hang, each in its way, for the tests of `ferry why`. They are ended from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

static void fail(ferry *f, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, ferry_error_message(f));
    exit(EXIT_FAILURE);
}

/* Ranks 0 and `other` each wait for a message of the other. */
static void hang_in_receive(ferry *f, int other)
{
    ferry_op op = {0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    char buffer[8];
    track.op = &op;
    int rank = ferry_rank(f);
    if ((rank == 0 || rank == other) &&
        (ferry_receive(f, other - rank, 7, buffer, sizeof buffer, &track) != 0 ||
         ferry_op_wait(f, &op) != 0))
        fail(f, "receive");
    (void)ferry_barrier(f);
}

/* The last rank waits for a message of rank 0, which is in `call` with the others. */
static void hang_between(ferry *f, int (*call)(ferry *f))
{
    ferry_op op = {0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    char buffer[8];
    track.op = &op;
    if (ferry_rank(f) == ferry_ranks(f) - 1 &&
        (ferry_receive(f, 0, 7, buffer, sizeof buffer, &track) != 0 || ferry_op_wait(f, &op) != 0))
        fail(f, "receive");
    (void)call(f);
}

static void refine(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    (void)f;
    (void)object;
    (void)data;
    (void)source;
    while (message->word_count == 1) /* forever, and without a call of Ferry's */
        (void)usleep(1000);
}

enum { OBJECTS = 2 };

static void make(ferry *f, ferry_handler *handler, bool balanced, ferry_object objects[OBJECTS])
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "cell", .flat_bytes = 1};
    ferry_object_type type;
    if (ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "refine", refine, handler) != 0)
        fail(f, "register");
    for (int i = 0; i < OBJECTS; i++)
        if (ferry_object_create(f, type, malloc(1), &objects[i]) != 0 ||
            (balanced && ferry_balance_add(f, objects[i],
                                           &(ferry_balance_options){sizeof(ferry_balance_options),
                                                                    1, 0, NULL, NULL, 0}) != 0))
            fail(f, "create");
}

/* An object leaves rank 1 for rank 0 and is never installed there; messages for it wait. */
static void hang_for_object(ferry *f)
{
    ferry_handler handler;
    ferry_move_info info;
    void *data;
    ferry_object objects[OBJECTS];
    make(f, &handler, false, objects);
    const ferry_message message = {.handler = handler};
    if (ferry_rank(f) == 1 && ferry_object_uninstall(f, objects[0], 0, &info, &data) != 0)
        fail(f, "uninstall");
    for (int i = 0; i < 3 && ferry_rank(f) == 1; i++)
        if (ferry_object_send(f, objects[0], &message, NULL) != 0)
            fail(f, "send");
    (void)ferry_quiesce(f);
}

/* A task of rank 1 never ends; another waits behind it. */
static void hang_in_task(ferry *f)
{
    ferry_handler handler;
    ferry_object objects[OBJECTS];
    make(f, &handler, true, objects);
    const ferry_message message = {.handler = handler, .word_count = 1};
    if (ferry_balance_enable(f, true) != 0)
        fail(f, "phase");
    for (int i = 0; i < OBJECTS && ferry_rank(f) == 1; i++)
        if (ferry_object_send(f, objects[i], &message, NULL) != 0)
            fail(f, "send");
    (void)ferry_quiesce(f);
}

/* Rank 0 waits for the end of more operations than are told one by one; rank 1 sleeps in the
 * program. */
static void hang_in_operations(ferry *f)
{
    enum { RECEIVES = 8, ALL };
    ferry_handler handler;
    ferry_object objects[OBJECTS];
    char data[100] = {0}, received[ALL][8];
    ferry_op ops[ALL + 2];
    ferry_track track = FERRY_TRACK_DEFAULTS;
    make(f, &handler, false, objects);
    if (ferry_broadcast(f, 1, objects, sizeof objects) != 0)
        fail(f, "broadcast");
    if (ferry_rank(f) == 1)
        (void)pause();
    const ferry_message message = {.handler = handler};
    track.op = &ops[ALL];
    int error = ferry_object_send(f, objects[0], &message, &track);
    track.op = &ops[ALL + 1];
    if (error == 0)
        error = ferry_send(f, 1, 5, data, sizeof data, &track);
    for (int i = 0; i < ALL && error == 0; i++) {
        track.op = &ops[i];
        error = ferry_receive(f, i == 0 ? FERRY_ANY_RANK : 1, i == 0 ? 9 : 7, received[i],
                              sizeof received[i], &track);
    }
    if (error != 0 || ferry_op_wait(f, &ops[0]) != 0)
        fail(f, "operations");
}

static void nudge(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
}

/* Ends: a handler whose name has a control character runs. */
static void name_oddly(ferry *f)
{
    ferry_message message = {.word_count = 0};
    if (ferry_handler_register(f, "a\001name", nudge, &message.handler) != 0 ||
        ferry_request_send(f, 0, &message, NULL) != 0 || ferry_quiesce(f) != 0)
        fail(f, "request");
}

/* Rank 1 computes for 100 s, in which the others have nothing to do but, if it is `busy`, what it
 * sends rank 0 every second. This ends by itself. */
static void linger(ferry *f, bool busy)
{
    ferry_handler handler;
    if (ferry_handler_register(f, "nudge", nudge, &handler) != 0)
        fail(f, "register");
    const ferry_message message = {.handler = handler};
    for (int i = 0; i < 100 && ferry_rank(f) == 1; i++) {
        ferry_compute(f, 1);
        if (busy && ferry_request_send(f, 0, &message, NULL) != 0)
            fail(f, "send");
    }
    if (ferry_quiesce(f) != 0)
        fail(f, "quiesce");
}

static void compute(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    (void)object;
    (void)data;
    (void)source;
    (void)message;
    ferry_compute(f, 60);
}

/* A task of rank 1 takes a minute. This ends by itself. */
static void take_long(ferry *f)
{
    ferry_handler refine_handler;
    ferry_message message = {.word_count = 0};
    ferry_object objects[OBJECTS];
    make(f, &refine_handler, true, objects);
    if (ferry_object_handler_register(f, "compute", compute, &message.handler) != 0 ||
        ferry_balance_enable(f, true) != 0 ||
        (ferry_rank(f) == 1 && ferry_object_send(f, objects[0], &message, NULL) != 0) ||
        ferry_quiesce(f) != 0)
        fail(f, "compute");
}

/* Rank 1 does not come to the barrier: it sleeps in the program. */
static void hang_in_barrier(ferry *f)
{
    if (ferry_rank(f) == 1)
        (void)pause();
    (void)ferry_barrier(f);
}

/* Rank 0 has the lock of rank 1 in a window, and waits for a message of rank 1, which wants it too.
 */
static void hang_in_lock(ferry *f)
{
    ferry_window *w;
    const int target = ferry_ranks(f) - 1;
    if (ferry_window_create(f, NULL, &w) != 0)
        fail(f, "window");
    if (ferry_rank(f) == 0 && ferry_window_lock(w, FERRY_WINDOW_EXCLUSIVE, target) != 0)
        fail(f, "lock");
    (void)ferry_barrier(f);
    if (ferry_rank(f) == 1 && ferry_window_lock(w, FERRY_WINDOW_SHARED, target) != 0)
        fail(f, "lock");
    hang_in_receive(f, 1);
}

/* Rank 0 floods rank 1 with requests, or with messages to its object. Rank 1 sleeps in the program.
 */
static void hang_in_send(ferry *f, bool to_object)
{
    ferry_handler handler, nudged;
    ferry_object objects[OBJECTS];
    make(f, &handler, false, objects);
    if (ferry_handler_register(f, "nudge", nudge, &nudged) != 0 ||
        ferry_broadcast(f, 1, objects, sizeof objects) != 0)
        fail(f, "register");
    if (ferry_rank(f) == 1)
        (void)pause();
    const ferry_message message = {.handler = to_object ? handler : nudged};
    for (int error = 0; error == 0;)
        error = to_object ? ferry_object_send(f, objects[0], &message, NULL)
                          : ferry_request_send(f, 1, &message, NULL);
    fail(f, "send");
}

/* Ranks 0 and 1 call barriers of two groups in different orders. Rank 2 is in neither group. */
static void hang_in_groups(ferry *f)
{
    ferry_group *groups[2];
    ferry_collective barrier = FERRY_COLLECTIVE_DEFAULTS;
    const int lists[2][2] = {{0, 1}, {1, 0}};
    for (int i = 0; i < 2; i++)
        if (ferry_group_create(f, NULL, lists[i], 2, &groups[i]) != 0)
            fail(f, "group");
    for (int i = 0; i < 2 && groups[0] != NULL; i++) {
        barrier.group = groups[(ferry_rank(f) + i) % 2];
        if (ferry_collective_run(f, &barrier) != 0)
            fail(f, "barrier");
    }
    (void)ferry_barrier(f);
}

/* In the following jobs no rank is in a deadlock: all wait for one, in which nothing happens. */
static void wait_for_ever(ferry *f)
{
    for (;;)
        (void)ferry_wait(f, FERRY_FOREVER);
}

/* Rank 0 is in a call over ranks 0 and 1, to which rank 1 does not come, or in one over all in
 * which rank 1 has done its part. The others are in a barrier, or wait for rank 0. */
static void await_in_call(ferry *f, bool over_group)
{
    ferry_collective call = FERRY_COLLECTIVE_DEFAULTS;
    const int list[2] = {0, 1};
    int64_t in = 1, out;
    call.kind = over_group ? FERRY_ALLREDUCE : FERRY_REDUCE;
    call.type = FERRY_INT64;
    call.reduction = FERRY_SUM;
    call.in = &in;
    call.out = &out;
    call.count = 1;
    if (over_group && ferry_group_create(f, NULL, list, 2, &call.group) != 0)
        fail(f, "group");
    if (ferry_rank(f) == (over_group ? 1 : 2))
        wait_for_ever(f);
    if ((!over_group || ferry_rank(f) == 0) && ferry_collective_run(f, &call) != 0)
        fail(f, "collective");
    if (!over_group)
        hang_in_receive(f, 1);
    (void)ferry_barrier(f);
}

/* Ranks 0 and 1 expect messages of each other, and of themselves, after a barrier to which rank 2
 * does not come. */
static void await_posted(ferry *f)
{
    char buffers[2][8];
    ferry_op ops[2];
    ferry_track track = FERRY_TRACK_DEFAULTS;
    if (ferry_rank(f) == 2)
        wait_for_ever(f);
    for (int from = 0; from < 2; from++) {
        track.op = &ops[from];
        if (ferry_receive(f, from, FERRY_ANY_TAG, buffers[from], 8, &track) != 0)
            fail(f, "receive");
    }
    (void)ferry_barrier(f);
    if (ferry_op_wait(f, &ops[0]) != 0)
        fail(f, "receive");
}

/* Rank 0 waits for what rank 2 shall add to a cell of rank 1, which is in a barrier. */
static void await_parcel(ferry *f, bool tracked)
{
    const ferry_cell cell = {1, 5};
    ferry_parcel parcel;
    ferry_op op = {0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    if (ferry_rank(f) == 2)
        wait_for_ever(f);
    if (ferry_rank(f) == 0 && (tracked ? ferry_cell_dequeue_start(f, cell, &parcel, &track) != 0 ||
                                             ferry_op_wait(f, &op) != 0
                                       : ferry_cell_dequeue(f, cell, &parcel, FERRY_FOREVER) != 0))
        fail(f, "dequeue");
    (void)ferry_barrier(f);
}

/* Rank 0 leaves, and rank 1, which sleeps in the program, has not handled its request. */
static int leave_late(ferry *f)
{
    ferry_handler handler;
    ferry_op op = {0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    if (ferry_handler_register(f, "nudge", nudge, &handler) != 0 || ferry_barrier(f) != 0)
        fail(f, "register");
    const ferry_message message = {.handler = handler};
    if (ferry_rank(f) == 0)
        return ferry_request_send(f, 1, &message, &track) != 0 ? EXIT_FAILURE : ferry_leave(f);
    if (ferry_rank(f) == 1)
        (void)pause();
    return ferry_quiesce(f);
}

/* Rank 1 leaves, and the program carries an object there that nobody will install. */
static int leave_carried(ferry *f)
{
    ferry_object_type type;
    ferry_object object;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_move_info info;
    void *data;
    ops.flat_bytes = sizeof(int);
    if (ferry_object_type_register(f, &ops, &type) != 0)
        fail(f, "register");
    if (ferry_rank(f) == 0 && (ferry_object_create(f, type, calloc(1, sizeof(int)), &object) != 0 ||
                               ferry_object_uninstall(f, object, 1, &info, &data) != 0))
        fail(f, "uninstall");
    if (ferry_barrier(f) != 0)
        fail(f, "barrier");
    return ferry_rank(f) == 1 ? ferry_leave(f) : ferry_quiesce(f);
}

/* The last rank leaves; the others wait for each other. */
static int leave_or_hang(ferry *f)
{
    if (ferry_rank(f) == ferry_ranks(f) - 1)
        return ferry_leave(f);
    hang_in_receive(f, 1);
    return 0;
}

/* Whether `how` is one of the jobs without a deadlock. */
static bool await_somehow(ferry *f, const char *how)
{
    if (strcmp(how, "group") == 0 || strcmp(how, "root") == 0)
        await_in_call(f, how[0] == 'g');
    else if (strcmp(how, "posted") == 0)
        await_posted(f);
    else if (strcmp(how, "parcel") == 0 || strcmp(how, "tracked") == 0)
        await_parcel(f, how[0] == 't');
    else
        return false;
    return true;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "receive") == 0)
        hang_in_receive(f, argc > 2 ? atoi(argv[2]) : 1);
    else if (strcmp(how, "between") == 0)
        hang_between(f, ferry_barrier);
    else if (strcmp(how, "quiesce") == 0)
        hang_between(f, ferry_quiesce);
    else if (strcmp(how, "groups") == 0)
        hang_in_groups(f);
    else if (strcmp(how, "object") == 0)
        hang_for_object(f);
    else if (strcmp(how, "task") == 0)
        hang_in_task(f);
    else if (strcmp(how, "lock") == 0)
        hang_in_lock(f);
    else if (strcmp(how, "send") == 0 || strcmp(how, "flood") == 0)
        hang_in_send(f, how[0] == 's');
    else if (strcmp(how, "operations") == 0)
        hang_in_operations(f);
    else if (strcmp(how, "compute") == 0)
        take_long(f);
    else if (strcmp(how, "linger") == 0 || strcmp(how, "busy") == 0)
        linger(f, how[0] == 'b');
    else if (strcmp(how, "leave") == 0)
        return leave_or_hang(f);
    else if (strcmp(how, "name") == 0)
        name_oddly(f);
    else if (strcmp(how, "late") == 0)
        return leave_late(f);
    else if (strcmp(how, "carried") == 0)
        return leave_carried(f);
    else if (!await_somehow(f, how))
        hang_in_barrier(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
