/* Points are inserted into a box in the order of a Hilbert curve, so that each is found after a
 * short walk. Each segment is then forced in by turning the diagonals it crosses (Sloan's queue).
 * When all are in they become pieces, the rest is flipped to be Delaunay, and what is no land
 * (cdt_land.h) is removed. */
#include "cdt.h"

#include "cdt_land.h"
#include "hilbert.h"
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define BOX 4

typedef struct builder {
    const mesh_pslg *pslg;
    mesh_sub *sub;
    int32_t *at;  /* a triangle at each point */
    int32_t line; /* of the segment that is being put in */
    mesh_log *log;
} builder;

typedef struct pair {
    int32_t a, b;
} pair;

static void make_box(mesh_sub *sub)
{
    const int32_t top = (1 << MESH_COORD_BITS) - 1;
    sub->point[0] = (mesh_point){0, 0};
    sub->point[1] = (mesh_point){top, 0};
    sub->point[2] = (mesh_point){top, top};
    sub->point[3] = (mesh_point){0, top};
    sub->tri[0] = (mesh_tri){{0, 1, 2}, {~0, 1, ~0}};
    sub->tri[1] = (mesh_tri){{0, 2, 3}, {~0, ~0, 0}};
    sub->head.tri_count = 2;
}

/* A graph as pslg.h describes it does not come here. */
static int lost(builder *b)
{
    return mesh_fail(b->log,
                     "%s:%d: this segment and those near it do not fit together; expected segments "
                     "that touch in common ends alone",
                     b->pslg->name, b->line);
}

/* The line of a segment that ends at a point. */
static int32_t line_at(const mesh_pslg *g, int32_t point)
{
    int32_t i = 0;
    while (i + 1 < g->segment_count && g->segment[i].a != point && g->segment[i].b != point) {
        i++;
    }
    return g->segment[i].line;
}

static int insert_points(builder *b)
{
    mesh_sub *sub = b->sub;
    int32_t count = b->pslg->point_count, t = 0;
    if (mesh_room_points(sub, count + BOX) != 0 || mesh_room_tris(sub, 2 * count + BOX) != 0) {
        return mesh_fail_memory(b->log);
    }
    mesh_ranked *order = mesh_hilbert_order(b->pslg->point, count);
    if (order == NULL) {
        return mesh_fail_memory(b->log);
    }
    make_box(sub);
    memcpy(sub->point + BOX, b->pslg->point, (size_t)count * sizeof *sub->point);
    sub->head.point_count = count + BOX;
    int rc = 0;
    for (int32_t i = 0; i < count && rc == 0; i++) {
        int32_t v = order[i].index + BOX;
        t = mesh_walk(sub, t, sub->point[v]);
        if (t < 0) {
            b->line = line_at(b->pslg, order[i].index);
            rc = lost(b);
        } else if (mesh_cavity(sub, sub->point[v], t, -1) != 0 || mesh_fill(sub, v) != 0) {
            rc = mesh_fail_memory(b->log);
        } else {
            t = sub->dead[0];
        }
    }
    free(order);
    return rc;
}

static void note_corners(builder *b, int32_t t)
{
    for (int i = 0; i < 3; i++) {
        b->at[b->sub->tri[t].v[i]] = t;
    }
}

static int32_t corner_of(const mesh_sub *sub, int32_t t, int32_t v)
{
    const mesh_tri *tri = &sub->tri[t];
    return tri->v[0] == v ? 0 : tri->v[1] == v ? 1 : 2;
}

/* Finds edge a b: the triangle left of it and its slot there. The triangles around a point of the
 * input close. Those around a corner of the box do not: its edges are found from their other end.
 */
