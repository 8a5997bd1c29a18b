/* Goal: the program chooses its scheduler and is told which choices are errors. A scheduler sees
 * the loads, the priorities, the granularity and the dependencies of objects, also after they have
 * moved; while balancing is off it moves none. Method: a scheduler checks each item that it is
 * given, over objects with static priorities, with dependencies, and with callbacks. First it sends
 * away all that it sees; these objects come back, since balancing is off. Once balancing is on, it
 * sends each object to the rank that it prefers. Then those that others depend on have moved, and
 * at the end they are destroyed. Last, a barrier has to run the task for which the last rank waits
 * before it comes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { TASKS = 8, OBJECTS = 3, RANKS_MAX = 8, LOAD = 7, STATIC_LOAD = 4 };

/* The first has static priorities, the second depends on the third, the third has callbacks and
 * depends on the first. */
enum { STATIC, NEAR, CALLING };

/* A rank knows which is true: all are where they were made, all have moved, the third are gone. */
enum { AT_HOME, SETTLED, ALONE };

typedef struct account {
    ferry_handler handler, end, start, go;
    int wrong, ran;
    bool going;
} account;

typedef struct seeker {
    ferry_schedulable *first;
    const ferry_schedulable *running; /* that was picked last, until it is back or removed */
} seeker;

static _Atomic int unlike; /* priorities that were not as expected */

static ferry_object made[RANKS_MAX][OBJECTS]; /* by each rank */
static _Atomic int stages[RANKS_MAX];
static _Atomic uint64_t arrivals[RANKS_MAX]; /* that were told to the scheduler */

/* The last values given to the priority callback, on each rank. */
static struct {
    double granularity, load;
    uint32_t dependencies;
} told[RANKS_MAX];

static int create(ferry_scheduling *s, void **state)
{
    (void)s;
    *state = calloc(1, sizeof(seeker));
    return *state != NULL ? 0 : FERRY_ENOMEM;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    seeker *k = state;
    ferry_schedulable *item = k->first;
    (void)s;
    if (item == NULL)
        return NULL;
    unlike += k->running != NULL;
    k->running = item;
    k->first = item->next;
    item->queued = false;
    return item;
}

/* The index of an object of this rank; OBJECTS: it is none of them. */
static int which_is(int rank, const ferry_schedulable *item)
{
    int which = 0;
    while (which < OBJECTS && !ferry_object_equal(made[rank][which], item->object))
        which++;
    return which;
}

static void check_calling(ferry_scheduling *s, const ferry_schedulable *item, int there)
{
    int rank = ferry_scheduling_rank(s);
    double request = ferry_scheduling_priority(s, item, there);
    unlike += request != (there == ferry_scheduling_ranks(s) - 1 ? 5 : 0);
    unlike += told[rank].granularity != 3 || told[rank].load != item->load;
    unlike += told[rank].dependencies != (there == rank);
}

/* Before any has moved it is known where they are. */
static void check_at_home(ferry_scheduling *s, const ferry_schedulable *item)
{
    int rank = ferry_scheduling_rank(s), which = which_is(rank, item);
    unlike += which == OBJECTS;
    unlike += item->load != item->pending * (which == CALLING ? LOAD : STATIC_LOAD);
    for (int there = 0; there < ferry_scheduling_ranks(s); there++) {
        double request = ferry_scheduling_priority(s, item, there);
        if (which == CALLING)
            check_calling(s, item, there);
        else if (which == NEAR)
            unlike += request != (there == rank ? 2 * item->load : item->load);
        else
            unlike += request != (there == ferry_scheduling_ranks(s) - 1 ? 5 : 0);
    }
    /* No rank: none of its objects are there, and nobody has a work request. */
    if (which != CALLING)
        unlike += ferry_scheduling_priority(s, item, ferry_scheduling_ranks(s)) != item->load;
}

/* The object that it depends on has gone to the last rank, and is known to be there until it is
 * destroyed. */
static void check_near(ferry_scheduling *s, const ferry_schedulable *item)
{
    int rank = ferry_scheduling_rank(s), last = ferry_scheduling_ranks(s) - 1;
    for (int there = 0; there <= last; there++) {
        bool near = there == last && stages[rank] == SETTLED;
        unlike += ferry_scheduling_priority(s, item, there) != (1 + near) * item->load;
    }
}

