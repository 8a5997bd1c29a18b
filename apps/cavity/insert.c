/* Events: a point's cavity is gathered from all ranks that hold parts of it, and replaced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cavity.h"

void draw(mesher *m)
{
    if (m->drawn == m->budget)
        return;
    mesh_point low = {0, 0}, high = {SIDE, SIDE};
    if (!m->seeding)
        tile_of(m, ferry_rank(m->f), &low, &high);
    low.x += low.x == 0; /* the edge of the square stays as it is */
    low.y += low.y == 0;
    const mesh_point p = {low.x + (int32_t)(next_random(&m->random) % (uint32_t)(high.x - low.x)),
                          low.y + (int32_t)(next_random(&m->random) % (uint32_t)(high.y - low.y))};
    uint64_t ranks = (uint64_t)ferry_ranks(m->f);
    walk(m, 1 + m->drawn++ * ranks + (uint64_t)ferry_rank(m->f), 0, p, 0);
}

/* Tells the rank that drew the point; it draws the next one. */
static void tell_drawer(mesher *m, const event *e, bool inserted)
{
    int rank = (int)((e->number - 1) % (uint64_t)ferry_ranks(m->f));
    const ferry_message message = {.handler = m->inserted, .word_count = 1, .words = {inserted}};
    cavity_send(m, rank, &message);
}

static event *find_event(mesher *m, uint64_t number)
{
    event *e = m->events;
    while (e != NULL && e->number != number)
        e = e->next;
    return e;
}

static void forget_event(mesher *m, event *e)
{
    event **link = &m->events;
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
}

static void free_event(event *e)
{
    free(e->asked.at);
    free(e->found.at);
    free(e);
}

/* Asks a rank which of these triangles, all its own, and of their neighbours there, are in the
 * cavity. */
static void ask(mesher *m, event *e, int rank, const triangle_id *wanted, size_t count)
{
    e->left++;
    if (rank != ferry_rank(m->f)) {
        const ferry_message message = {.handler = m->search,
                                       .word_count = 3,
                                       .words = {e->number, pack(e->p), e->attempt},
                                       .data = wanted,
                                       .size_bytes = count * sizeof *wanted};
        e->messages += 2; /* and the answer */
        cavity_send(m, rank, &message);
        return;
    }
    search *s = calloc(1, sizeof *s);
    check(m->f, s == NULL ? FERRY_ENOMEM : 0);
    s->source = rank;
    s->number = e->number;
    s->attempt = e->attempt;
    s->p = e->p;
    for (size_t i = 0; i < count; i++)
        ids_add(&s->unseen, wanted[i]);
    search_start(m, s);
}

static int by_id(const void *a, const void *b)
{
    triangle_id x = *(const triangle_id *)a, y = *(const triangle_id *)b;
    return x < y ? -1 : x > y;
}

static int by_holder(const void *a, const void *b)
{
    int x = holder_of(((const record *)a)->t.id), y = holder_of(((const record *)b)->t.id);
    return x - y;
}

/* The index of a triangle in the records that an event found, or -1. */
static int find_record(const records *found, triangle_id id)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->at[i].t.id == id)
            return (int)i;
    return -1;
}

static bool was_asked(const event *e, triangle_id id)
{
    for (size_t i = 0; i < e->asked.count; i++)
        if (e->asked.at[i] == id)
            return true;
    return find_record(&e->found, id) >= 0;
}

/* Asks for the neighbours of what was found from index `first` on that other ranks than the one
 * that found it hold: one message for each of these ranks. */
static void ask_beyond(mesher *m, event *e, size_t first)
{
    size_t asked = e->asked.count;
    for (size_t i = first; i < e->found.count; i++)
        for (int k = 0; k < 3 && e->found.at[i].kind == INSIDE; k++) {
            const triangle *t = &e->found.at[i].t;
            if (t->beyond[k] != 0 && holder_of(t->beyond[k]) != holder_of(t->id) &&
                !was_asked(e, t->beyond[k]))
                ids_add(&e->asked, t->beyond[k]);
        }
    /* A copy: an answer of this rank itself comes at once, and asks for more. */
    size_t count = e->asked.count - asked;
    ids wanted = {0};
    for (size_t i = 0; i < count; i++)
        ids_add(&wanted, e->asked.at[asked + i]);
    if (count > 0)
        qsort(wanted.at, count, sizeof *wanted.at, by_id);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && holder_of(wanted.at[end]) == holder_of(wanted.at[i]);)
            end++;
        ask(m, e, holder_of(wanted.at[i]), wanted.at + i, end - i);
    }
    free(wanted.at);
}

