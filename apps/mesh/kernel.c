/* kernel.h has the idea. The new triangles use the slots of removed ones immediately: a closed
 * cavity of k triangles becomes k + 2, an open one k + 1. So the arrays stay dense, and a
 * sub-domain packs by copying them. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX (INT32_MAX / 4)

/* Grows *array to hold `need` elements, at least half as much again as before. */
static int room(void **array, int32_t *have, int64_t need, size_t size)
{
    if (need <= *have) {
        return 0;
    }
    int64_t more = (int64_t)*have + *have / 2 + 16;
    more = more < need ? need : more;
    if (need > COUNT_MAX) {
        return -1;
    }
    more = more > COUNT_MAX ? COUNT_MAX : more;
    void *bigger = realloc(*array, (size_t)more * size);
    if (bigger == NULL) {
        return -1;
    }
    *array = bigger;
    *have = (int32_t)more;
    return 0;
}

int mesh_room_points(mesh_sub *sub, int32_t more)
{
    return room((void **)&sub->point, &sub->point_room, (int64_t)sub->head.point_count + more,
                sizeof *sub->point);
}

int mesh_room_tris(mesh_sub *sub, int32_t more)
{
    return room((void **)&sub->tri, &sub->tri_room, (int64_t)sub->head.tri_count + more,
                sizeof *sub->tri);
}

int mesh_room_pieces(mesh_sub *sub, int32_t more)
{
    if (room((void **)&sub->piece, &sub->piece_room, (int64_t)sub->head.piece_count + more,
             sizeof *sub->piece) != 0) {
        return -1;
    }
    return room((void **)&sub->node, &sub->node_room, (int64_t)sub->head.node_count + 2LL * more,
                sizeof *sub->node);
}

int mesh_room_edges(mesh_sub *sub, int32_t more)
{
    return room((void **)&sub->edge, &sub->edge_room, (int64_t)sub->head.edge_count + more,
                sizeof *sub->edge);
}

mesh_sub *mesh_sub_new(void)
{
    mesh_sub *sub = calloc(1, sizeof *sub);
    if (sub == NULL) {
        return NULL;
    }
    sub->head.magic = 0x4d455348u;
    sub->head.grain = 1;
    if (mesh_room_pieces(sub, 1) != 0) {
        mesh_sub_destroy(sub);
        return NULL;
    }
    sub->piece[0] = (mesh_piece){-1, 1, 0, {-1, -1}};
    sub->node[0] = ~0;
    sub->head.piece_count = 1;
    sub->head.node_count = 1;
    return sub;
}

int32_t mesh_add_edge(mesh_sub *sub, mesh_edge edge)
{
    if (mesh_room_edges(sub, 1) != 0 || mesh_room_pieces(sub, 1) != 0) {
        return -1;
    }
    int32_t piece = sub->head.piece_count++;
    int32_t node = sub->head.node_count++;
    edge.root = node;
    sub->node[node] = ~piece;
    sub->piece[piece] = (mesh_piece){sub->head.edge_count, 1, node, {-1, -1}};
    sub->edge[sub->head.edge_count++] = edge;
    return piece;
}

static int push_rim(mesh_sub *sub, int32_t t, int32_t i)
{
    if (sub->rim_count == sub->rim_room &&
        room((void **)&sub->rim, &sub->rim_room, (int64_t)sub->rim_count + 1, sizeof *sub->rim) !=
            0) {
        return -1;
    }
    const mesh_tri *tri = &sub->tri[t];
    mesh_rim *r = &sub->rim[sub->rim_count++];
    r->a = tri->v[mesh_next3(i)];
    r->b = tri->v[mesh_prev3(i)];
    r->n = tri->n[i];
    if (r->n < 0) {
        r->slot = sub->piece[~r->n].tri[0] == t ? 0 : 1;
    } else {
        r->slot = mesh_slot_of(sub, r->n, t);
    }
    return 0;
}

