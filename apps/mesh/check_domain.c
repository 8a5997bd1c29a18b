/* Half-edge 2 s runs from a to b along segment s, 2 s + 1 back; the face of a half-edge is on its
 * left. Turning at each end to the next half-edge clockwise gives cycles. There is one
 * counter-clockwise cycle around each bounded face, and one clockwise cycle around each connected
 * set of segments. The clockwise one belongs to the face that the set lies in: the one right of the
 * first segment to its left. Faces are the unions of these cycles. A step across a segment from
 * face to face changes the winding numbers of its rings; steps that cross no wall join faces to
 * zones. pslg.h says which faces are land. */
#include "check_domain.h"

#include <stdlib.h>

#include "union_find.h"

typedef struct faces {
    const mesh_pslg *g;
    int32_t half_count;
    int32_t *next;
    int32_t *cycle;  /* of each half-edge */
    int32_t *parent; /* union of cycles; the last entry is the unbounded face */
    mesh_wide *area2;
    int32_t *leftmost; /* a point of each cycle */
    int32_t *inner;    /* of each face: its innermost ring, or -1; -2 before it is
                          known */
    int32_t *zone;     /* union of faces; that of the unbounded face is outside all
                          walls */
    bool *empty;
    int32_t *winding; /* of each ring where the walk over faces is */
    int32_t cycle_count;
} faces;

static int32_t tail(const mesh_pslg *g, int32_t half)
{
    return half % 2 == 0 ? g->segment[half / 2].a : g->segment[half / 2].b;
}

static mesh_wide cross(mesh_point o, mesh_point a, mesh_point b)
{
    mesh_wide ax = (mesh_wide)a.x - o.x, ay = (mesh_wide)a.y - o.y;
    return ax * ((mesh_wide)b.y - o.y) - ay * ((mesh_wide)b.x - o.x);
}

typedef struct spoke {
    int32_t from;
    mesh_point origin, to;
    int32_t half;
} spoke;

static int upper(const spoke *s)
{
    return s->to.y > s->origin.y || (s->to.y == s->origin.y && s->to.x > s->origin.x) ? 0 : 1;
}

/* By starting point, then counter-clockwise. */
static int by_turn(const void *a, const void *b)
{
    const spoke *l = a, *r = b;
    if (l->from != r->from) {
        return l->from < r->from ? -1 : 1;
    }
    if (upper(l) != upper(r)) {
        return upper(l) - upper(r);
    }
    mesh_wide turn = cross(l->origin, l->to, r->to);
    return turn > 0 ? -1 : turn < 0 ? 1 : 0;
}

static int link_halves(faces *f)
{
    spoke *s = malloc(((size_t)f->half_count + 1) * sizeof *s);
    if (s == NULL) {
        return -1;
    }
    for (int32_t h = 0; h < f->half_count; h++) {
        int32_t a = tail(f->g, h), b = tail(f->g, h ^ 1);
        s[h] = (spoke){a, f->g->point[a], f->g->point[b], h};
    }
    qsort(s, (size_t)f->half_count, sizeof *s, by_turn);
    for (int32_t first = 0, end; first < f->half_count; first = end) {
        for (end = first; end < f->half_count && s[end].from == s[first].from; end++) {
        }
        for (int32_t k = first; k < end; k++) {
            /* Arriving against spoke k, the next one clockwise leads on. */
            f->next[s[k].half ^ 1] = s[k == first ? end - 1 : k - 1].half;
        }
    }
    free(s);
    return 0;
}

static void trace_cycles(faces *f)
{
    for (int32_t h = 0; h < f->half_count; h++) {
        f->cycle[h] = -1;
    }
    for (int32_t h = 0; h < f->half_count; h++) {
        if (f->cycle[h] >= 0) {
            continue;
        }
        int32_t c = f->cycle_count++, least = tail(f->g, h);
        mesh_wide area2 = 0;
        for (int32_t k = h; f->cycle[k] < 0; k = f->next[k]) {
            mesh_point a = f->g->point[tail(f->g, k)], b = f->g->point[tail(f->g, k ^ 1)];
            mesh_point l = f->g->point[least];
            f->cycle[k] = c;
            area2 += (mesh_wide)a.x * b.y - (mesh_wide)a.y * b.x;
            if (a.x < l.x || (a.x == l.x && a.y < l.y)) {
                least = tail(f->g, k);
            }
        }
        f->area2[c] = area2;
        f->leftmost[c] = least;
    }
}

