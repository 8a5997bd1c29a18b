/* Goal: the scheduler sees the loads that the load callback gives now: also after a task of the
 * object has changed them. The callback is not called more often than that needs. Method: each task
 * of an object makes the others of that object heavier. A scheduler compares the load of each
 * object that it is given with what the test computes. While few tasks wait the loads are equal.
 * With many tasks the load may be as old as a sixteenth of them.
 *
 * Run as FERRY_SCHEDULER=comparing FERRY_RANKS=N loads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { FEW = 16, MANY = 1000, PER_TASK = 16 };

typedef struct thing {
    double weight;
} thing;

/* One rank's; the scheduler has no other way to the program. */
typedef struct account {
    ferry_handler task;
    ferry_object object;
    double weight;       /* of each task that waits */
    int left;            /* tasks that wait */
    int late, late_most; /* looks at the object in a row that saw an older load, at most */
    long calls, looks, wrong;
    ferry_schedulable *waiting;
} account;

static account accounts[8];

static int create(ferry_scheduling *s, void **state)
{
    *state = &accounts[ferry_scheduling_rank(s)];
    return 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    (void)state;
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    account *a = state;
    ferry_schedulable *item = a->waiting;
    (void)s;
    a->waiting = NULL;
    if (item != NULL)
        a->left--;
    return item;
}

static void look(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    account *a = state;
    (void)s;
    a->waiting = item->pending != 0 ? item : NULL;
    a->looks++;
    if (fabs(item->load - a->left * a->weight) < 1e-6 * item->load + 1e-9)
        a->late = 0;
    else if (++a->late > a->late_most)
        a->late_most = a->late;
}

static void leave(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    account *a = state;
    (void)s;
    if (a->waiting == item)
        a->waiting = NULL;
}

static bool empty(ferry_scheduling *s, void *state)
{
    const account *a = state;
    (void)s;
    return a->waiting == NULL;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)s;
    (void)state;
    (void)source;
    (void)words;
}

static double load(ferry *f, const void *data, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)message;
    a->calls++;
    return ((const thing *)data)->weight;
}

static void task(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)object;
    (void)source;
    (void)message;
    ((thing *)data)->weight += 1;
    a->weight += 1;
}

/* Runs `count` tasks; none waits when they begin. */
static void run(ferry *f, account *a, int count)
{
    const ferry_message message = {.handler = a->task};
    a->late = a->late_most = 0;
    a->calls = a->looks = 0;
    for (int i = 0; i < count; i++) {
        a->left++;
        a->wrong += ferry_object_send(f, a->object, &message, NULL) != 0;
    }
    while (a->left > 0)
        ferry_poll(f);
    int late = count <= FEW ? 0 : count / PER_TASK;
    long calls = count + (long)count * PER_TASK;
    if (a->late_most > late || a->calls > calls || a->looks < 2 * (long)count)
        fprintf(stderr, "rank %d, %d tasks: %d looks at old loads (at most %d), %ld calls (%ld)\n",
                ferry_rank(f), count, a->late_most, late, a->calls, calls);
    a->wrong += a->late_most > late || a->calls > calls || a->looks < 2 * (long)count;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_scheduler comparing = {.size = sizeof comparing,
                                              .name = "comparing",
                                              .create = create,
                                              .destroy = destroy,
                                              .next = next,
                                              .activate = look,
                                              .notify = look,
                                              .remove = leave,
                                              .empty = empty,
                                              .message = message};
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .flat_bytes = sizeof(thing), .load = load};
    account *a = &accounts[ferry_rank(f)];
    thing *t = calloc(1, sizeof *t);
    ferry_object_type type;
    (void)argc;
    (void)argv;
    ferry_user_data_set(f, a);
    a->weight = t->weight = 1;
    if (ferry_scheduler_register(f, &comparing) != 0 ||
        ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "task", task, &a->task) != 0 ||
        ferry_object_create(f, type, t, &a->object) != 0 ||
        ferry_balance_add(f, a->object, NULL) != 0) {
        fprintf(stderr, "loads: %s\n", ferry_error_message(f));
        return 1;
    }
    run(f, a, 3);
    run(f, a, FEW);
    run(f, a, MANY);
    int error = ferry_barrier(f);
    if (ferry_rank(f) == 0)
        printf("%s\n", a->wrong == 0 && error == 0 ? "right" : "wrong");
    return a->wrong == 0 && error == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