static int push_dead(mesh_sub *sub, int32_t t)
{
    /* Two spare entries hold the slots mesh_fill adds. */
    if (room((void **)&sub->dead, &sub->dead_room, (int64_t)sub->dead_count + 3,
             sizeof *sub->dead) != 0) {
        return -1;
    }
    sub->dead[sub->dead_count++] = t;
    return 0;
}

static bool circle_holds(const mesh_sub *sub, int32_t t, mesh_point p)
{
    const mesh_tri *tri = &sub->tri[t];
    return mesh_in_circle(sub->point[tri->v[0]], sub->point[tri->v[1]], sub->point[tri->v[2]], p);
}

/* Puts the edges of t after `entry` on the stack, the first in counter-clockwise order on top. */
static int push_edges(mesh_sub *sub, int32_t t, int32_t entry, int32_t *depth)
{
    if (room((void **)&sub->stack, &sub->stack_room, (int64_t)*depth + 3, sizeof *sub->stack) !=
        0) {
        return -1;
    }
    int32_t first = entry < 0 ? 0 : mesh_next3(entry);
    if (entry < 0) {
        sub->stack[(*depth)++] = (mesh_corner){t, 2};
    }
    sub->stack[(*depth)++] = (mesh_corner){t, mesh_next3(first)};
    sub->stack[(*depth)++] = (mesh_corner){t, first};
    return 0;
}

