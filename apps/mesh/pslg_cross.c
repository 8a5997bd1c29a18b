/* Finds where segments of the input cross each other.
 *
 * Two segments cross by less than a grain if an end of one lies within a grain of the other. A
 * rounding of the input may have made that crossing, so it is repaired: the crossing becomes a hot
 * point, and snapping leads both segments through it. A deeper crossing is an error of the input.
 */
#include "pslg_work.h"

#include <math.h>
#include <stdlib.h>

/* More crossings than this, and as many more for each segment, are refused. */
#define CROSSINGS_MAX 100000
#define CROSSINGS_PER_SEGMENT 64

typedef struct crossings {
    pslg_work *w;
    int32_t current; /* the segment whose crossings are looked for */
    mesh_point *at;
    int32_t count, room;
} crossings;

static bool crosses(mesh_point a, mesh_point b, mesh_point c, mesh_point d)
{
    int64_t abc = mesh_orient(a, b, c), abd = mesh_orient(a, b, d);
    int64_t cda = mesh_orient(c, d, a), cdb = mesh_orient(c, d, b);
    return ((abc < 0) != (abd < 0)) && ((cda < 0) != (cdb < 0)) && abc != 0 && abd != 0 &&
           cda != 0 && cdb != 0;
}

/* How far the nearest of the four ends is from the other segment. */
static double crossing_depth(mesh_point a, mesh_point b, mesh_point c, mesh_point d)
{
    return fmin(fmin(pslg_distance(a, b, c), pslg_distance(a, b, d)),
                fmin(pslg_distance(c, d, a), pslg_distance(c, d, b)));
}

static int32_t rounded_coordinate(int32_t from, int32_t to, int64_t part, int64_t whole)
{
    mesh_wide at = ((mesh_wide)from + MESH_GRAIN / 2) * whole + ((mesh_wide)to - from) * part;
    return (int32_t)(at / ((mesh_wide)whole * MESH_GRAIN)) * MESH_GRAIN;
}

/* The multiple of a grain nearest to the place where a b crosses c d. */
static mesh_point crossing_point(mesh_point a, mesh_point b, mesh_point c, mesh_point d)
{
    int64_t part = mesh_orient(c, d, a), whole = part - mesh_orient(c, d, b);
    part = whole < 0 ? -part : part;
    whole = whole < 0 ? -whole : whole;
    return (mesh_point){rounded_coordinate(a.x, b.x, part, whole),
                        rounded_coordinate(a.y, b.y, part, whole)};
}

static int fail_crossing(const pslg_work *w, const pslg_link *s, const pslg_link *t, mesh_point at)
{
    const mesh_frame *f = &w->out->frame;
    int32_t first = s->line < t->line ? s->line : t->line;
    int32_t second = s->line < t->line ? t->line : s->line;
    return mesh_fail(w->log, "%s:%d: this segment crosses the one on line %d near (%.6g, %.6g)",
                     w->out->name, second, first, mesh_frame_x(f, at.x), mesh_frame_y(f, at.y));
}

static int add_crossing(crossings *c, const pslg_link *s, mesh_point at)
{
    int64_t limit = CROSSINGS_MAX + (int64_t)CROSSINGS_PER_SEGMENT * c->w->input.count;
    if (c->count >= limit) {
        return mesh_fail(c->w->log,
                         "%s:%d: this segment and others cross in more than %lld places by less "
                         "than %g; expected segments that do not cross",
                         c->w->out->name, s->line, (long long)limit,
                         MESH_GRAIN / c->w->out->frame.scale);
    }
    if (c->count == c->room) {
        int32_t more = 2 * c->room + 64;
        mesh_point *bigger = realloc(c->at, (size_t)more * sizeof *bigger);
        if (bigger == NULL) {
            return mesh_fail_memory(c->w->log);
        }
        c->at = bigger;
        c->room = more;
    }
    c->at[c->count++] = at;
    return 0;
}

static int visit_pair(void *arg, int32_t other)
{
    crossings *c = arg;
    if (other <= c->current) {
        return 0;
    }
    const pslg_work *w = c->w;
    const pslg_link *s = &w->input.at[c->current], *t = &w->input.at[other];
    mesh_point p = w->fine[s->a], q = w->fine[s->b], u = w->fine[t->a], v = w->fine[t->b];
    if (!crosses(p, q, u, v)) {
        return 0;
    }
    mesh_point at = crossing_point(p, q, u, v);
    return crossing_depth(p, q, u, v) > MESH_GRAIN ? fail_crossing(w, s, t, at)
                                                   : add_crossing(c, s, at);
}

static int by_place(const void *a, const void *b)
{
    const mesh_point *l = a, *r = b;
    return l->x != r->x ? (l->x < r->x ? -1 : 1) : (l->y > r->y) - (l->y < r->y);
}

/* The hot points of vertices are sorted by place. */
static int add_new_points(crossings *c)
{
    int32_t known = c->w->out->point_count;
    if (c->count == 0) {
        return 0;
    }
    mesh_note(c->w->log, "%s: segments cross by less than %g in %d places: joined there",
              c->w->out->name, MESH_GRAIN / c->w->out->frame.scale, c->count);
    qsort(c->at, (size_t)c->count, sizeof *c->at, by_place);
    for (int32_t i = 0; i < c->count; i++) {
        bool again = i > 0 && mesh_point_equal(c->at[i], c->at[i - 1]);
        if (!again &&
            bsearch(&c->at[i], c->w->out->point, (size_t)known, sizeof *c->at, by_place) == NULL) {
            if (pslg_add_point(c->w, c->at[i]) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int build_tree(pslg_work *w)
{
    mesh_box *box = malloc((size_t)w->input.count * sizeof *box);
    int rc = -1;
    if (box != NULL) {
        for (int32_t i = 0; i < w->input.count; i++) {
            const pslg_link *s = &w->input.at[i];
            box[i] = mesh_box_around(w->fine[s->a], w->fine[s->b]);
        }
        rc = mesh_box_tree_init(&w->tree, box, w->input.count);
    }
    free(box);
    return rc != 0 ? mesh_fail_memory(w->log) : 0;
}

int pslg_find_crossings(pslg_work *w)
{
    crossings c = {.w = w};
    int rc = build_tree(w);
    for (c.current = 0; rc == 0 && c.current < w->input.count; c.current++) {
        const pslg_link *s = &w->input.at[c.current];
        rc = mesh_box_tree_search(&w->tree, w->fine[s->a], w->fine[s->b], 0, visit_pair, &c);
    }
    rc = rc != 0 ? rc : add_new_points(&c);
    free(c.at);
    return rc;
}
