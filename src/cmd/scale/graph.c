/* The graph: finds in the trails of all ranks which task sent the message that started each task.
 *
 * A handler that ran and a message that was sent belong together if object, origin and number are
 * equal. If several have these equal, the first handler belongs to the first message, and so on. An
 * object's tasks are in the order of their starts. So every task can run in the order of the traced
 * run, and no replay waits for ever.
 *
 * The account of an object may count more handlers than its trail has. These become tasks with the
 * mean of the time that is left. They wait from the start. */
#include <stdlib.h>
#include <string.h>

#include "cmd/scale/scale.h"

enum { ROOT = -1, NONE = -2 };

/* A handler that ran. */
typedef struct handled {
    uint64_t object, start_ns, ns;
    double load;
    uint32_t sequence;
    int32_t origin;
    int64_t parent; /* the handler that sent the message; ROOT: the program; NONE: not known */
    uint64_t task;  /* its place among all tasks */
    uint32_t index; /* of its object */
    uint32_t phase; /* of the program, if the program sent the message */
    uint32_t bytes;
} handled;

typedef struct sent {
    uint64_t object, bytes, order;
    uint32_t sequence, phase;
    int32_t origin;
    int64_t parent, target; /* target: the handler that ran for it, or NONE */
} sent;

typedef struct work {
    handled *handled;
    sent *sent;
    size_t handled_count, sent_count;
} work;

static int sign(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By object, origin and number, then in the order sent. */
static int by_message(const void *left, const void *right)
{
    const sent *a = left, *b = right;
    int by = sign(a->object, b->object);
    by = by != 0 ? by : (a->origin > b->origin) - (a->origin < b->origin);
    by = by != 0 ? by : sign(a->sequence, b->sequence);
    return by != 0 ? by : sign(a->order, b->order);
}

/* Compares pointers to handlers. */
static int by_handled_message(const void *left, const void *right)
{
    const handled *a = *(handled *const *)left, *b = *(handled *const *)right;
    int by = sign(a->object, b->object);
    by = by != 0 ? by : (a->origin > b->origin) - (a->origin < b->origin);
    by = by != 0 ? by : sign(a->sequence, b->sequence);
    by = by != 0 ? by : sign(a->start_ns, b->start_ns);
    return by != 0 ? by : (a > b) - (a < b);
}

static int by_object(const void *left, const void *right)
{
    const handled *a = *(handled *const *)left, *b = *(handled *const *)right;
    int by = sign(a->object, b->object);
    by = by != 0 ? by : sign(a->start_ns, b->start_ns);
    return by != 0 ? by : (a > b) - (a < b);
}

/* Reads the trail of one rank, in which a handler's messages stand before the handler. At its end
 * there may be messages of a handler that did not return. They count as the program's. */
static void take_rank(work *w, const trace_rank *rank)
{
    size_t open = w->sent_count;
    uint32_t phase = 0;
    for (size_t i = 0; i < rank->trail_count; i++) {
        const trace_trail *e = &rank->trail[i];
        if (e->origin >= 0) {
            for (; open < w->sent_count; open++)
                if (w->sent[open].parent == NONE)
                    w->sent[open].parent = (int64_t)w->handled_count;
            w->handled[w->handled_count++] = (handled){.object = e->object,
                                                       .start_ns = e->start_ns,
                                                       .ns = e->value,
                                                       .load = e->load > 0 ? e->load : 0,
                                                       .sequence = e->sequence,
                                                       .origin = e->origin,
                                                       .parent = NONE};
            continue;
        }
        if (e->origin <= TRACE_BY_PROGRAM)
            phase = (uint32_t)(TRACE_BY_PROGRAM - e->origin);
        w->sent[w->sent_count] = (sent){.object = e->object,
                                        .bytes = e->value,
                                        .order = w->sent_count,
                                        .sequence = e->sequence,
                                        .phase = phase,
                                        .origin = rank->rank,
                                        .parent = e->origin == TRACE_BY_HANDLER ? NONE : ROOT,
                                        .target = NONE};
        w->sent_count++;
    }
    for (; open < w->sent_count; open++)
        if (w->sent[open].parent == NONE)
            w->sent[open].parent = ROOT;
}

static bool graph_take(work *w, const trace_run *run)
{
    size_t room = 1;
    for (int i = 0; i < run->ranks; i++)
        room += run->rank[i].trail_count;
    w->handled = malloc(room * sizeof *w->handled);
    w->sent = malloc(room * sizeof *w->sent);
    if (w->handled == NULL || w->sent == NULL)
        return false;
    for (int i = 0; i < run->ranks; i++)
        take_rank(w, &run->rank[i]);
    return true;
}

static handled **sorted(const work *w, int (*order)(const void *, const void *))
{
    handled **list = malloc((w->handled_count + 1) * sizeof *list);
    for (size_t i = 0; i < w->handled_count && list != NULL; i++)
        list[i] = &w->handled[i];
    if (list != NULL)
        qsort(list, w->handled_count, sizeof(handled *), order);
    return list;
}

/* Finds the message of each handler, and sets `parent` of the handler and `target` of the
 * message. */
static bool match(work *w)
{
    handled **list = sorted(w, by_handled_message);
    if (list == NULL)
        return false;
    qsort(w->sent, w->sent_count, sizeof *w->sent, by_message);
    for (size_t i = 0, k = 0; i < w->sent_count && k < w->handled_count;) {
        const sent key = {.object = list[k]->object,
                          .origin = list[k]->origin,
                          .sequence = list[k]->sequence,
                          .order = w->sent[i].order};
        int side = by_message(&w->sent[i], &key);
        if (side == 0) {
            list[k]->parent = w->sent[i].parent;
            list[k]->phase = w->sent[i].phase;
            list[k]->bytes =
                w->sent[i].bytes < UINT32_MAX ? (uint32_t)w->sent[i].bytes : UINT32_MAX;
            w->sent[i].target = list[k] - w->handled;
        }
        i += side <= 0;
        k += side >= 0;
    }
    free(list);
    return true;
}

/* The account of an object: how many handlers ran, and their time together. */
typedef struct account {
    uint64_t name, handled, ns;
} account;

static int by_account(const void *left, const void *right)
{
    return sign(((const account *)left)->name, ((const account *)right)->name);
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
            list[kept - 1].handled += list[i].handled;
            list[kept - 1].ns += list[i].ns;
        } else {
            list[kept++] = list[i];
        }
    }
    *count = kept;
    return list;
}