/* The last rank has priority 5 on all but objects with dependencies, which want to be with them. */
static void add(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    seeker *k = state;
    int last = ferry_scheduling_ranks(s) - 1;
    double there = ferry_scheduling_priority(s, item, last);
    if (item->queued || item->pending == 0)
        return;
    unlike += ferry_scheduling_granularity(s, item) != 3;
    unlike += item->load != item->pending * STATIC_LOAD && item->load != item->pending * LOAD &&
              item->load != 0;
    unlike += there != 5 && there != item->load && there != 2 * item->load;
    if (!ferry_scheduling_is_on(s))
        check_at_home(s, item);
    bool sent_in_vain = !ferry_scheduling_is_on(s) && item->mark == 0;
    bool wanted = there == 5 && ferry_scheduling_rank(s) != last && ferry_scheduling_is_on(s);
    if (sent_in_vain || wanted) {
        item->mark = 1;
        ferry_scheduling_migrate(s, item, last);
        return;
    }
    item->queued = true;
    item->next = k->first;
    k->first = item;
}

static void activate(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    seeker *k = state;
    int rank = ferry_scheduling_rank(s);
    if (k->running == item)
        k->running = NULL;
    arrivals[rank] += item->arrived;
    if (stages[rank] != AT_HOME && item->pending != 0 && which_is(rank, item) == NEAR)
        check_near(s, item);
    add(s, state, item);
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    seeker *k = state;
    ferry_schedulable **at = &k->first;
    (void)s;
    if (k->running == item)
        k->running = NULL;
    while (*at != NULL && *at != item)
        at = &(*at)->next;
    if (*at == item)
        *at = item->next;
    item->queued = false;
}

static bool empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((seeker *)state)->first == NULL;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)s, (void)state, (void)source, (void)words;
}

/* Each pending task has a load of its own, which its message says. The last is not a valid load. */
static double load_of(ferry *f, const void *data, const ferry_message *m)
{
    (void)f, (void)data;
    return m->words[0] == 0 ? INFINITY : (double)m->words[0];
}

static double granularity(ferry *f, const void *data)
{
    (void)f, (void)data;
    return 3;
}

static double priority(ferry *f, const void *data, int rank, double how_hard, double load,
                       uint32_t dependencies)
{
    (void)data;
    told[ferry_rank(f)].granularity = how_hard;
    told[ferry_rank(f)].load = load;
    told[ferry_rank(f)].dependencies = dependencies;
    return rank == ferry_ranks(f) - 1 ? 5 : 0;
}

static void task(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    (void)object, (void)data, (void)source, (void)m;
    a->ran++;
    a->wrong += ferry_balance_enable(f, false) != FERRY_ESTATE;
}

static void end(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)data, (void)source, (void)m;
    ((account *)ferry_user_data(f))->wrong += ferry_object_destroy(f, object) != 0;
}

static void start(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    const ferry_message go = {.handler = a->go};
    (void)object, (void)data, (void)source, (void)m;
    a->wrong += ferry_request_send(f, ferry_ranks(f) - 1, &go, NULL) != 0;
}

static void go(ferry *f, int source, const ferry_message *m)
{
    (void)source, (void)m;
    ((account *)ferry_user_data(f))->going = true;
}

static void check(ferry *f, account *a, int error, int expected)
{
    if (error == expected)
        return;
    a->wrong++;
    fprintf(stderr, "rank %d: %d, not %d: %s\n", ferry_rank(f), error, expected,
            ferry_error_message(f));
}

static void send(ferry *f, account *a, int which, int count)
{
    const ferry_message m = {.handler = a->handler, .word_count = 1, .words = {LOAD}};
    for (int i = 0; i < count; i++)
        check(f, a, ferry_object_send(f, made[ferry_rank(f)][which], &m, NULL), 0);
}

static void add_objects(ferry *f, account *a, ferry_object_type plain, ferry_object_type calling)
{
    double *priorities = calloc((size_t)ferry_ranks(f), sizeof *priorities);
    ferry_object *objects = made[ferry_rank(f)];
    for (int i = 0; i < OBJECTS; i++)
        check(f, a,
              ferry_object_create(f, i == CALLING ? calling : plain, calloc(1, 1), &objects[i]), 0);
    ferry_balance_options options = FERRY_BALANCE_OPTIONS_DEFAULTS;
    options.granularity = NAN;
    check(f, a, ferry_balance_add(f, objects[STATIC], &options), FERRY_EINVAL);
    options.granularity = 3;
    options.load = STATIC_LOAD;
    options.priorities = priorities;
    priorities[ferry_ranks(f) - 1] = INFINITY;
    check(f, a, ferry_balance_add(f, objects[STATIC], &options), FERRY_EINVAL);
    priorities[ferry_ranks(f) - 1] = 5;
    check(f, a, ferry_balance_add(f, objects[STATIC], &options), 0);
    options.priorities = NULL;
    send(f, a, NEAR, 1); /* what waits already becomes a task */
    options.dependency_count = 2;
    check(f, a, ferry_balance_add(f, objects[NEAR], &options), FERRY_EINVAL);
    const ferry_object near[2] = {objects[CALLING]}; /* and none */
    options.dependencies = near;
    check(f, a, ferry_balance_add(f, objects[NEAR], &options), 0);
    options.dependency_count = 1;
    options.dependencies = &objects[STATIC];
    options.granularity = 8; /* its callbacks say something else */
    options.priorities = priorities;
    check(f, a, ferry_balance_add(f, objects[CALLING], &options), 0);
    free(priorities);
}