static bool find_edge(const builder *b, int32_t a, int32_t to, mesh_corner *out)
{
    const mesh_sub *sub = b->sub;
    int32_t first = b->at[a], t = first;
    if (a < BOX) {
        mesh_corner c;
        if (to < BOX || !find_edge(b, to, a, &c)) {
            return false;
        }
        int32_t left = sub->tri[c.tri].n[c.edge];
        *out = (mesh_corner){left, mesh_slot_of(sub, left, c.tri)};
        return true;
    }
    do {
        int32_t i = corner_of(sub, t, a);
        if (sub->tri[t].v[mesh_next3(i)] == to) {
            *out = (mesh_corner){t, mesh_prev3(i)};
            return true;
        }
        t = sub->tri[t].n[mesh_next3(i)];
    } while (t != first && t >= 0);
    return false;
}

/* The triangle at a whose far edge the way to b crosses. */
static bool find_exit(const builder *b, int32_t a, int32_t to, mesh_corner *out)
{
    const mesh_sub *sub = b->sub;
    mesh_point pa = sub->point[a], pb = sub->point[to];
    int32_t first = b->at[a], t = first;
    do {
        int32_t i = corner_of(sub, t, a);
        mesh_point r = sub->point[sub->tri[t].v[mesh_next3(i)]];
        mesh_point l = sub->point[sub->tri[t].v[mesh_prev3(i)]];
        if (mesh_orient(pa, r, pb) > 0 && mesh_orient(pa, l, pb) < 0) {
            *out = (mesh_corner){t, i};
            return true;
        }
        t = sub->tri[t].n[mesh_next3(i)];
    } while (t != first && t >= 0);
    return false;
}

typedef struct pair_queue {
    pair *at;
    int32_t first, count, room;
} pair_queue;

static int push_pair(pair_queue *q, pair p)
{
    if (q->first + q->count == q->room) {
        if (q->count > 0) {
            memmove(q->at, q->at + q->first, (size_t)q->count * sizeof *q->at);
        }
        q->first = 0;
        if (2 * q->count >= q->room) {
            int32_t more = 2 * q->room + 64;
            pair *bigger = realloc(q->at, (size_t)more * sizeof *bigger);
            if (bigger == NULL) {
                return -1;
            }
            q->at = bigger;
            q->room = more;
        }
    }
    q->at[q->first + q->count++] = p;
    return 0;
}

/* Lists the edges that the way from a to b crosses. */
static int list_crossed(builder *b, int32_t from, int32_t to, pair_queue *q)
{
    const mesh_sub *sub = b->sub;
    mesh_corner c;
    q->first = 0;
    q->count = 0;
    if (!find_exit(b, from, to, &c)) {
        return lost(b);
    }
    for (int32_t steps = 0; steps <= sub->head.tri_count; steps++) {
        const mesh_tri *tri = &sub->tri[c.tri];
        if (push_pair(q, (pair){tri->v[mesh_next3(c.edge)], tri->v[mesh_prev3(c.edge)]}) != 0) {
            return mesh_fail_memory(b->log);
        }
        int32_t n = tri->n[c.edge];
        if (n < 0) {
            return lost(b);
        }
        int32_t j = mesh_slot_of(sub, n, c.tri), apex = sub->tri[n].v[j];
        if (apex == to) {
            return 0;
        }
        int64_t turn = mesh_orient(sub->point[from], sub->point[to], sub->point[apex]);
        if (turn == 0) {
            return lost(b);
        }
        /* Left of the way: the next crossed edge joins the apex with the right-hand end. */
        c = (mesh_corner){n, turn > 0 ? mesh_prev3(j) : mesh_next3(j)};
        int32_t l = sub->tri[n].v[mesh_next3(c.edge)], r = sub->tri[n].v[mesh_prev3(c.edge)];
        bool across = (mesh_orient(sub->point[from], sub->point[to], sub->point[l]) > 0) !=
                      (mesh_orient(sub->point[from], sub->point[to], sub->point[r]) > 0);
        if (!across) {
            c.edge = turn > 0 ? mesh_next3(j) : mesh_prev3(j);
        }
    }
    return lost(b);
}