/* Makes the tasks of one object, of `name`: those of its trail, `list` from `*at` on, then those
 * that only its account has. */
static void make_object(scale_graph *g, uint64_t name, const account *a, handled **list,
                        size_t count, size_t *at)
{
    scale_object *object = &g->objects[g->object_count];
    uint64_t known_ns = 0, known = 0;
    *object = (scale_object){.name = name, .first_task = g->task_count};
    for (; *at < count && list[*at]->object == name; ++*at, known++) {
        handled *h = list[*at];
        h->index = (uint32_t)g->object_count;
        h->task = g->task_count++;
        g->tasks[h->task].ns = h->ns;
        g->tasks[h->task].load = h->load;
        g->loaded = g->loaded || h->load > 0;
        known_ns += h->ns;
    }
    uint64_t rest = a != NULL && a->handled > known ? a->handled - known : 0;
    uint64_t rest_ns = rest > 0 && a->ns > known_ns ? a->ns - known_ns : 0;
    for (uint64_t i = 0; i < rest; i++) {
        g->roots[g->root_count++] =
            (scale_root){.object = (uint32_t)g->object_count, .sender = -1, .task = g->task_count};
        /* The first ones get a nanosecond more, so that the sum is exact. */
        g->tasks[g->task_count++].ns = rest_ns / rest + (i < rest_ns % rest);
    }
    object->tasks = known + rest;
    g->object_count++;
}

/* An upper bound of the number of tasks. */
static size_t tasks_at_most(const work *w, const account *accounts, size_t count)
{
    size_t sum = w->handled_count;
    for (size_t i = 0; i < count; i++)
        sum += accounts[i].handled < SIZE_MAX / 2 - sum ? accounts[i].handled : 0;
    return sum;
}

/* Makes the tasks of all objects: merges trails and accounts, both sorted by name. */
static bool make_objects(scale_graph *g, work *w, const account *accounts, size_t count)
{
    size_t tasks = tasks_at_most(w, accounts, count);
    if (tasks > 2 * (size_t)SCALE_TASKS_MAX) {
        g->task_count = tasks;
        return true; /* the caller refuses so many */
    }
    handled **list = sorted(w, by_object);
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
static bool order_objects(scale_graph *g, work *w, const trace_run *run)
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

static int by_order(const void *left, const void *right)
{
    return sign(((const sent *)left)->order, ((const sent *)right)->order);
}

/* The messages of each task, in the order in which it sent them. */
static bool make_sends(scale_graph *g, work *w)
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
            const handled *target = &w->handled[w->sent[i].target];
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
static void make_roots(scale_graph *g, const work *w)
{
    for (size_t i = 0; i < w->handled_count; i++) {
        const handled *h = &w->handled[i];
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
    work w = {.handled_count = 0};
    scale_graph g = {.phases = 0};
    size_t count = 0;
    account *accounts = accounts_of(run, &count);
    bool good = accounts != NULL && graph_take(&w, run) && match(&w) &&
                make_objects(&g, &w, accounts, count);
    if (good && g.tasks != NULL) {
        good = order_objects(&g, &w, run) && make_sends(&g, &w);
        make_roots(&g, &w);
    }
    free(accounts);
    free(w.handled);
    free(w.sent);
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