int mesh_cavity(mesh_sub *sub, mesh_point p, int32_t root, int32_t open)
{
    int32_t depth = 0;
    sub->rim_count = 0;
    sub->dead_count = 0;
    if (push_dead(sub, root) != 0 || push_edges(sub, root, open, &depth) != 0) {
        return -1;
    }
    while (depth > 0) {
        mesh_corner c = sub->stack[--depth];
        int32_t n = sub->tri[c.tri].n[c.edge];
        if (n < 0 || !circle_holds(sub, n, p)) {
            if (push_rim(sub, c.tri, c.edge) != 0) {
                return -1;
            }
        } else if (push_dead(sub, n) != 0 ||
                   push_edges(sub, n, mesh_slot_of(sub, n, c.tri), &depth) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Writes triangle (v, rim edge) into slot t and makes its outer neighbour look back. */
static void write_fan_triangle(mesh_sub *sub, int32_t t, int32_t v, const mesh_rim *r,
                               int32_t before, int32_t after)
{
    sub->tri[t] = (mesh_tri){{v, r->a, r->b}, {r->n, after, before}};
    if (r->n < 0) {
        sub->piece[~r->n].tri[r->slot] = t;
    } else {
        sub->tri[r->n].n[r->slot] = t;
    }
}

static int take_slots(mesh_sub *sub, int32_t more)
{
    if (mesh_room_tris(sub, more) != 0) {
        return -1;
    }
    for (int32_t i = 0; i < more; i++) {
        sub->dead[sub->dead_count++] = sub->head.tri_count++;
    }
    return 0;
}

int mesh_fill(mesh_sub *sub, int32_t v)
{
    if (take_slots(sub, 2) != 0) {
        return -1;
    }
    int32_t count = sub->rim_count;
    for (int32_t i = 0; i < count; i++) {
        int32_t before = sub->dead[i == 0 ? count - 1 : i - 1];
        int32_t after = sub->dead[i == count - 1 ? 0 : i + 1];
        write_fan_triangle(sub, sub->dead[i], v, &sub->rim[i], before, after);
    }
    return 0;
}

void mesh_piece_ends(const mesh_sub *sub, int32_t piece, int32_t *a, int32_t *b)
{
    int32_t side = sub->piece[piece].tri[0] >= 0 ? 0 : 1;
    int32_t t = sub->piece[piece].tri[side];
    int32_t i = mesh_slot_of(sub, t, ~piece);
    int32_t from = sub->tri[t].v[mesh_next3(i)], to = sub->tri[t].v[mesh_prev3(i)];
    *a = side == 0 ? from : to;
    *b = side == 0 ? to : from;
}

/* Joins the open cavity on one side of a halved piece to its midpoint v. The first rim edge starts
 * at the end of the open edge, so the first new triangle borders the half `first`, the last `last`.
 */
static int fill_side(mesh_sub *sub, int32_t v, int32_t side, int32_t first, int32_t last)
{
    if (take_slots(sub, 1) != 0) {
        return -1;
    }
    int32_t count = sub->rim_count;
    for (int32_t i = 0; i < count; i++) {
        int32_t before = i == 0 ? ~first : sub->dead[i - 1];
        int32_t after = i == count - 1 ? ~last : sub->dead[i + 1];
        write_fan_triangle(sub, sub->dead[i], v, &sub->rim[i], before, after);
    }
    sub->piece[first].tri[side] = sub->dead[0];
    sub->piece[last].tri[side] = sub->dead[count - 1];
    return 0;
}

/* The second half becomes a new piece, the first keeps the index. */
static int32_t halve_record(mesh_sub *sub, int32_t piece)
{
    mesh_piece *p = &sub->piece[piece];
    int32_t second = sub->head.piece_count++;
    int32_t child = sub->head.node_count;
    sub->head.node_count += 2;
    sub->node[p->node] = child;
    sub->node[child] = ~piece;
    sub->node[child + 1] = ~second;
    sub->piece[second] = (mesh_piece){p->edge, 2 * p->path + 1, child + 1, {-1, -1}};
    p->path *= 2;
    p->node = child;
    return second;
}

int mesh_halve(mesh_sub *sub, int32_t piece, void (*made)(mesh_sub *, int32_t, void *), void *arg)
{
    int32_t a, b, old[2] = {sub->piece[piece].tri[0], sub->piece[piece].tri[1]};
    mesh_piece_ends(sub, piece, &a, &b);
    mesh_point middle = mesh_middle(sub->point[a], sub->point[b]);
    if (mesh_room_points(sub, 1) != 0 || mesh_room_pieces(sub, 1) != 0) {
        return -1;
    }
    /* All memory is there before anything changes: a cavity is at most the whole mesh. */
    if (mesh_room_tris(sub, 2) != 0) {
        return -1;
    }
    int32_t v = mesh_add_point(sub, middle);
    int32_t second = halve_record(sub, piece);
    for (int32_t side = 0; side < 2; side++) {
        if (old[side] < 0) {
            continue;
        }
        int32_t open = mesh_slot_of(sub, old[side], ~piece);
        if (mesh_cavity(sub, middle, old[side], open) != 0 ||
            fill_side(sub, v, side, side == 0 ? second : piece, side == 0 ? piece : second) != 0) {
            return -1;
        }
        for (int32_t i = 0; made != NULL && i < sub->rim_count; i++) {
            made(sub, sub->dead[i], arg);
        }
    }
    return 0;
}

int32_t mesh_walk(mesh_sub *sub, int32_t t, mesh_point p)
{
    const mesh_point *point = sub->point;
    int32_t from = -1;
    for (int32_t steps = 0; steps < sub->head.tri_count + 64; steps++) {
        const mesh_tri *tri = &sub->tri[t];
        /* A varying first edge keeps the walk out of cycles that constraints make possible. */
        sub->head.walk = sub->head.walk * 1664525u + 1013904223u;
        int32_t i = (int32_t)((sub->head.walk >> 16) % 3);
        int32_t on = -1, way = -1;
        for (int32_t k = 0; k < 3 && way < 0; k++, i = mesh_next3(i)) {
            if (tri->n[i] == from && from >= 0) {
                continue;
            }
            int64_t turn =
                mesh_orient(point[tri->v[mesh_next3(i)]], point[tri->v[mesh_prev3(i)]], p);
            on = turn == 0 && tri->n[i] < 0 ? i : on;
            way = turn < 0 ? i : way;
        }
        if (way < 0) {
            return on < 0 ? t : tri->n[on];
        }
        if (tri->n[way] < 0) {
            return tri->n[way];
        }
        from = t;
        t = tri->n[way];
    }
    return INT32_MIN;
}

static void look_back(mesh_sub *sub, int32_t n, int32_t old, int32_t now)
{
    if (n >= 0) {
        sub->tri[n].n[mesh_slot_of(sub, n, old)] = now;
    } else {
        mesh_piece *p = &sub->piece[~n];
        p->tri[p->tri[0] == old ? 0 : 1] = now;
    }
}

void mesh_flip(mesh_sub *sub, int32_t t, int32_t i)
{
    int32_t u = sub->tri[t].n[i];
    int32_t j = mesh_slot_of(sub, u, t);
    mesh_tri a = sub->tri[t], b = sub->tri[u];
    int32_t ap = a.v[i], l = a.v[mesh_next3(i)], r = a.v[mesh_prev3(i)], bp = b.v[j];
    int32_t n_l = a.n[mesh_prev3(i)]; /* across ap l */
    int32_t n_r = a.n[mesh_next3(i)]; /* across r ap */
    int32_t m_l = b.n[mesh_next3(j)]; /* across l bp */
    int32_t m_r = b.n[mesh_prev3(j)]; /* across bp r */
    sub->tri[t] = (mesh_tri){{ap, l, bp}, {m_l, u, n_l}};
    sub->tri[u] = (mesh_tri){{bp, r, ap}, {n_r, t, m_r}};
    look_back(sub, m_l, u, t);
    look_back(sub, n_r, t, u);
}

bool mesh_not_delaunay(const mesh_sub *sub, int32_t t, int32_t i)
{
    int32_t u = sub->tri[t].n[i];
    if (u < 0) {
        return false;
    }
    return circle_holds(sub, t, sub->point[sub->tri[u].v[mesh_slot_of(sub, u, t)]]);
}

int mesh_make_delaunay(mesh_sub *sub)
{
    int32_t depth = 0;
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        if (room((void **)&sub->stack, &sub->stack_room, (int64_t)depth + 3, sizeof *sub->stack) !=
            0) {
            return -1;
        }
        sub->stack[depth++] = (mesh_corner){t, 0};
    }
    while (depth > 0) {
        int32_t t = sub->stack[--depth].tri;
        for (int32_t i = 0; i < 3; i++) {
            if (!mesh_not_delaunay(sub, t, i)) {
                continue;
            }
            int32_t u = sub->tri[t].n[i];
            if (room((void **)&sub->stack, &sub->stack_room, (int64_t)depth + 2,
                     sizeof *sub->stack) != 0) {
                return -1;
            }
            mesh_flip(sub, t, i);
            sub->stack[depth++] = (mesh_corner){u, 0};
            sub->stack[depth++] = (mesh_corner){t, 0};
            break;
        }
    }
    return 0;
}

static int queue_grow(mesh_sub *sub)
{
    int32_t count = sub->head.queue_count, first = sub->queue_first;
    int32_t more = sub->queue_room < 64 ? 64 : 2 * sub->queue_room;
    int32_t *bigger = more > COUNT_MAX ? NULL : malloc((size_t)more * sizeof *bigger);
    if (bigger == NULL) {
        return -1;
    }
    for (int32_t i = 0; i < count; i++) {
        bigger[i] = sub->queue[(first + i) & (sub->queue_room - 1)];
    }
    free(sub->queue);
    sub->queue = bigger;
    sub->queue_room = more;
    sub->queue_first = 0;
    return 0;
}

int mesh_queue_push(mesh_sub *sub, int32_t t)
{
    if (sub->head.queue_count == sub->queue_room && queue_grow(sub) != 0) {
        return -1;
    }
    sub->queue[(sub->queue_first + sub->head.queue_count++) & (sub->queue_room - 1)] = t;
    return 0;
}