static bool is_convex(const mesh_sub *sub, mesh_corner c, int32_t *p, int32_t *q)
{
    const mesh_tri *tri = &sub->tri[c.tri];
    int32_t n = tri->n[c.edge];
    *p = tri->v[c.edge];
    *q = sub->tri[n].v[mesh_slot_of(sub, n, c.tri)];
    mesh_point pp = sub->point[*p], pq = sub->point[*q];
    return mesh_orient(pp, sub->point[tri->v[mesh_next3(c.edge)]], pq) > 0 &&
           mesh_orient(pp, pq, sub->point[tri->v[mesh_prev3(c.edge)]]) > 0;
}

static bool still_crosses(const mesh_sub *sub, int32_t from, int32_t to, int32_t p, int32_t q)
{
    if (p == from || p == to || q == from || q == to) {
        return false;
    }
    return (mesh_orient(sub->point[from], sub->point[to], sub->point[p]) > 0) !=
           (mesh_orient(sub->point[from], sub->point[to], sub->point[q]) > 0);
}

static int force_segment(builder *b, int32_t from, int32_t to, pair_queue *q)
{
    mesh_corner c;
    if (find_edge(b, from, to, &c)) {
        return 0;
    }
    if (list_crossed(b, from, to, q) != 0) {
        return -1;
    }
    int64_t turns_max = 1000 + 64LL * q->count * q->count;
    while (q->count > 0) {
        int32_t p, r;
        pair e = q->at[q->first++];
        q->count--;
        if (turns_max-- == 0 || !find_edge(b, e.a, e.b, &c)) {
            return lost(b);
        }
        if (!is_convex(b->sub, c, &p, &r)) {
            if (push_pair(q, e) != 0) {
                return mesh_fail_memory(b->log);
            }
            continue;
        }
        int32_t n = b->sub->tri[c.tri].n[c.edge];
        mesh_flip(b->sub, c.tri, c.edge);
        note_corners(b, c.tri);
        note_corners(b, n);
        if (still_crosses(b->sub, from, to, p, r) && push_pair(q, (pair){p, r}) != 0) {
            return mesh_fail_memory(b->log);
        }
    }
    return 0;
}

/* Makes the edge a piece. Must run when all segments are edges. */
static int constrain(builder *b, int32_t index)
{
    mesh_sub *sub = b->sub;
    const mesh_segment *s = &b->pslg->segment[index];
    mesh_corner c;
    b->line = s->line;
    if (!find_edge(b, s->a + BOX, s->b + BOX, &c)) {
        return lost(b);
    }
    int32_t piece = mesh_add_edge(sub, (mesh_edge){-1, -1, index, 0});
    if (piece < 0) {
        return mesh_fail_memory(b->log);
    }
    sub->piece[piece].tri[0] = c.tri;
    sub->piece[piece].tri[1] = sub->tri[c.tri].n[c.edge];
    return 0;
}

/* Links triangles to pieces only now: find_edge turns around points across plain links. */
static void link_pieces(mesh_sub *sub)
{
    for (int32_t p = 1; p < sub->head.piece_count; p++) {
        int32_t l = sub->piece[p].tri[0], r = sub->piece[p].tri[1];
        int32_t i = mesh_slot_of(sub, l, r), j = mesh_slot_of(sub, r, l);
        sub->tri[l].n[i] = ~p;
        sub->tri[r].n[j] = ~p;
    }
}

static int insert_segments(builder *b)
{
    int32_t count = b->pslg->segment_count;
    pair_queue q = {NULL, 0, 0, 0};
    int rc = 0;
    b->at = malloc((size_t)b->sub->head.point_count * sizeof *b->at);
    if (b->at == NULL) {
        return mesh_fail_memory(b->log);
    }
    for (int32_t t = 0; t < b->sub->head.tri_count; t++) {
        note_corners(b, t);
    }
    for (int32_t i = 0; i < count && rc == 0; i++) {
        b->line = b->pslg->segment[i].line;
        rc = force_segment(b, b->pslg->segment[i].a + BOX, b->pslg->segment[i].b + BOX, &q);
    }
    for (int32_t i = 0; i < count && rc == 0; i++) {
        rc = constrain(b, i);
    }
    free(q.at);
    free(b->at);
    b->at = NULL;
    if (rc == 0) {
        link_pieces(b->sub);
        rc = mesh_make_delaunay(b->sub) != 0 ? mesh_fail_memory(b->log) : 0;
    }
    return rc;
}

