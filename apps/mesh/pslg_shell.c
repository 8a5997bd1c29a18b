/* Where two segments meet at a small angle, refinement halves one, then the other, and so on
 * without end unless the pieces at the corner become equally long (the concentric shells of
 * Ruppert's paper). Midpoints alone never make them equal, so it is done here, once, before any
 * tree of midpoints begins: the segments at such a corner are cut at a common distance. The cut is
 * a multiple of MESH_GRAIN, and so bends the segment by at most half a grain, as snapping does. If
 * the bent segments would touch others, the corner is left as it is: refinement then ends where
 * edges reach MESH_LENGTH_MIN. */
#include "pslg_work.h"

#include <math.h>
#include <stdlib.h>

#define SHELL_GRAINS_MIN 4.0
#define SHELL_TRIES 48

/* The segments as they are while corners are cut. A cut segment keeps its index for one part; the
 * other is appended. */
typedef struct shells {
    pslg_work *w;
    mesh_box_tree tree; /* of the segments before any cut */
    int32_t *rest;      /* of each segment: another part of the same one, or -1 */
    int32_t rest_room;
    int32_t skipped;
} shells;

typedef struct spoke {
    int32_t segment;
    bool outward; /* the segment starts at the corner */
    double x, y, length;
    bool sharp; /* meets a neighbour at less than 60 degrees */
} spoke;

static int by_direction(const void *a, const void *b)
{
    double l = atan2(((const spoke *)a)->y, ((const spoke *)a)->x);
    double r = atan2(((const spoke *)b)->y, ((const spoke *)b)->x);
    return (l > r) - (l < r);
}

static bool is_sharp(const spoke *a, const spoke *b)
{
    double dot = a->x * b->x + a->y * b->y;
    return dot > 0.5 * a->length * b->length;
}

/* Marks the spokes that meet a neighbour at a small angle; returns the shortest one's length, or 0.
 */
static double mark_sharp(spoke *s, int32_t count)
{
    double shortest = 0.0;
    for (int32_t i = 0; i < count; i++) {
        int32_t j = (i + 1) % count;
        if (i != j && is_sharp(&s[i], &s[j])) {
            s[i].sharp = true;
            s[j].sharp = true;
        }
    }
    for (int32_t i = 0; i < count; i++) {
        if (s[i].sharp && (shortest == 0.0 || s[i].length < shortest)) {
            shortest = s[i].length;
        }
    }
    return shortest;
}

static double rounded_length(const spoke *s, double distance, mesh_point *at)
{
    double x = floor(s->x / s->length * distance / MESH_GRAIN + 0.5) * MESH_GRAIN;
    double y = floor(s->y / s->length * distance / MESH_GRAIN + 0.5) * MESH_GRAIN;
    *at = (mesh_point){(int32_t)x, (int32_t)y};
    return sqrt(x * x + y * y);
}

/* The distance between a quarter and four tenths of the shortest at which rounding leaves the
 * lengths most alike. */
static double choose_distance(const spoke *s, int32_t count, double shortest)
{
    double best = 0.0, best_spread = INFINITY;
    for (int k = 0; k < SHELL_TRIES; k++) {
        double distance = shortest * (0.25 + 0.15 * k / SHELL_TRIES);
        double low = INFINITY, high = 0.0;
        for (int32_t i = 0; i < count; i++) {
            if (s[i].sharp) {
                mesh_point at;
                double length = rounded_length(&s[i], distance, &at);
                low = fmin(low, length);
                high = fmax(high, length);
            }
        }
        if ((high - low) / distance < best_spread) {
            best_spread = (high - low) / distance;
            best = distance;
        }
    }
    return best;
}

static int room_for_rest(shells *h)
{
    if (h->w->out->segment_count < h->rest_room) {
        return 0;
    }
    int32_t more = 2 * h->rest_room + 64;
    int32_t *bigger = realloc(h->rest, (size_t)more * sizeof *bigger);
    if (bigger == NULL) {
        return mesh_fail_memory(h->w->log);
    }
    h->rest = bigger;
    h->rest_room = more;
    return 0;
}