/* Makes the changes of an event on this rank. */
static void apply(mesher *m, uint64_t number, const record *changes, size_t count)
{
    size_t made = 0;
    for (const record *c = changes; c < changes + count; c++) {
        if (c->kind == NEW) {
            made++;
            store_add(&m->store, &c->t);
            continue;
        }
        slot *at = store_find(&m->store, c->t.id);
        if (at == NULL || (at->locked_by != number && c->kind != PATCH)) {
            m->counts.wrong++;
            continue;
        }
        at->locked_by = 0;
        for (int i = 0; i < 3 && c->kind == PATCH; i++)
            if (at->t.beyond[i] == c->t.beyond[0])
                at->t.beyond[i] = c->t.beyond[1];
        if (c->kind == DEAD)
            store_remove(&m->store, c->t.id);
    }
    m->unlocked = true;
    if (m->cost_us > 0)
        ferry_compute(m->f, (double)made * m->cost_us * 1e-6);
}

/* Sends each rank its changes. Returns whether other ranks are among them. */
static bool send_changes(mesher *m, event *e, records *changes)
{
    bool distributed = false;
    qsort(changes->at, changes->count, sizeof *changes->at, by_holder);
    for (size_t i = 0, end; i < changes->count; i = end) {
        const record *first = changes->at + i;
        int rank = holder_of(first->t.id);
        for (end = i + 1; end < changes->count && holder_of(changes->at[end].t.id) == rank;)
            end++;
        if (rank == ferry_rank(m->f)) {
            apply(m, e->number, first, end - i);
            continue;
        }
        const ferry_message message = {.handler = m->change,
                                       .word_count = 1,
                                       .words = {e->number},
                                       .data = first,
                                       .size_bytes = (end - i) * sizeof *first};
        distributed = true;
        e->messages++;
        cavity_send(m, rank, &message);
    }
    return distributed;
}

/* A triangle between the point and an edge of the rim. */
static triangle make_triangle(mesher *m, mesh_point p, mesh_point a, mesh_point b)
{
    const mesh_point middle = {(int32_t)(((int64_t)p.x + a.x + b.x) / 3),
                               (int32_t)(((int64_t)p.y + a.y + b.y) / 3)};
    triangle_id id =
        (triangle_id)rank_at(m, middle) << 48 | (triangle_id)ferry_rank(m->f) << 32 | ++m->made;
    return (triangle){.id = id, .corner = {p, a, b}};
}

/* Adds the triangles that fill the cavity, from changes->at[first] on, and patches those around. */
static void fill_cavity(mesher *m, const event *e, records *changes)
{
    const size_t first = changes->count;
    for (size_t i = 0; i < e->found.count; i++)
        for (int k = 0; k < 3 && e->found.at[i].kind == INSIDE; k++) {
            const triangle *t = &e->found.at[i].t;
            int beyond = find_record(&e->found, t->beyond[k]);
            if (beyond >= 0 && e->found.at[beyond].kind == INSIDE)
                continue;
            triangle made = make_triangle(m, e->p, t->corner[(k + 1) % 3], t->corner[(k + 2) % 3]);
            made.beyond[0] = t->beyond[k];
            records_add(changes, &made, NEW);
        }
    const size_t end = changes->count;
    for (size_t i = first; i < end; i++) /* around the point: where one ends the next begins */
        for (size_t j = first; j < end; j++)
            if (mesh_point_equal(changes->at[i].t.corner[2], changes->at[j].t.corner[1])) {
                changes->at[i].t.beyond[1] = changes->at[j].t.id;
                changes->at[j].t.beyond[2] = changes->at[i].t.id;
            }
    for (size_t i = 0; i < e->found.count; i++)
        for (int k = 0; k < 3 && e->found.at[i].kind == OUTSIDE; k++)
            for (size_t j = first; j < end; j++) {
                const triangle *t = &e->found.at[i].t, *made = &changes->at[j].t;
                if (made->beyond[0] != t->id ||
                    !mesh_point_equal(t->corner[(k + 1) % 3], made->corner[2]))
                    continue;
                const triangle patch = {.id = t->id, .beyond = {t->beyond[k], made->id}};
                records_add(changes, &patch, PATCH);
            }
}

/* All of the cavity and what is around it is locked: replaces it. */
static void commit(mesher *m, event *e)
{
    records changes = {0};
    fill_cavity(m, e, &changes);
    for (size_t i = 0; i < e->found.count; i++)
        if (e->found.at[i].kind == INSIDE)
            records_add(&changes, &e->found.at[i].t, DEAD);
    if (send_changes(m, e, &changes)) {
        m->counts.distributed++;
        m->counts.distributed_messages += (uint64_t)e->messages;
    }
    free(changes.at);
    m->counts.inserted++;
    tell_drawer(m, e, true);
    forget_event(m, e);
    free_event(e);
}

/* Unlocks what the event has found and lets it begin again. */
static void give_way(mesher *m, event *e)
{
    for (size_t i = 0; i < e->found.count; i++)
        e->found.at[i].kind = UNLOCK;
    if (e->found.count > 0)
        send_changes(m, e, &e->found);
    const slot *at = store_find(&m->store, e->conflict);
    e->older = at == NULL ? 0 : at->locked_by;
    m->counts.conflicts++;
    forget_event(m, e);
    e->next = m->again;
    m->again = e;
}