/* New index for each kept item: its number among the kept. Returns how many are kept. */
static int32_t renumber(int32_t *map, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        map[i] = map[i] != 0 ? kept++ : -1;
    }
    return kept;
}

static void compact_tris(mesh_sub *sub, const int32_t *tri_map, const int32_t *point_map)
{
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        mesh_tri tri = sub->tri[t];
        if (tri_map[t] < 0) {
            continue;
        }
        for (int i = 0; i < 3; i++) {
            tri.v[i] = point_map[tri.v[i]];
            tri.n[i] = tri.n[i] >= 0 ? tri_map[tri.n[i]] : tri.n[i];
        }
        sub->tri[tri_map[t]] = tri;
    }
    for (int32_t p = 0; p < sub->head.point_count; p++) {
        if (point_map[p] >= 0) {
            sub->point[point_map[p]] = sub->point[p];
        }
    }
}

/* Piece i + 1 is the root of edge i here; those with nothing on either side go, and their edges. */
static void compact_pieces(mesh_sub *sub, const int32_t *tri_map)
{
    int32_t kept = 1;
    for (int32_t p = 1; p < sub->head.piece_count; p++) {
        mesh_piece piece = sub->piece[p];
        for (int side = 0; side < 2; side++) {
            piece.tri[side] = piece.tri[side] >= 0 ? tri_map[piece.tri[side]] : -1;
        }
        if (piece.tri[0] < 0 && piece.tri[1] < 0) {
            continue;
        }
        for (int side = 0; side < 2; side++) {
            int32_t t = piece.tri[side];
            if (t >= 0) {
                sub->tri[t].n[mesh_slot_of(sub, t, ~p)] = ~kept;
            }
        }
        sub->edge[kept - 1] = sub->edge[p - 1];
        sub->edge[kept - 1].root = kept;
        sub->node[kept] = ~kept;
        piece.edge = kept - 1;
        piece.node = kept;
        sub->piece[kept++] = piece;
    }
    sub->head.piece_count = kept;
    sub->head.node_count = kept;
    sub->head.edge_count = kept - 1;
}

static int compact(builder *b, const uint8_t *gone)
{
    mesh_sub *sub = b->sub;
    int32_t *tri_map = calloc((size_t)sub->head.tri_count, sizeof *tri_map);
    int32_t *point_map = calloc((size_t)sub->head.point_count, sizeof *point_map);
    if (tri_map == NULL || point_map == NULL) {
        free(tri_map);
        free(point_map);
        return mesh_fail_memory(b->log);
    }
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        for (int i = 0; i < 3 && !gone[t]; i++) {
            tri_map[t] = 1;
            point_map[sub->tri[t].v[i]] = 1;
        }
    }
    int32_t tris = renumber(tri_map, sub->head.tri_count);
    int32_t points = renumber(point_map, sub->head.point_count);
    compact_tris(sub, tri_map, point_map);
    compact_pieces(sub, tri_map);
    sub->head.tri_count = tris;
    sub->head.point_count = points;
    free(tri_map);
    free(point_map);
    return 0;
}

static int carve(builder *b)
{
    uint8_t *gone = calloc((size_t)b->sub->head.tri_count, 1);
    int rc =
        gone == NULL ? mesh_fail_memory(b->log) : mesh_cdt_find_land(b->sub, b->pslg, gone, b->log);
    rc = rc != 0 ? rc : compact(b, gone);
    free(gone);
    return rc;
}

mesh_sub *mesh_cdt_create(const mesh_pslg *pslg, mesh_log *log)
{
    builder b = {.pslg = pslg, .sub = mesh_sub_new(), .log = log};
    if (b.sub == NULL) {
        (void)mesh_fail_memory(log);
        return NULL;
    }
    if (insert_points(&b) != 0 || insert_segments(&b) != 0 || carve(&b) != 0) {
        mesh_sub_destroy(b.sub);
        return NULL;
    }
    return b.sub;
}