/* Cuts one spoke; its index stays with the near part. */
static int cut_spoke(shells *h, int32_t corner, const spoke *s, double distance)
{
    mesh_pslg *o = h->w->out;
    mesh_point at;
    (void)rounded_length(s, distance, &at);
    int32_t p =
        pslg_add_point(h->w, (mesh_point){o->point[corner].x + at.x, o->point[corner].y + at.y});
    if (p < 0 || room_for_rest(h) != 0) {
        return -1;
    }
    mesh_segment *whole = &o->segment[s->segment], far = *whole;
    far.a = s->outward ? p : whole->a;
    far.b = s->outward ? whole->b : p;
    whole->a = s->outward ? corner : p;
    whole->b = s->outward ? p : corner;
    h->rest[o->segment_count] = h->rest[s->segment];
    h->rest[s->segment] = o->segment_count;
    return pslg_add_segment(h->w, far);
}

/* Takes the cuts of a corner back: segments from `segments` and points from `points` on. */
static void restore_spokes(shells *h, spoke *s, int32_t count, int32_t segments, int32_t points)
{
    mesh_pslg *o = h->w->out;
    for (int32_t i = count - 1; i >= 0; i--) {
        int32_t near = s[i].segment, far = h->rest[near];
        if (far < segments) {
            continue;
        }
        if (s[i].outward) {
            o->segment[near].b = o->segment[far].b;
        } else {
            o->segment[near].a = o->segment[far].a;
        }
        h->rest[near] = h->rest[far];
    }
    o->segment_count = segments;
    o->point_count = points;
}

/* True when two segments meet elsewhere than in one common end. */
static bool collide(const mesh_pslg *o, const mesh_segment *s, const mesh_segment *t)
{
    if (s->b == t->a || s->b == t->b) {
        const mesh_segment turned = {.a = s->b, .b = s->a};
        return s->a == t->a || s->a == t->b || collide(o, &turned, t);
    }
    mesh_point a = o->point[s->a], b = o->point[s->b], c = o->point[t->a], d = o->point[t->b];
    if (s->a == t->a || s->a == t->b) {
        mesh_point other = s->a == t->a ? d : c;
        return mesh_orient(a, b, other) == 0 && mesh_dot(b, other, a) > 0;
    }
    int64_t abc = mesh_orient(a, b, c), abd = mesh_orient(a, b, d);
    int64_t cda = mesh_orient(c, d, a), cdb = mesh_orient(c, d, b);
    if ((abc == 0 && mesh_dot(a, b, c) <= 0) || (abd == 0 && mesh_dot(a, b, d) <= 0) ||
        (cda == 0 && mesh_dot(c, d, a) <= 0) || (cdb == 0 && mesh_dot(c, d, b) <= 0)) {
        return true;
    }
    return abc != 0 && abd != 0 && cda != 0 && cdb != 0 && (abc < 0) != (abd < 0) &&
           (cda < 0) != (cdb < 0);
}

typedef struct collision {
    const shells *h;
    int32_t segment;
} collision;

/* Compares all parts of segment `other` with one part. */
static int visit_parts(void *arg, int32_t other)
{
    const collision *c = arg;
    const mesh_pslg *o = c->h->w->out;
    for (int32_t part = other; part >= 0; part = c->h->rest[part]) {
        if (part != c->segment && collide(o, &o->segment[c->segment], &o->segment[part])) {
            return 1;
        }
    }
    return 0;
}

static bool is_clear(const shells *h, int32_t segment)
{
    const mesh_pslg *o = h->w->out;
    collision c = {h, segment};
    return mesh_box_tree_search(&h->tree, o->point[o->segment[segment].a],
                                o->point[o->segment[segment].b], 2 * MESH_GRAIN, visit_parts,
                                &c) == 0;
}

static int shell_corner(shells *h, int32_t corner, spoke *s, int32_t count)
{
    mesh_pslg *o = h->w->out;
    int32_t points = o->point_count, segments = o->segment_count;
    qsort(s, (size_t)count, sizeof *s, by_direction);
    double shortest = mark_sharp(s, count);
    if (shortest == 0.0) {
        return 0;
    }
    double distance = choose_distance(s, count, shortest);
    if (distance < SHELL_GRAINS_MIN * MESH_GRAIN) {
        h->skipped++;
        return 0;
    }
    for (int32_t i = 0; i < count; i++) {
        if (s[i].sharp && cut_spoke(h, corner, &s[i], distance) != 0) {
            return -1;
        }
    }
    bool clear = true;
    for (int32_t i = 0; i < count && clear; i++) {
        clear = !s[i].sharp || is_clear(h, s[i].segment);
    }
    for (int32_t i = segments; i < o->segment_count && clear; i++) {
        clear = is_clear(h, i);
    }
    if (!clear) {
        restore_spokes(h, s, count, segments, points);
        h->skipped++;
    }
    return 0;
}

