/* The check of a finished mesh, which uses nothing of how it was made.
 *
 * Each triangle turns left. Across each of its edges lies a triangle with the same edge that says
 * so too, whose circle does not contain the third corner; or the edge of the square. With the sum
 * of the areas, the triangles cover the square once, and a triangulation that is Delaunay at each
 * edge is Delaunay. Euler's formula then counts the points. */
#include "cavity.h"

typedef struct comparison {
    triangle_id id, from;
    mesh_point a, b, apex; /* the edge and the third corner, as `from` sees them */
} comparison;

static bool is_right(const mesher *m, const comparison *c)
{
    const slot *at = store_find(&m->store, c->id);
    for (int i = 0; i < 3 && at != NULL; i++)
        if (at->t.beyond[i] == c->from && mesh_point_equal(at->t.corner[(i + 1) % 3], c->b) &&
            mesh_point_equal(at->t.corner[(i + 2) % 3], c->a))
            return !mesh_in_circle(at->t.corner[0], at->t.corner[1], at->t.corner[2], c->apex);
    return false;
}

void on_compare(ferry *f, int source, const ferry_message *message)
{
    mesher *m = ferry_user_data(f);
    (void)source;
    m->counts.compared++;
    m->counts.wrong += !is_right(m, message->data);
}

static bool on_border(mesh_point a, mesh_point b)
{
    return (a.x == b.x && (a.x == 0 || a.x == SIDE)) || (a.y == b.y && (a.y == 0 || a.y == SIDE));
}

static void compare_edge(mesher *m, const triangle *t, int i)
{
    const comparison c = {.id = t->beyond[i],
                          .from = t->id,
                          .a = t->corner[(i + 1) % 3],
                          .b = t->corner[(i + 2) % 3],
                          .apex = t->corner[i]};
    if (c.id == 0) {
        m->counts.wrong += !on_border(c.a, c.b);
        return;
    }
    if (holder_of(c.id) == ferry_rank(m->f)) {
        m->counts.compared++;
        m->counts.wrong += !is_right(m, &c);
        return;
    }
    const ferry_message message = {.handler = m->compare, .data = &c, .size_bytes = sizeof c};
    check(m->f, ferry_request_send(m->f, holder_of(c.id), &message, NULL));
}

void verify(mesher *m)
{
    for (size_t i = 0; i < m->store.count; i++) {
        const slot *s = &m->store.slots[i];
        int64_t area2 = mesh_orient(s->t.corner[0], s->t.corner[1], s->t.corner[2]);
        m->counts.wrong += area2 <= 0 || s->locked_by != 0;
        m->counts.area2 += (uint64_t)area2;
        for (int k = 0; k < 3; k++)
            compare_edge(m, &s->t, k);
    }
    m->counts.wrong += m->events != NULL || m->again != NULL || m->waiting != NULL;
    m->counts.triangles = m->store.count;
    check(m->f, ferry_quiesce(m->f));
}