static int32_t face_of(faces *f, int32_t cycle)
{
    return find_root(f->parent, cycle);
}

/* The face left of a half-edge. */
static int32_t face_left(faces *f, int32_t half)
{
    return face_of(f, f->cycle[half]);
}

/* True when, just above height y, the upward segment a b is further right than
 * c d. */
static bool further_right(mesh_point a, mesh_point b, mesh_point c, mesh_point d, int32_t y)
{
    mesh_wide h1 = (mesh_wide)b.y - a.y, h2 = (mesh_wide)d.y - c.y;
    mesh_wide x1 = a.x * h1 + ((mesh_wide)y - a.y) * ((mesh_wide)b.x - a.x);
    mesh_wide x2 = c.x * h2 + ((mesh_wide)y - c.y) * ((mesh_wide)d.x - c.x);
    if (x1 * h2 != x2 * h1) {
        return x1 * h2 > x2 * h1;
    }
    return ((mesh_wide)b.x - a.x) * h2 > ((mesh_wide)d.x - c.x) * h1;
}

/* The cycle seen from just above p to the left; the unbounded face's entry if
 * nothing is there. */
static int32_t look_left(const faces *f, mesh_point p)
{
    const mesh_pslg *g = f->g;
    int32_t best = -1;
    for (int32_t s = 0; s < g->segment_count; s++) {
        int32_t half =
            g->point[g->segment[s].a].y < g->point[g->segment[s].b].y ? 2 * s : 2 * s + 1;
        mesh_point a = g->point[tail(g, half)], b = g->point[tail(g, half ^ 1)];
        if (a.y > p.y || b.y <= p.y || cross(a, b, p) >= 0) {
            continue;
        }
        if (best < 0 ||
            further_right(a, b, g->point[tail(g, best)], g->point[tail(g, best ^ 1)], p.y)) {
            best = half;
        }
    }
    return best < 0 ? f->cycle_count : f->cycle[best ^ 1];
}

static void join_faces(faces *f)
{
    for (int32_t c = 0; c <= f->cycle_count; c++) {
        f->parent[c] = c;
        f->zone[c] = c;
        f->inner[c] = -2;
    }
    for (int32_t c = 0; c < f->cycle_count; c++) {
        if (f->area2[c] <= 0) {
            int32_t outer = look_left(f, f->g->point[f->leftmost[c]]);
            f->parent[face_of(f, c)] = face_of(f, outer);
        }
    }
    for (int32_t s = 0; s < f->g->segment_count; s++) {
        if (f->g->segment[s].cover_count > 0) {
            int32_t left = face_left(f, 2 * s), right = face_left(f, 2 * s + 1);
            f->zone[find_root(f->zone, left)] = find_root(f->zone, right);
        }
    }
}

/* The winding numbers after a step over a half-edge to the face on its left. */
static void wind(faces *f, int32_t half)
{
    const mesh_segment *s = &f->g->segment[half / 2];
    for (int32_t i = 0; i < s->cover_count; i++) {
        const mesh_cover *c = &f->g->cover[s->cover + i];
        f->winding[c->ring] += half % 2 == 0 ? c->net : -c->net;
    }
}

static void set_inner(faces *f, int32_t face)
{
    f->inner[face] = -1;
    for (int32_t r = 0; r < f->g->ring_count; r++) {
        f->inner[face] = f->winding[r] != 0 ? r : f->inner[face];
    }
}

/* Half-edges by the face on their left, as lists: first[face], then next[half].
 */
static void list_by_face(faces *f, int32_t *first, int32_t *next)
{
    for (int32_t c = 0; c <= f->cycle_count; c++) {
        first[c] = -1;
    }
    for (int32_t h = f->half_count - 1; h >= 0; h--) {
        int32_t face = face_left(f, h);
        next[h] = first[face];
        first[face] = h;
    }
}

/* Walks over all faces from the unbounded one, and back. `path` holds the
 * half-edges of the way, seen from the face that each was left by. */
static void walk_faces(faces *f, int32_t *first, const int32_t *next, int32_t *path)
{
    int32_t face = face_of(f, f->cycle_count), depth = 0;
    set_inner(f, face);
    for (;;) {
        int32_t half = first[face];
        if (half >= 0) {
            int32_t to = face_left(f, half ^ 1);
            first[face] = next[half];
            if (f->inner[to] == -2) {
                wind(f, half ^ 1);
                set_inner(f, to);
                path[depth++] = half;
                face = to;
            }
        } else if (depth > 0) {
            half = path[--depth];
            wind(f, half);
            face = face_left(f, half);
        } else {
            return;
        }
    }
}