/* The segments at each point: start[p] .. start[p+1] in list. */
static int list_spokes(const mesh_pslg *o, int32_t **start, int32_t **list)
{
    *start = calloc((size_t)o->point_count + 2, sizeof **start);
    *list = malloc((2 * (size_t)o->segment_count + 1) * sizeof **list);
    if (*start == NULL || *list == NULL) {
        return -1;
    }
    for (int32_t i = 0; i < o->segment_count; i++) {
        (*start)[o->segment[i].a + 2]++;
        (*start)[o->segment[i].b + 2]++;
    }
    for (int32_t i = 0; i <= o->point_count; i++) {
        (*start)[i + 1] += (*start)[i];
    }
    for (int32_t i = 0; i < o->segment_count; i++) {
        (*list)[(*start)[o->segment[i].a + 1]++] = i;
        (*list)[(*start)[o->segment[i].b + 1]++] = i;
    }
    return 0;
}

static void aim_spoke(const mesh_pslg *o, int32_t corner, int32_t segment, spoke *s)
{
    const mesh_segment *g = &o->segment[segment];
    mesh_point c = o->point[corner], e = o->point[g->a == corner ? g->b : g->a];
    *s = (spoke){segment, g->a == corner, (double)e.x - c.x, (double)e.y - c.y, 0.0, false};
    s->length = sqrt(s->x * s->x + s->y * s->y);
}

/* Segment k is the far part of one that was cut: its far end, if it is a point of the input, knew
 * the whole by the index that the near part has kept. */
static void tell_far_end(const mesh_pslg *o, int32_t k, int32_t points, const int32_t *start,
                         int32_t *list)
{
    const mesh_segment *g = &o->segment[k];
    int32_t far = g->a < points ? g->a : g->b;
    if (far >= points) {
        return;
    }
    for (int32_t i = start[far]; i < start[far + 1]; i++) {
        const mesh_segment *old = &o->segment[list[i]];
        if (old->a != far && old->b != far) {
            list[i] = k;
        }
    }
}

static int shell_all(shells *h, const int32_t *start, int32_t *list)
{
    const mesh_pslg *o = h->w->out;
    int32_t points = o->point_count, most = 0;
    int rc = 0;
    for (int32_t p = 0; p < points; p++) {
        int32_t count = start[p + 1] - start[p];
        most = count > most ? count : most;
    }
    spoke *s = malloc(((size_t)most + 1) * sizeof *s);
    if (s == NULL) {
        return mesh_fail_memory(h->w->log);
    }
    for (int32_t p = 0; rc == 0 && p < points; p++) {
        int32_t count = start[p + 1] - start[p], before = o->segment_count;
        for (int32_t i = 0; i < count; i++) {
            aim_spoke(o, p, list[start[p] + i], &s[i]);
        }
        rc = shell_corner(h, p, s, count);
        for (int32_t k = before; rc == 0 && k < o->segment_count; k++) {
            tell_far_end(o, k, points, start, list);
        }
    }
    free(s);
    return rc;
}

static int shells_init(shells *h, pslg_work *w)
{
    const mesh_pslg *o = w->out;
    *h = (shells){.w = w, .rest_room = o->segment_count};
    mesh_box *box = malloc((size_t)o->segment_count * sizeof *box);
    h->rest = malloc((size_t)o->segment_count * sizeof *h->rest);
    int rc = -1;
    if (box != NULL && h->rest != NULL) {
        for (int32_t i = 0; i < o->segment_count; i++) {
            box[i] = mesh_box_around(o->point[o->segment[i].a], o->point[o->segment[i].b]);
            h->rest[i] = -1;
        }
        rc = mesh_box_tree_init(&h->tree, box, o->segment_count);
    }
    free(box);
    return rc;
}

int pslg_make_shells(pslg_work *w)
{
    int32_t *start = NULL, *list = NULL;
    shells h;
    int rc = -1;
    if (shells_init(&h, w) != 0 || list_spokes(w->out, &start, &list) != 0) {
        (void)mesh_fail_memory(w->log);
    } else {
        rc = shell_all(&h, start, list);
    }
    if (rc == 0 && h.skipped > 0) {
        mesh_note(w->log, "%s: %d small angles without room to cut: the mesh is finer there",
                  w->out->name, h.skipped);
    }
    mesh_box_tree_fini(&h.tree);
    free(h.rest);
    free(start);
    free(list);
    return rc;
}
