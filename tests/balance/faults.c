/* Goal: a scheduler that does what it must not do is named once, and every task runs all the same.
 * Method: a scheduler of the test's own keeps the rules, but for the fault named in the first
 * argument, which it has on every rank and again and again. An object that has moved as it should
 * stays, so the tasks come to an end. Calls that wait are
 * refused inside its functions.
 *
 * Run as FERRY_RANKS=N FERRY_SCHEDULER=faulty faults FAULT. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { OBJECTS = 12, TASKS = 3 };

typedef struct pile {
    ferry_schedulable *first;
} pile;

typedef struct account {
    uint64_t ran;
    const char *fault;
    ferry *f;
} account;

static _Thread_local account *own; /* of the rank whose main thread this is */

static bool has(const char *fault)
{
    return own != NULL && strcmp(own->fault, fault) == 0;
}

static int create(ferry_scheduling *s, void **out)
{
    (void)s;
    *out = calloc(1, sizeof(pile));
    if (has("create"))
        free(*out);
    return has("create") ? 5 : *out == NULL ? FERRY_ENOMEM : 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static void unlink_item(pile *p, ferry_schedulable *item)
{
    if (!item->queued)
        return;
    if (item->prev != NULL)
        item->prev->next = item->next;
    else
        p->first = item->next;
    if (item->next != NULL)
        item->next->prev = item->prev;
    item->queued = false;
}

static void push(pile *p, ferry_schedulable *item)
{
    item->prev = NULL;
    item->next = p->first;
    if (p->first != NULL)
        p->first->prev = item;
    p->first = item;
    item->queued = true;
}

static int other_rank(const ferry_scheduling *s)
{
    return (ferry_scheduling_rank(s) + 1) % ferry_scheduling_ranks(s);
}

static void call_ferry(void)
{
    int wrong = 0;
    wrong += ferry_barrier(own->f) != FERRY_ESTATE;
    wrong += ferry_poll(own->f) != FERRY_ESTATE;
    wrong += ferry_balance_enable(own->f, false) != FERRY_ESTATE;
    if (wrong != 0)
        ferry_abort(own->f, 1, "a call inside the scheduler was not refused");
}

/* Migrates the object by the fault. Returns whether the object no longer belongs to this rank's
 * scheduler. */
static bool misplace(ferry_scheduling *s, pile *p, ferry_schedulable *item)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {0};
    if (has("nowhere") || has("beyond") || has("here")) {
        ferry_scheduling_migrate(s, item,
                                 has("nowhere")  ? -1
                                 : has("beyond") ? ferry_scheduling_ranks(s) + 5
                                                 : ferry_scheduling_rank(s));
        return true;
    }
    if (has("twice") && !item->arrived && ferry_scheduling_is_on(s)) {
        ferry_scheduling_migrate(s, item, other_rank(s));
        ferry_scheduling_migrate(s, item, other_rank(s));
        return true;
    }
    if (has("queued")) {
        push(p, item);
        ferry_scheduling_migrate(s, item, other_rank(s));
        return true;
    }
    if (has("words"))
        ferry_scheduling_send(s, ferry_scheduling_rank(s), words);
    if (has("calls"))
        call_ferry();
    return false;
}

static void add(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    if (item->queued || item->pending == 0 || misplace(s, state, item))
        return;
    push(state, item);
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    pile *p = state;
    ferry_schedulable *item = p->first;
    if (item == NULL || has("linked"))
        return item;
    unlink_item(p, item);
    if (has("gone"))
        ferry_scheduling_migrate(s, item, other_rank(s));
    return item;
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s;
    unlink_item(state, item);
}

static bool empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((const pile *)state)->first == NULL;
}

static void message(ferry_scheduling *s, void *state, int source, const uint64_t *words)
{
    (void)s, (void)state, (void)source, (void)words;
}

static void task(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    ((account *)ferry_user_data(f))->ran++;
}

static void check_names(ferry *f, const ferry_scheduler *right)
{
    static const char *const names[] = {"", "a/b", "faulty", "ferry"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ferry_scheduler named = *right;
        named.name = names[i];
        CHECK(f, ferry_scheduler_register(f, &named) == FERRY_EINVAL);
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_scheduler faulty = {.size = sizeof faulty,
                                           .name = "faulty",
                                           .create = create,
                                           .destroy = destroy,
                                           .next = next,
                                           .activate = add,
                                           .notify = add,
                                           .remove = take_out,
                                           .empty = empty,
                                           .message = message};
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "x", .flat_bytes = 200};
    account a = {.fault = argc > 1 ? argv[1] : "none", .f = f};
    ferry_object_type type;
    ferry_handler handler;
    own = &a;
    ferry_user_data_set(f, &a);
    CHECK(f, ferry_object_type_register(f, &ops, &type) == 0);
    CHECK(f, ferry_object_handler_register(f, "task", task, &handler) == 0);
    CHECK(f, ferry_scheduler_register(f, &faulty) == 0);
    check_names(f, &faulty);
    int error = ferry_balance_enable(f, true);
    if (error != 0)
        fprintf(stderr, "faults: %s\n", ferry_error_message(f));
    if (error != 0)
        return error == FERRY_EINVAL ? 3 : 1;
    for (int i = 0; i < OBJECTS; i++) {
        ferry_object object;
        const ferry_message start = {.handler = handler};
        CHECK(f, ferry_object_create(f, type, calloc(1, 200), &object) == 0);
        CHECK(f, ferry_balance_add(f, object, NULL) == 0);
        for (int j = 0; j < TASKS; j++)
            CHECK(f, ferry_object_send(f, object, &start, NULL) == 0);
    }
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &a.ran, &a.ran, 1) == 0);
    if (ferry_rank(f) == 0)
        printf("%d tasks ran\n", (int)a.ran);
    own = NULL;
    return a.ran == (uint64_t)(OBJECTS * TASKS * ferry_ranks(f)) ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
