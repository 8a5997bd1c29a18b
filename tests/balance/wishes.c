/* Goal: the program chooses its scheduler and is told what it may not; a scheduler sees the
 * loads, the priorities, the granularity and the dependencies of objects, also after they have
 * moved.
 * Method: a scheduler that checks each item it is given, over objects with static priorities, with
 * dependencies, and with callbacks; it sends each object to the rank that it wants most, once
 * balancing is on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { TASKS = 8, OBJECTS = 3, RANKS_MAX = 8, LOAD = 7 };

typedef struct account {
    ferry_handler handler;
    int wrong, ran;
} account;

typedef struct seeker {
    ferry_schedulable *first;
} seeker;

static _Atomic int unlike; /* priorities that were not as expected */

static ferry_object made[RANKS_MAX][OBJECTS]; /* by each rank */

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
    k->first = item->next;
    item->queued = false;
    return item;
}

/* Before any has moved it is known where they are: the second depends on the third. */
static void check_at_home(ferry_scheduling *s, const ferry_schedulable *item)
{
    int rank = ferry_scheduling_rank(s), which = 0;
    while (which < OBJECTS && !ferry_object_equal(made[rank][which], item->object))
        which++;
    unlike += which == OBJECTS;
    unlike += !(item->load == item->pending * (which == 2 ? LOAD : 1));
    for (int there = 0; there < ferry_scheduling_ranks(s); there++) {
        double static_one = there == ferry_scheduling_ranks(s) - 1 ? 5 : 0;
        double near = there == rank ? 2 * item->load : item->load;
        double expected = which == 1 ? near : static_one;
        unlike += !(ferry_scheduling_priority(s, item, there) == expected);
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
    unlike += !(ferry_scheduling_granularity(s, item) == 3);
    unlike += !(there == 5 || there == item->load || there == 2 * item->load);
    if (!ferry_scheduling_on(s))
        check_at_home(s, item);
    if (there == 5 && ferry_scheduling_rank(s) != last && ferry_scheduling_on(s)) {
        ferry_scheduling_migrate(s, item, last);
        return;
    }
    item->queued = true;
    item->next = k->first;
    k->first = item;
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    ferry_schedulable **at = &((seeker *)state)->first;
    (void)s;
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

/* Of each pending task its own: what its message says. */
static double load_of(ferry *f, const void *data, const ferry_message *m)
{
    (void)f, (void)data;
    return (double)m->words[0];
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
    unlike += load < 0 || (double)(uint64_t)(load / LOAD) * LOAD != load || dependencies != 0;
    return how_hard == 3 && rank == ferry_ranks(f) - 1 ? 5 : 0;
}

static void task(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    ((account *)ferry_user_data(f))->ran++;
}

static void check(ferry *f, account *a, int error, int expected)
{
    if (error == expected)
        return;
    a->wrong++;
    fprintf(stderr, "rank %d: %d, not %d: %s\n", ferry_rank(f), error, expected,
            ferry_error_message(f));
}

static void add_objects(ferry *f, account *a, ferry_object_type plain, ferry_object_type calling)
{
    double *priorities = calloc((size_t)ferry_ranks(f), sizeof *priorities);
    ferry_object *objects = made[ferry_rank(f)];
    for (int i = 0; i < OBJECTS; i++)
        check(f, a, ferry_object_create(f, i == 2 ? calling : plain, calloc(1, 1), &objects[i]), 0);
    ferry_balance_options options = FERRY_BALANCE_OPTIONS_DEFAULTS;
    options.granularity = NAN;
    check(f, a, ferry_balance_add_with(f, objects[0], &options), FERRY_EINVAL);
    options.granularity = 3;
    priorities[ferry_ranks(f) - 1] = 5;
    options.priorities = priorities;
    check(f, a, ferry_balance_add_with(f, objects[0], &options), 0);
    options.priorities = NULL;
    options.dependencies = &objects[2];
    options.dependency_count = 1;
    check(f, a, ferry_balance_add_with(f, objects[1], &options), 0);
    check(f, a, ferry_balance_add(f, objects[2], 0), 0);
    free(priorities);
    const ferry_message m = {.handler = a->handler, .word_count = 1, .words = {LOAD}};
    for (int half = 0; half < 2; half++) {
        check(f, a, ferry_balance_phase(f, half == 1), 0);
        for (int i = 0; i < OBJECTS * TASKS / 2; i++)
            check(f, a, ferry_object_send(f, objects[i % OBJECTS], &m, NULL), 0);
        check(f, a, ferry_quiesce(f), 0);
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_scheduler scheduler = {.size = sizeof scheduler,
                                              .name = "seeker",
                                              .create = create,
                                              .destroy = destroy,
                                              .next = next,
                                              .activate = add,
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
    check(f, &a, ferry_balance_choose(f, "seeker"), FERRY_EINVAL);
    check(f, &a, ferry_balance_choose(f, NULL), FERRY_EINVAL);
    check(f, &a, ferry_scheduler_register(f, &scheduler), 0);
    check(f, &a, ferry_balance_choose(f, "seeker"), 0);
    a.wrong += strcmp(ferry_balance_scheduler(f), "seeker") != 0;
    add_objects(f, &a, plain, calling);
    check(f, &a, ferry_balance_choose(f, "none"), FERRY_ESTATE);
    int64_t sums[2] = {a.wrong, a.ran};
    check(f, &a, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, sums, sums, 2), 0);
    if (sums[1] != OBJECTS * TASKS * ferry_ranks(f) || unlike != 0)
        fprintf(stderr, "%lld tasks ran, %d priorities were wrong\n", (long long)sums[1], unlike);
    return sums[0] == 0 && a.wrong == 0 && unlike == 0 &&
                   sums[1] == OBJECTS * TASKS * ferry_ranks(f)
               ? 0
               : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
