/* The graph: which task sent the message that started each task, and which created each object.
 *
 * An object's tasks of one handler are in the order of their starts. So every task can run in the
 * order of the traced run, and no replay waits forever.
 *
 * The account of an object may count more handlers than its trail has. These become tasks with the
 * mean of the time that is left. They wait from the start. */
#include <stdlib.h>
#include <string.h>

#include "cmd/scale/messages.h"

static int by_object(const void *left, const void *right)
{
    const scale_handled *a = *(scale_handled *const *)left, *b = *(scale_handled *const *)right;
    int by = sign(a->object, b->object);
    by = by != 0 ? by : sign(a->handler, b->handler);
    by = by != 0 ? by : sign(a->start_ns, b->start_ns);
    return by != 0 ? by : (a > b) - (a < b);
}

/* The account of an object: how many handlers ran, and their time together. */
typedef struct account {
    uint64_t name, handled, ns;
} account;

static int by_account(const void *left, const void *right)
{
    return sign(((const account *)left)->name, ((const account *)right)->name);
}

/* The sum, or UINT64_MAX if it is larger. */
static uint64_t add_limited(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* The accounts of all ranks, added up for each object. NULL: no memory. */
static account *accounts_of(const trace_run *run, size_t *count)
{
    size_t room = 1, kept = 0, all = 0;
    for (int i = 0; i < run->ranks; i++)
        room += run->rank[i].object_count;
    account *list = malloc(room * sizeof *list);
    for (int i = 0; i < run->ranks && list != NULL; i++)
        for (size_t k = 0; k < run->rank[i].object_count; k++) {
            const trace_object *o = &run->rank[i].objects[k];
            if (o->handled > 0 && o->object != 0) /* 0: all objects without an account */
                list[all++] = (account){o->object, o->handled, o->handler_ns};
        }
    if (list == NULL)
        return NULL;
    qsort(list, all, sizeof *list, by_account);
    for (size_t i = 0; i < all; i++) {
        if (kept > 0 && list[kept - 1].name == list[i].name) {
            list[kept - 1].handled = add_limited(list[kept - 1].handled, list[i].handled);
            list[kept - 1].ns = add_limited(list[kept - 1].ns, list[i].ns);
        } else {
            list[kept++] = list[i];
        }
    }
    *count = kept;
    return list;
}

/* Makes the tasks of one object, of `name`: those of its trail, `list` from `*at` on, then those
 * that only its account has. */
static void make_object(scale_graph *g, uint64_t name, const account *a, scale_handled **list,
                        size_t count, size_t *at)
{
    scale_object *object = &g->objects[g->object_count];
    uint32_t handler = UINT32_MAX, first = 0;
    uint64_t known_ns = 0, known = 0;
    *object = (scale_object){.name = name, .first_task = g->task_count, .after = SCALE_NONE};
    for (; *at < count && list[*at]->object == name; ++*at, known++) {
        scale_handled *h = list[*at];
        h->index = (uint32_t)g->object_count;
        if (h->handler != handler)
            first = (uint32_t)g->task_count;
        handler = h->handler;
        g->tasks[g->task_count].first = first;
        h->task = g->task_count++;
        g->tasks[h->task].ns = h->ns;
        g->tasks[h->task].load = h->load;
        g->loaded = g->loaded || h->load > 0;
        known_ns += h->ns;
    }
    first = (uint32_t)g->task_count;
    uint64_t rest = a != NULL && a->handled > known ? a->handled - known : 0;
    uint64_t rest_ns = rest > 0 && a->ns > known_ns ? a->ns - known_ns : 0;
    for (uint64_t i = 0; i < rest; i++) {
        g->roots[g->root_count++] =
            (scale_root){.object = (uint32_t)g->object_count, .sender = -1, .task = g->task_count};
        /* The first ones get a nanosecond more, so that the sum is exact. */
        g->tasks[g->task_count].load = 1; /* not known */
        g->tasks[g->task_count].first = first;
        g->tasks[g->task_count++].ns = rest_ns / rest + (i < rest_ns % rest);
    }
    object->tasks = known + rest;
    g->object_count++;
}

/* An upper bound of the number of tasks. If it is SIZE_MAX / 2, there may be more. */
static size_t tasks_at_most(const scale_work *w, const account *accounts, size_t count)
{
    size_t sum = w->handled_count;
    for (size_t i = 0; i < count; i++) {
        size_t left = SIZE_MAX / 2 - sum;
        sum += accounts[i].handled < left ? accounts[i].handled : left;
    }
    return sum;
}

/* Makes the tasks of all objects: merges trails and accounts, both sorted by name. */
static bool make_objects(scale_graph *g, scale_work *w, const account *accounts, size_t count)
{
    size_t tasks = tasks_at_most(w, accounts, count);
    if (tasks > 2 * (size_t)SCALE_TASKS_MAX) {
        g->task_count = tasks;
        return true; /* the caller refuses so many */
    }
    scale_handled **list = scale_messages_sorted(w, by_object);
    g->objects = malloc((w->handled_count + count + 1) * sizeof *g->objects);
    g->tasks = calloc(tasks + 1, sizeof *g->tasks);
    g->roots = malloc((tasks + 1) * sizeof *g->roots);
    bool good = list != NULL && g->objects != NULL && g->tasks != NULL && g->roots != NULL;
    for (size_t i = 0, k = 0; good && (i < w->handled_count || k < count);) {
        bool own = k < count && (i == w->handled_count || accounts[k].name <= list[i]->object);
        uint64_t name = own ? accounts[k].name : list[i]->object;
        make_object(g, name, own ? &accounts[k] : NULL, list, w->handled_count, &i);
        k += own;
    }
    free(list);
    return good;
}

/* A place and time at which the trace mentions an object. */
typedef struct sight {
    uint64_t object, time_ns;
    int rank;
} sight;

static int by_sight(const void *left, const void *right)
{
    const sight *a = left, *b = right;
    int by = sign(a->object, b->object);
    by = by != 0 ? by : sign(a->time_ns, b->time_ns);
    return by != 0 ? by : (a->rank > b->rank) - (a->rank < b->rank);
}

static sight *see_all(const trace_run *run, size_t *count)
{
    size_t room = 1, seen = 0;
    for (int i = 0; i < run->ranks; i++)
        room += run->rank[i].trail_count + run->rank[i].move_count;
    sight *list = malloc(room * sizeof *list);
    for (int i = 0; i < run->ranks && list != NULL; i++) {
        const trace_rank *t = &run->rank[i];
        for (size_t k = 0; k < t->trail_count; k++)
            if (t->trail[k].origin >= 0)
                list[seen++] = (sight){t->trail[k].object, t->trail[k].start_ns, i};
        for (size_t k = 0; k < t->move_count; k++)
            list[seen++] = (sight){t->moves[k].object, t->moves[k].time_ns, i};
    }
    if (list != NULL)
        qsort(list, seen, sizeof *list, by_sight);
    *count = seen;
    return list;
}

static int by_place(const void *left, const void *right)
{
    const scale_object *a = *(scale_object *const *)left, *b = *(scale_object *const *)right;
    int by = (a->home > b->home) - (a->home < b->home);
    return by != 0 ? by : sign(a->name, b->name);
}

/* Sorts the objects by their first rank. That is the rank of the first task or the first move of
 * the object, else the rank that made it. */
static bool order_objects(scale_graph *g, scale_work *w, const trace_run *run)
{
    size_t seen, k = 0;
    sight *list = see_all(run, &seen);
    scale_object **order = malloc((g->object_count + 1) * sizeof *order);
    scale_object *objects = malloc((g->object_count + 1) * sizeof *objects);
    uint32_t *place = malloc((g->object_count + 1) * sizeof *place);
    bool good = list != NULL && order != NULL && objects != NULL && place != NULL;
    for (size_t i = 0; i < g->object_count && good; i++) {
        scale_object *o = order[i] = &g->objects[i];
        while (k < seen && list[k].object < o->name)
            k++;
        uint64_t made = o->name >> SCALE_HOME_SHIFT;
        o->home = k < seen && list[k].object == o->name ? list[k].rank
                  : made < (uint64_t)run->ranks         ? (int)made
                                                        : run->ranks - 1;
    }
    if (good)
        qsort(order, g->object_count, sizeof *order, by_place);
    for (size_t i = 0; i < g->object_count && good; i++) {
        objects[i] = *order[i];
        place[order[i] - g->objects] = (uint32_t)i;
    }
    for (size_t i = 0; i < w->handled_count && good; i++)
        w->handled[i].index = place[w->handled[i].index];
    for (size_t i = 0; i < g->root_count && good; i++)
        g->roots[i].object = place[g->roots[i].object];
    if (good) {
        free(g->objects);
        g->objects = objects;
    } else {
        free(objects);
    }
    free(list);
    free(order);
    free(place);
    return good;
}

static int by_created_object(const void *left, const void *right)
{
    return sign(((const scale_created *)left)->object, ((const scale_created *)right)->object);
}

/* Gives each task the objects that it creates. An object that the trace has twice is created
 * once. */
static void make_creations(scale_graph *g, scale_work *w)
{
    for (size_t i = 0; i < g->task_count; i++)
        g->tasks[i].creates = SCALE_NONE;
    qsort(w->created, w->created_count, sizeof *w->created, by_created_object);
    for (size_t i = 0; i < g->object_count; i++) {
        scale_object *o = &g->objects[i];
        const scale_created *c = bsearch(&(scale_created){.object = o->name}, w->created,
                                         w->created_count, sizeof *c, by_created_object);
        if (c == NULL)
            continue;
        scale_task *task = &g->tasks[w->handled[c->creator].task];
        o->late = true;
        o->after = task->creates;
        task->creates = (uint32_t)i;
    }
}

static int by_order(const void *left, const void *right)
{
    return sign(((const scale_sent *)left)->order, ((const scale_sent *)right)->order);
}

/* The messages of each task, in the order in which it sent them. */
static bool make_sends(scale_graph *g, scale_work *w)
{
    uint64_t *next = calloc(g->task_count + 1, sizeof *next);
    for (size_t i = 0; i < w->sent_count && next != NULL; i++)
        if (w->sent[i].parent >= 0 && w->sent[i].target >= 0) {
            next[w->handled[w->sent[i].parent].task]++;
            g->send_count++;
        }
    g->sends = malloc((g->send_count + 1) * sizeof *g->sends);
    bool good = next != NULL && g->sends != NULL;
    uint64_t sum = 0;
    for (size_t i = 0; i < g->task_count && good; i++) {
        uint64_t own = next[i];
        next[i] = g->tasks[i].first_send = sum;
        sum += own;
    }
    if (good) {
        g->tasks[g->task_count].first_send = sum;
        qsort(w->sent, w->sent_count, sizeof *w->sent, by_order);
    }
    for (size_t i = 0; i < w->sent_count && good; i++)
        if (w->sent[i].parent >= 0 && w->sent[i].target >= 0) {
            const scale_handled *target = &w->handled[w->sent[i].target];
            g->sends[next[w->handled[w->sent[i].parent].task]++] =
                (scale_send){.object = target->index, .bytes = target->bytes, .task = target->task};
        }
    free(next);
    return good;
}

static int by_phase(const void *left, const void *right)
{
    const scale_root *a = left, *b = right;
    return (a->phase > b->phase) - (a->phase < b->phase);
}

/* First the roots without a sender, by object; then the others, by sender. */
static int by_sender(const void *left, const void *right)
{
    const scale_root *a = left, *b = right;
    int by = (a->sender > b->sender) - (a->sender < b->sender);
    by = by != 0 ? by : (a->object > b->object) - (a->object < b->object);
    return by != 0 ? by : by_phase(a, b);
}

/* Makes the roots: the messages of the program. Phases without messages get no number. */
static void make_roots(scale_graph *g, const scale_work *w)
{
    for (size_t i = 0; i < w->handled_count; i++) {
        const scale_handled *h = &w->handled[i];
        bool away = h->parent == ROOT && h->origin != g->objects[h->index].home;
        if (h->parent < 0)
            g->roots[g->root_count++] = (scale_root){.object = h->index,
                                                     .bytes = h->bytes,
                                                     .phase = h->phase,
                                                     .task = h->task,
                                                     .sender = away ? h->origin : -1};
    }
    qsort(g->roots, g->root_count, sizeof *g->roots, by_phase);
    for (size_t i = 0; i < g->root_count; i++) {
        uint32_t phase = g->roots[i].phase;
        bool another = i + 1 < g->root_count && g->roots[i + 1].phase != phase;
        g->roots[i].phase = g->phases;
        g->phases += another;
    }
    g->phases++;
    qsort(g->roots, g->root_count, sizeof *g->roots, by_sender);
    while (g->own_roots < g->root_count && g->roots[g->own_roots].sender < 0)
        g->own_roots++;
}

bool scale_graph_make(const trace_run *run, scale_graph *out)
{
    scale_work w = {.handled_count = 0};
    scale_graph g = {.phases = 0};
    size_t count = 0;
    account *accounts = accounts_of(run, &count);
    bool good =
        accounts != NULL && scale_messages_read(&w, run) && make_objects(&g, &w, accounts, count);
    if (good && g.tasks != NULL) {
        good = order_objects(&g, &w, run) && make_sends(&g, &w);
        make_creations(&g, &w);
        make_roots(&g, &w);
    }
    free(accounts);
    scale_messages_fini(&w);
    if (!good)
        scale_graph_fini(&g);
    *out = g;
    return good;
}

void scale_graph_fini(scale_graph *graph)
{
    free(graph->objects);
    free(graph->tasks);
    free(graph->sends);
    free(graph->roots);
    *graph = (scale_graph){.phases = 0};
}