/* While one task runs another is pending, so the object is seen when it comes to rest. */
static void see_near(ferry *f, account *a, int stage)
{
    stages[ferry_rank(f)] = stage;
    send(f, a, NEAR, 2);
    check(f, a, ferry_quiesce(f), 0);
}

static void run(ferry *f, account *a)
{
    ferry_object calling = made[ferry_rank(f)][CALLING];
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    for (int half = 0; half < 2; half++) {
        check(f, a, ferry_balance_enable(f, half == 1), 0);
        for (int i = 0; i < OBJECTS; i++)
            send(f, a, i, TASKS / 2);
        check(f, a, ferry_quiesce(f), 0);
        ferry_stats_get(f, &stats);
        a->wrong += half == 0 && stats.objects_out != 0;
    }
    see_near(f, a, SETTLED);
    const ferry_message m = {.handler = a->end, .word_count = 1};
    check(f, a, ferry_object_send(f, calling, &m, NULL), 0);
    int rank = 0;
    while (ferry_object_locate(f, calling, &rank) == 0) /* until its creator hears of it */
        check(f, a, ferry_wait(f, 1000 * 1000) < 0, 0);
    see_near(f, a, ALONE);
    ferry_stats_get(f, &stats);
    a->wrong += arrivals[ferry_rank(f)] != stats.objects_in;
}

static void meet(ferry *f, account *a)
{
    const ferry_message m = {.handler = a->start};
    if (ferry_rank(f) == 0)
        check(f, a, ferry_object_send(f, made[0][NEAR], &m, NULL), 0);
    while (ferry_rank(f) == ferry_ranks(f) - 1 && !a->going)
        check(f, a, ferry_wait(f, FERRY_FOREVER) < 0, 0);
    check(f, a, ferry_barrier(f), 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_scheduler scheduler = {.size = sizeof scheduler,
                                              .name = "seeker",
                                              .create = create,
                                              .destroy = destroy,
                                              .next = next,
                                              .activate = activate,
                                              .notify = add,
                                              .remove = take_out,
                                              .empty = empty,
                                              .message = message};
    ferry_object_ops ops = {.size = sizeof ops, .name = "thing", .flat_bytes = 1};
    ferry_object_type plain, calling;
    account a = {0};
    (void)argc, (void)argv;
    ferry_user_data_set(f, &a);
    check(f, &a, ferry_object_type_register(f, &ops, &plain), 0);
    ops.load = load_of;
    ops.granularity = granularity;
    ops.priority = priority;
    check(f, &a, ferry_object_type_register(f, &ops, &calling), 0);
    check(f, &a, ferry_object_handler_register(f, "task", task, &a.handler), 0);
    check(f, &a, ferry_object_handler_register(f, "end", end, &a.end), 0);
    check(f, &a, ferry_object_handler_register(f, "start", start, &a.start), 0);
    check(f, &a, ferry_handler_register(f, "go", go, &a.go), 0);
    check(f, &a, ferry_balance_choose(f, "seeker"), FERRY_EINVAL);
    check(f, &a, ferry_balance_choose(f, NULL), FERRY_EINVAL);
    check(f, &a, ferry_scheduler_register(f, &scheduler), 0);
    check(f, &a, ferry_balance_choose(f, "seeker"), 0);
    a.wrong += strcmp(ferry_balance_scheduler(f), "seeker") != 0;
    add_objects(f, &a, plain, calling);
    run(f, &a);
    meet(f, &a);
    check(f, &a, ferry_balance_choose(f, "none"), FERRY_ESTATE);
    int64_t sums[2] = {a.wrong, a.ran};
    check(f, &a, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, sums, sums, 2), 0);
    if (sums[1] != (OBJECTS * TASKS + 5) * ferry_ranks(f) || unlike != 0)
        fprintf(stderr, "%lld tasks ran, %d priorities were wrong\n", (long long)sums[1], unlike);
    return sums[0] == 0 && a.wrong == 0 && unlike == 0 &&
                   sums[1] == (OBJECTS * TASKS + 5) * ferry_ranks(f)
               ? 0
               : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