static int find_inner(faces *f)
{
    size_t count = (size_t)f->half_count + 1;
    int32_t *first = malloc(count * sizeof *first), *next = malloc(count * sizeof *next);
    int32_t *path = malloc(count * sizeof *path);
    bool enough = first != NULL && next != NULL && path != NULL;
    if (enough) {
        list_by_face(f, first, next);
        walk_faces(f, first, next, path);
    }
    free(first);
    free(next);
    free(path);
    return enough ? 0 : -1;
}

/* Empty are the faces that nothing covers or encloses, and those of holes. */
static void find_empty(faces *f)
{
    int32_t outside = find_root(f->zone, face_of(f, f->cycle_count));
    for (int32_t c = 0; c <= f->cycle_count; c++) {
        f->empty[c] = f->inner[c] == -1 && find_root(f->zone, c) == outside;
    }
    for (int32_t i = 0; i < f->g->hole_count; i++) {
        const mesh_hole *hole = &f->g->hole[i];
        int32_t zone = find_root(f->zone, face_of(f, look_left(f, hole->place)));
        for (int32_t c = 0; c <= f->cycle_count; c++) {
            f->empty[c] =
                f->empty[c] || (f->inner[c] == hole->ring && find_root(f->zone, c) == zone);
        }
    }
}

static int measure_domain(faces *f, mesh_domain *d)
{
    uint8_t *used = calloc((size_t)f->g->point_count + 1, 1);
    d->filled = calloc((size_t)f->half_count + 1, 1);
    if (used == NULL || d->filled == NULL) {
        free(used);
        return -1;
    }
    d->area2 = 0;
    d->euler = 0;
    for (int32_t h = 0; h < f->half_count; h++) {
        d->filled[h] = f->empty[face_left(f, h)] ? 0 : 1;
    }
    for (int32_t h = 0; h < f->half_count; h++) {
        if (d->filled[h] || d->filled[h ^ 1]) {
            used[tail(f->g, h)] = 1;
            d->euler -= h % 2;
        }
    }
    for (int32_t p = 0; p < f->g->point_count; p++) {
        d->euler += used[p];
    }
    for (int32_t c = 0; c < f->cycle_count; c++) {
        if (!f->empty[face_of(f, c)]) {
            d->area2 += f->area2[c];
            d->euler += f->area2[c] > 0 ? 1 : -1;
        }
    }
    free(used);
    return 0;
}

static int faces_init(faces *f, const mesh_pslg *g)
{
    size_t halves = 2 * (size_t)g->segment_count, cycles = halves + 1;
    *f = (faces){.g = g, .half_count = (int32_t)halves};
    f->next = malloc(cycles * sizeof *f->next);
    f->cycle = malloc(cycles * sizeof *f->cycle);
    f->parent = malloc(cycles * sizeof *f->parent);
    f->area2 = malloc(cycles * sizeof *f->area2);
    f->leftmost = malloc(cycles * sizeof *f->leftmost);
    f->inner = malloc(cycles * sizeof *f->inner);
    f->zone = malloc(cycles * sizeof *f->zone);
    f->empty = malloc(cycles * sizeof *f->empty);
    f->winding = calloc((size_t)g->ring_count + 1, sizeof *f->winding);
    return f->next == NULL || f->cycle == NULL || f->parent == NULL || f->area2 == NULL ||
                   f->leftmost == NULL || f->inner == NULL || f->zone == NULL || f->empty == NULL ||
                   f->winding == NULL
               ? -1
               : 0;
}

static void faces_fini(faces *f)
{
    free(f->next);
    free(f->cycle);
    free(f->parent);
    free(f->area2);
    free(f->leftmost);
    free(f->inner);
    free(f->zone);
    free(f->empty);
    free(f->winding);
}

int mesh_domain_init(mesh_domain *d, const mesh_pslg *pslg)
{
    faces f;
    int rc = -1;
    *d = (mesh_domain){0};
    if (faces_init(&f, pslg) == 0 && link_halves(&f) == 0) {
        trace_cycles(&f);
        join_faces(&f);
        if (find_inner(&f) == 0) {
            find_empty(&f);
            rc = measure_domain(&f, d);
        }
    }
    faces_fini(&f);
    return rc;
}

void mesh_domain_fini(mesh_domain *d)
{
    free(d->filled);
    *d = (mesh_domain){0};
}
