/* The work of a rank on the triangles it holds, for events of any rank: walks to a point, and
 * searches for the triangles of a cavity. */
#include "cavity.h"

#include <stdlib.h>

uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

void tile_of(const mesher *m, int rank, mesh_point *low, mesh_point *high)
{
    int column = rank % m->columns, row = rank / m->columns;
    low->x = (int32_t)((int64_t)SIDE * column / m->columns);
    low->y = (int32_t)((int64_t)SIDE * row / m->rows);
    high->x = (int32_t)((int64_t)SIDE * (column + 1) / m->columns);
    high->y = (int32_t)((int64_t)SIDE * (row + 1) / m->rows);
}

int rank_at(const mesher *m, mesh_point p)
{
    int column = (int)((int64_t)p.x * m->columns / SIDE),
        row = (int)((int64_t)p.y * m->rows / SIDE);
    column = column < m->columns ? column : m->columns - 1;
    row = row < m->rows ? row : m->rows - 1;
    return row * m->columns + column;
}

void cavity_send(mesher *m, int rank, const ferry_message *message)
{
    m->counts.messages++;
    m->counts.small += message->size_bytes <= SMALL_BYTES;
    check(m->f, ferry_request_send(m->f, rank, message, NULL));
}

/* The nearest to p of some triangles of this rank; NULL if there is none. */
static const slot *near_to(mesher *m, mesh_point p)
{
    const slot *best = NULL;
    for (int i = 0; i < 8 && m->store.count > 0; i++) {
        const slot *other = &m->store.slots[next_random(&m->random) % m->store.count];
        if (best == NULL ||
            mesh_length2(other->t.corner[0], p) < mesh_length2(best->t.corner[0], p))
            best = other;
    }
    return best;
}

static void walk_elsewhere(mesher *m, int rank, uint64_t number, uint64_t attempt, mesh_point p,
                           triangle_id from)
{
    const ferry_message message = {
        .handler = m->walk, .word_count = 4, .words = {number, pack(p), from, attempt}};
    cavity_send(m, rank, &message);
}

/* The triangle across an edge of `t` that has p on its other side; 0 if p lies in `t`. */
static triangle_id towards(const triangle *t, mesh_point p)
{
    for (int i = 0; i < 3; i++)
        if (mesh_orient(t->corner[(i + 1) % 3], t->corner[(i + 2) % 3], p) < 0)
            return t->beyond[i];
    return 0;
}

/* In a Delaunay triangulation, steps across an edge that has the point on its other side always
 * arrive. While another rank has not heard of a change yet the walk may go in circles. It leaves
 * this rank in each of them, so word of the change comes. */
void walk(mesher *m, uint64_t number, uint64_t attempt, mesh_point p, triangle_id from)
{
    const int here = ferry_rank(m->f);
    const slot *at = store_find(&m->store, from);
    if (at == NULL)
        at = near_to(m, p);
    if (at == NULL) {
        walk_elsewhere(m, (here + 1) % ferry_ranks(m->f), number, attempt, p, 0);
        return;
    }
    for (triangle_id next; (next = towards(&at->t, p)) != 0;) {
        if (holder_of(next) != here) {
            walk_elsewhere(m, holder_of(next), number, attempt, p, next);
            return;
        }
        at = store_find(&m->store, next);
    }
    event_start(m, number, attempt, p, &at->t);
}

static void search_answer(mesher *m, search *s, triangle_id conflict)
{
    if (s->source == ferry_rank(m->f)) {
        event_answered(m, s->number, s->found.at, s->found.count, conflict);
    } else {
        const ferry_message message = {.handler = m->answer,
                                       .word_count = 2,
                                       .words = {s->number, conflict},
                                       .data = s->found.at,
                                       .size_bytes = s->found.count * sizeof *s->found.at};
        cavity_send(m, s->source, &message);
    }
    free(s->unseen.at);
    free(s->found.at);
    free(s);
}

/* Locks a triangle for the search and decides whether it is in the cavity. */
static void visit(const mesher *m, search *s, slot *at)
{
    const mesh_point *c = at->t.corner;
    bool inside =
        mesh_in_circle(c[0], c[1], c[2], s->p) && (!m->narrow || towards(&at->t, s->p) == 0);
    at->locked_by = s->number;
    at->attempt = s->attempt;
    s->unseen.count--;
    records_add(&s->found, &at->t, inside ? INSIDE : OUTSIDE);
    for (int i = 0; i < 3 && inside; i++)
        if (at->t.beyond[i] != 0 && holder_of(at->t.beyond[i]) == ferry_rank(m->f))
            ids_add(&s->unseen, at->t.beyond[i]);
}

bool search_run(mesher *m, search *s)
{
    triangle_id conflict = 0;
    while (s->unseen.count > 0 && conflict == 0) {
        triangle_id id = s->unseen.at[s->unseen.count - 1];
        slot *at = store_find(&m->store, id);
        if (at != NULL && at->locked_by == s->number && at->attempt == s->attempt)
            s->unseen.count--; /* found before */
        else if (at != NULL && at->locked_by == 0)
            visit(m, s, at);
        else if (at != NULL && at->locked_by >= s->number)
            return false; /* the younger event gives way, or ends; the lock of an earlier attempt
                             of this one is being undone by the rank where it ran */
        else
            conflict = id; /* an older event has it, or its end is not known here yet */
    }
    search_answer(m, s, conflict);
    return true;
}

void search_wait(mesher *m, search *s)
{
    search **link = &m->waiting;
    while (*link != NULL && (*link)->number < s->number)
        link = &(*link)->next;
    s->next = *link;
    *link = s;
}

void search_start(mesher *m, search *s)
{
    if (search_run(m, s))
        return;
    m->counts.waits++;
    search_wait(m, s);
}