void event_answered(mesher *m, uint64_t number, const record *found, size_t count,
                    triangle_id conflict)
{
    event *e = find_event(m, number);
    if (e == NULL) { /* cannot happen: an event ends after its last answer */
        m->counts.wrong++;
        return;
    }
    size_t first = e->found.count;
    for (size_t i = 0; i < count; i++)
        records_add(&e->found, &found[i].t, (record_kind)found[i].kind);
    e->conflict = e->conflict != 0 ? e->conflict : conflict;
    if (e->conflict == 0)
        ask_beyond(m, e, first);
    if (--e->left > 0)
        return;
    if (e->conflict != 0)
        give_way(m, e);
    else
        commit(m, e);
}

void event_start(mesher *m, uint64_t number, uint64_t attempt, mesh_point p, const triangle *root)
{
    event *e = calloc(1, sizeof *e);
    check(m->f, e == NULL ? FERRY_ENOMEM : 0);
    *e = (event){.next = m->events, .number = number, .attempt = attempt, .p = p, .root = root->id};
    m->events = e;
    for (int i = 0; i < 3; i++)
        if (mesh_point_equal(root->corner[i], p)) {
            m->counts.doubled++;
            tell_drawer(m, e, false);
            forget_event(m, e);
            free_event(e);
            return;
        }
    ids_add(&e->asked, root->id);
    ask(m, e, ferry_rank(m->f), &e->root, 1);
}

/* Runs searches that waited for a lock, the oldest first. */
static void run_waiting(mesher *m)
{
    while (m->unlocked) {
        search *waiting = m->waiting;
        m->unlocked = false;
        m->waiting = NULL;
        while (waiting != NULL) {
            search *s = waiting;
            waiting = s->next;
            if (!search_run(m, s))
                search_wait(m, s);
        }
    }
}

/* Lets events that gave way begin again. If the older event still holds the triangle here that one
 * could not lock, it is too early. A triangle of another rank is tried again at once. Returns
 * whether any has begun. */
static bool begin_again(mesher *m)
{
    bool begun = false;
    event *again = m->again;
    m->again = NULL;
    while (again != NULL) {
        event *e = again;
        again = e->next;
        const slot *at = store_find(&m->store, e->conflict);
        if (at != NULL && at->locked_by != 0 && at->locked_by == e->older) {
            e->next = m->again;
            m->again = e;
            continue;
        }
        walk(m, e->number, e->attempt + 1, e->p, e->root);
        free_event(e);
        run_waiting(m);
        begun = true;
    }
    return begun;
}

/* First the searches that waited for a lock; only then do events that gave way begin again, or they
 * would take the same locks as before. One that begins may end here, and unlock what an earlier one
 * of the list was too early for: so they are looked at until none begins. */
void settle(mesher *m)
{
    run_waiting(m);
    while (m->again != NULL && begin_again(m))
        ;
}

static void on_draw(ferry *f, int source, const ferry_message *message)
{
    mesher *m = ferry_user_data(f);
    (void)source, (void)message;
    draw(m);
    settle(m);
}

static void on_inserted(ferry *f, int source, const ferry_message *message)
{
    on_draw(f, source, message);
}

static void on_walk(ferry *f, int source, const ferry_message *message)
{
    mesher *m = ferry_user_data(f);
    (void)source;
    walk(m, message->words[0], message->words[3], unpack(message->words[1]), message->words[2]);
    settle(m);
}

static void on_search(ferry *f, int source, const ferry_message *message)
{
    mesher *m = ferry_user_data(f);
    search *s = calloc(1, sizeof *s);
    check(f, s == NULL ? FERRY_ENOMEM : 0);
    s->source = source;
    s->number = message->words[0];
    s->p = unpack(message->words[1]);
    s->attempt = message->words[2];
    for (size_t i = 0; i < message->size_bytes / sizeof(triangle_id); i++)
        ids_add(&s->unseen, ((const triangle_id *)message->data)[i]);
    search_start(m, s);
    settle(m);
}

static void on_answer(ferry *f, int source, const ferry_message *message)
{
    mesher *m = ferry_user_data(f);
    (void)source;
    event_answered(m, message->words[0], message->data, message->size_bytes / sizeof(record),
                   message->words[1]);
    settle(m);
}

static void on_change(ferry *f, int source, const ferry_message *message)
{
    mesher *m = ferry_user_data(f);
    (void)source;
    apply(m, message->words[0], message->data, message->size_bytes / sizeof(record));
    settle(m);
}

void insert_register(mesher *m)
{
    ferry *f = m->f;
    check(f, ferry_handler_register(f, "draw", on_draw, &m->draw));
    check(f, ferry_handler_register(f, "walk", on_walk, &m->walk));
    check(f, ferry_handler_register(f, "search", on_search, &m->search));
    check(f, ferry_handler_register(f, "answer", on_answer, &m->answer));
    check(f, ferry_handler_register(f, "change", on_change, &m->change));
    check(f, ferry_handler_register(f, "inserted", on_inserted, &m->inserted));
    check(f, ferry_handler_register(f, "compare", on_compare, &m->compare));
}
