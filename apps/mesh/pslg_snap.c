/* Snap rounding (Hobby; Guibas and Marimont), in exact integers.
 *
 * A hot point is the centre of a square whose side is a grain. A segment that passes through the
 * square is led through the point. Every end and every crossing of segments lies in the square of a
 * hot point. So the pieces between hot points touch in common ends alone: a segment may come to lie
 * on another one, but never crosses over a point or a segment.
 *
 * A piece may pass near a hot point whose square the whole segment missed. Further rounds lead the
 * pieces through the squares that they pass, until none does, or to the last round. Each round
 * moves a segment by less than a grain, and what it leaves is clean in any case. */
#include "pslg_work.h"

#include <stdlib.h>

#define ROUNDS_MAX 4

/* The part of a segment, from 0 at its start to 1 at its end, inside a square. Fractions have
 * numerators and denominators below 2^31. */
typedef struct limit {
    int64_t part, whole; /* whole > 0 */
    bool open;           /* the limit itself lies outside */
} limit;

typedef struct range {
    limit from, to;
} range;

static int compare(limit a, limit b)
{
    int64_t l = a.part * b.whole, r = b.part * a.whole;
    return (l > r) - (l < r);
}

static void raise_from(range *r, limit l)
{
    int order = compare(l, r->from);
    if (order > 0 || (order == 0 && l.open)) {
        r->from = l;
    }
}

static void lower_to(range *r, limit l)
{
    int order = compare(l, r->to);
    if (order < 0 || (order == 0 && l.open)) {
        r->to = l;
    }
}

/* Keeps of the range where low <= at + t * way < high. */
static bool clip(range *r, int64_t at, int64_t way, int64_t low, int64_t high)
{
    if (way == 0) {
        return low <= at && at < high;
    }
    if (way > 0) {
        raise_from(r, (limit){low - at, way, false});
        lower_to(r, (limit){high - at, way, true});
    } else {
        raise_from(r, (limit){at - high, -way, true});
        lower_to(r, (limit){at - low, -way, false});
    }
    return true;
}

/* True when segment a b passes through the square of hot point p. The lower and left sides belong
 * to the square, as in rounding. */
static bool passes(mesh_point a, mesh_point b, mesh_point p)
{
    const int32_t half = MESH_GRAIN / 2;
    range r = {{0, 1, false}, {1, 1, false}};
    if (!clip(&r, a.x, (int64_t)b.x - a.x, p.x - half, p.x + half) ||
        !clip(&r, a.y, (int64_t)b.y - a.y, p.y - half, p.y + half)) {
        return false;
    }
    int order = compare(r.from, r.to);
    return order < 0 || (order == 0 && !r.from.open && !r.to.open);
}

typedef struct passed {
    int64_t along;
    int32_t point;
} passed;

typedef struct router {
    pslg_work *w;
    mesh_point a, b;     /* the segment */
    int32_t first, last; /* the hot points of its ends */
    passed *found;
    int32_t count, room;
    bool split; /* some segment was led through a point */
} router;

static int visit_point(void *arg, int32_t p)
{
    router *r = arg;
    const mesh_point at = r->w->out->point[p];
    if (p == r->first || p == r->last || !passes(r->a, r->b, at)) {
        return 0;
    }
    if (r->count == r->room) {
        int32_t more = 2 * r->room + 16;
        passed *bigger = realloc(r->found, (size_t)more * sizeof *bigger);
        if (bigger == NULL) {
            return mesh_fail_memory(r->w->log);
        }
        r->found = bigger;
        r->room = more;
    }
    /* A straight segment meets its squares in the order of this sum: both coordinates of their
     * centres go one way only. */
    int64_t x = r->b.x < r->a.x ? -(int64_t)at.x : at.x;
    int64_t y = r->b.y < r->a.y ? -(int64_t)at.y : at.y;
    r->found[r->count++] = (passed){x + y, p};
    return 0;
}

static int by_way(const void *a, const void *b)
{
    const passed *l = a, *r = b;
    return l->along != r->along ? (l->along < r->along ? -1 : 1)
                                : (l->point > r->point) - (l->point < r->point);
}

static void note_passed(const router *r, const pslg_link *s)
{
    const mesh_frame *f = &r->w->out->frame;
    for (int32_t i = 0; i < r->count; i++) {
        mesh_point at = r->w->out->point[r->found[i].point];
        mesh_note(r->w->log,
                  "%s:%d: this segment passes through the point (%.6g, %.6g): split there",
                  r->w->out->name, s->line, mesh_frame_x(f, at.x), mesh_frame_y(f, at.y));
    }
}

/* Leads one segment through the hot points whose squares it passes. */
static int route(router *r, const mesh_box_tree *tree, const pslg_link *s, pslg_links *to)
{
    r->count = 0;
    if (mesh_box_tree_search(tree, r->a, r->b, MESH_GRAIN, visit_point, r) != 0) {
        return -1;
    }
    if (r->count > 1) {
        qsort(r->found, (size_t)r->count, sizeof *r->found, by_way);
    }
    note_passed(r, s);
    r->split = r->split || r->count > 0;
    int32_t from = r->first;
    for (int32_t i = 0; i <= r->count; i++) {
        int32_t next = i < r->count ? r->found[i].point : r->last;
        if (next != from &&
            pslg_add_link(to, (pslg_link){from, next, s->ring, s->line}, r->w->log) != 0) {
            return -1;
        }
        from = next;
    }
    return 0;
}

/* The first round leads the input's segments from their fine places, later ones the pieces. */
static int route_all(router *r, const mesh_box_tree *tree, bool fine)
{
    pslg_work *w = r->w;
    const pslg_links *from = fine ? &w->input : &w->snapped;
    const mesh_point *place = fine ? w->fine : w->out->point;
    pslg_links to = {0};
    int rc = 0;
    r->split = false;
    for (int32_t i = 0; rc == 0 && i < from->count; i++) {
        const pslg_link *s = &from->at[i];
        r->a = place[s->a];
        r->b = place[s->b];
        r->first = fine ? w->hot[s->a] : s->a;
        r->last = fine ? w->hot[s->b] : s->b;
        rc = route(r, tree, s, &to);
    }
    free(w->snapped.at);
    w->snapped = to;
    return rc;
}

static int build_tree(const pslg_work *w, mesh_box_tree *tree)
{
    const mesh_pslg *o = w->out;
    mesh_box *box = malloc((size_t)o->point_count * sizeof *box);
    int rc = -1;
    if (box != NULL) {
        for (int32_t i = 0; i < o->point_count; i++) {
            box[i] = (mesh_box){o->point[i], o->point[i]};
        }
        rc = mesh_box_tree_init(tree, box, o->point_count);
    }
    free(box);
    return rc != 0 ? mesh_fail_memory(w->log) : 0;
}

int pslg_snap(pslg_work *w)
{
    mesh_box_tree tree = {0};
    router r = {.w = w};
    int rc = build_tree(w, &tree);
    rc = rc != 0 ? rc : route_all(&r, &tree, true);
    for (int round = 1; rc == 0 && r.split && round < ROUNDS_MAX; round++) {
        rc = route_all(&r, &tree, false);
    }
    free(r.found);
    mesh_box_tree_fini(&tree);
    return rc;
}
