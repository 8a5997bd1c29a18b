/* Takes from the file: where the grid lies, vertices, rings, hole points. */
#include "pslg_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "union_find.h"

/* The input covers at most this many grains, which leaves a margin around it. */
#define SPAN_GRAINS ((1 << (MESH_COORD_BITS - MESH_GRAIN_BITS)) - 8192)
#define MARGIN_GRAINS 4096
/* Smaller inputs would need a scale that a double cannot hold. */
#define SPAN_MIN 1e-200
/* A hole point must be so far from walls, and from other segments, that it keeps its side. */
#define NEAR_GRAINS 4
#define NEAR_STEPS 4.0

int pslg_place_grid(const mesh_poly *poly, mesh_frame *frame, mesh_log *log)
{
    double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;
    for (int32_t i = 0; i < poly->segment_count; i++) {
        const mesh_poly_vertex *end[2] = {&poly->vertex[poly->segment[i].a],
                                          &poly->vertex[poly->segment[i].b]};
        for (int k = 0; k < 2; k++) {
            low_x = fmin(low_x, end[k]->x);
            low_y = fmin(low_y, end[k]->y);
            high_x = fmax(high_x, end[k]->x);
            high_y = fmax(high_y, end[k]->y);
        }
    }
    double span = fmax(high_x - low_x, high_y - low_y);
    double largest = fmax(fmax(fabs(low_x), fabs(high_x)), fmax(fabs(low_y), fabs(high_y)));
    /* Less than this is lost in the rounding of the coordinates themselves. */
    if (!(span > SPAN_MIN) || span < largest * 1e-9) {
        return mesh_fail(log, "%s: all segments lie within %g of one place", poly->name, span);
    }
    frame->scale = (double)SPAN_GRAINS * MESH_GRAIN / span;
    frame->x0 = low_x - MARGIN_GRAINS * (double)MESH_GRAIN / frame->scale;
    frame->y0 = low_y - MARGIN_GRAINS * (double)MESH_GRAIN / frame->scale;
    return 0;
}

/* The place of the grid that holds (x, y). Rounding it to a grain later gives the same as rounding
 * (x, y) itself. */
static mesh_point fine_place(const mesh_frame *f, double x, double y)
{
    double top = (double)((1 << MESH_COORD_BITS) - MESH_GRAIN);
    double gx = floor((x - f->x0) * f->scale), gy = floor((y - f->y0) * f->scale);
    return (mesh_point){(int32_t)fmin(fmax(gx, 0.0), top), (int32_t)fmin(fmax(gy, 0.0), top)};
}

typedef struct sorted_vertex {
    mesh_point hot, fine;
    int32_t index;
} sorted_vertex;

static int by_point(mesh_point l, mesh_point r)
{
    return l.x != r.x ? (l.x < r.x ? -1 : 1) : (l.y > r.y) - (l.y < r.y);
}

static int by_place(const void *a, const void *b)
{
    const sorted_vertex *l = a, *r = b;
    int hot = by_point(l->hot, r->hot), fine = by_point(l->fine, r->fine);
    return hot != 0 ? hot : fine != 0 ? fine : (l->index > r->index) - (l->index < r->index);
}

static void note_merged(const mesh_poly *poly, int32_t kept, int32_t dropped, int32_t *close,
                        mesh_log *log)
{
    const mesh_poly_vertex *a = &poly->vertex[kept], *b = &poly->vertex[dropped];
    if (a->x == b->x && a->y == b->y) {
        mesh_note(log, "%s:%d: the same point as on line %d (%g, %g): merged", poly->name, b->line,
                  a->line, b->x, b->y);
    } else {
        ++*close;
    }
}

static int32_t sort_vertices(const pslg_work *w, const mesh_poly *poly, const int32_t *same,
                             sorted_vertex *order)
{
    int32_t count = 0;
    for (int32_t i = 0; i < poly->vertex_count; i++) {
        if (same[i] >= 0) {
            mesh_point fine = fine_place(&w->out->frame, poly->vertex[i].x, poly->vertex[i].y);
            mesh_point hot = {pslg_to_grain(fine.x), pslg_to_grain(fine.y)};
            order[count++] = (sorted_vertex){hot, fine, i};
        }
    }
    qsort(order, (size_t)count, sizeof *order, by_place);
    return count;
}

/* Fills same[i] with the fine place of vertex i, or -1 if no segment uses it. */
static int merge_vertices(pslg_work *w, const mesh_poly *poly, sorted_vertex *order, int32_t *same)
{
    int32_t close = 0, count = sort_vertices(w, poly, same, order);
    w->fine = malloc((size_t)count * sizeof *w->fine);
    w->hot = malloc((size_t)count * sizeof *w->hot);
    if (w->fine == NULL || w->hot == NULL) {
        return mesh_fail_memory(w->log);
    }
    for (int32_t k = 0, first = 0; k < count; k++) {
        bool hot = k > 0 && mesh_point_equal(order[k].hot, order[k - 1].hot);
        bool fine = hot && mesh_point_equal(order[k].fine, order[k - 1].fine);
        if (hot) {
            int32_t like = fine ? order[k - 1].index : order[first].index;
            note_merged(poly, like, order[k].index, &close, w->log);
        } else {
            first = k;
            if (pslg_add_point(w, order[k].hot) < 0) {
                return -1;
            }
        }
        if (!fine) {
            w->fine[w->fine_count] = order[k].fine;
            w->hot[w->fine_count++] = w->out->point_count - 1;
        }
        same[order[k].index] = w->fine_count - 1;
    }
    if (close > 0) {
        mesh_note(w->log, "%s: %d points closer than %g to another: merged", poly->name, close,
                  MESH_GRAIN / w->out->frame.scale);
    }
    return 0;
}

typedef struct ring_group {
    int32_t segments, points, line;
    bool open; /* some point has an odd number of segments */
} ring_group;

/* A group of connected segments that closes on itself but has fewer than three distinct points is a
 * ring that encloses nothing; a hole in it would swallow what lies around it. `same` maps vertices
 * to distinct points. */
static int judge_rings(pslg_work *w, const mesh_poly *poly, const int32_t *same, int32_t *parent,
                       ring_group *group, int32_t *degree)
{
    int32_t points = w->fine_count;
    for (int32_t i = 0; i < points; i++) {
        parent[i] = i;
    }
    for (int32_t i = 0; i < poly->segment_count; i++) {
        int32_t a = same[poly->segment[i].a], b = same[poly->segment[i].b];
        parent[find_root(parent, a)] = find_root(parent, b);
        degree[a]++;
        degree[b]++;
    }
    for (int32_t i = 0; i < points; i++) {
        ring_group *g = &group[find_root(parent, i)];
        g->points++;
        g->open = g->open || degree[i] % 2 != 0;
    }
    for (int32_t i = poly->segment_count - 1; i >= 0; i--) {
        ring_group *g = &group[find_root(parent, same[poly->segment[i].a])];
        g->segments++;
        g->line = poly->segment[i].line;
    }
    for (int32_t i = 0; i < points; i++) {
        const ring_group *g = &group[i];
        if (g->segments > 0 && !g->open && g->points < 3) {
            return mesh_fail(
                w->log, "%s:%d: the ring that starts here has %d distinct point%s and needs three",
                poly->name, g->line, g->points, g->points == 1 ? "" : "s");
        }
    }
    return 0;
}

static int check_rings(pslg_work *w, const mesh_poly *poly, const int32_t *same)
{
    size_t count = (size_t)w->fine_count;
    int32_t *parent = calloc(count, sizeof *parent);
    int32_t *degree = calloc(count, sizeof *degree);
    ring_group *group = calloc(count, sizeof *group);
    int rc = parent == NULL || degree == NULL || group == NULL
                 ? mesh_fail_memory(w->log)
                 : judge_rings(w, poly, same, parent, group, degree);
    free(parent);
    free(degree);
    free(group);
    return rc;
}

/* Segments from `first` on that follow each other and close: how many, or 0. */
static int32_t ring_at(const mesh_poly *poly, int32_t first)
{
    const mesh_poly_segment *s = poly->segment;
    for (int32_t i = first; i < poly->segment_count; i++) {
        if (i > first && s[i].a != s[i - 1].b) {
            return 0;
        }
        if (s[i].b == s[first].a) {
            return i - first + 1;
        }
    }
    return 0;
}

/* The number of segments from `first` on that follow each other. */
static int32_t chain_at(const mesh_poly *poly, int32_t first)
{
    int32_t i = first + 1;
    while (i < poly->segment_count && poly->segment[i].a == poly->segment[i - 1].b) {
        i++;
    }
    return i - first;
}

static int take_links(pslg_work *w, const mesh_poly *poly, const int32_t *same, int32_t *rings)
{
    for (int32_t i = 0; i < poly->segment_count;) {
        int32_t count = ring_at(poly, i), ring = count > 0 ? (*rings)++ : -1;
        count = count > 0 ? count : chain_at(poly, i);
        for (int32_t end = i + count; i < end; i++) {
            const mesh_poly_segment *s = &poly->segment[i];
            const pslg_link link = {same[s->a], same[s->b], ring, s->line};
            if (link.a == link.b) {
                mesh_note(w->log, "%s:%d: a segment without length: dropped", poly->name, s->line);
            } else if (pslg_add_link(&w->input, link, w->log) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

int pslg_take_input(pslg_work *w, const mesh_poly *poly)
{
    size_t count = (size_t)poly->vertex_count;
    int32_t *same = malloc(count * sizeof *same), rings = 0;
    sorted_vertex *order = malloc(count * sizeof *order);
    int rc = same == NULL || order == NULL ? mesh_fail_memory(w->log) : 0;
    if (rc == 0) {
        memset(same, -1, count * sizeof *same);
        for (int32_t i = 0; i < poly->segment_count; i++) {
            same[poly->segment[i].a] = 0;
            same[poly->segment[i].b] = 0;
        }
        rc = merge_vertices(w, poly, order, same);
    }
    rc = rc != 0 ? rc : check_rings(w, poly, same);
    rc = rc != 0 ? rc : take_links(w, poly, same, &rings);
    if (rc == 0 && w->input.count == 0) {
        rc = mesh_fail(w->log, "%s: no segment has a length", poly->name);
    }
    rc = rc != 0 ? rc : pslg_rank_rings(w, rings);
    free(same);
    free(order);
    return rc;
}

typedef struct ranked_ring {
    double area;
    int32_t index;
} ranked_ring;

static int by_area(const void *a, const void *b)
{
    const ranked_ring *l = a, *r = b;
    return l->area != r->area ? (l->area > r->area ? -1 : 1)
                              : (l->index > r->index) - (l->index < r->index);
}

int pslg_rank_rings(pslg_work *w, int32_t rings)
{
    ranked_ring *ring = calloc((size_t)rings + 1, sizeof *ring);
    int32_t *rank = calloc((size_t)rings + 1, sizeof *rank);
    int rc = ring == NULL || rank == NULL ? mesh_fail_memory(w->log) : 0;
    w->out->ring_count = rings;
    for (int32_t i = 0; rc == 0 && i < w->input.count; i++) {
        const pslg_link *s = &w->input.at[i];
        if (s->ring >= 0) {
            mesh_point a = w->fine[s->a], b = w->fine[s->b];
            ring[s->ring].area += (double)a.x * b.y - (double)a.y * b.x;
        }
    }
    for (int32_t r = 0; rc == 0 && r < rings; r++) {
        ring[r] = (ranked_ring){fabs(ring[r].area), r};
    }
    if (rc == 0) {
        qsort(ring, (size_t)rings, sizeof *ring, by_area);
    }
    for (int32_t r = 0; rc == 0 && r < rings; r++) {
        rank[ring[r].index] = r;
    }
    for (int32_t i = 0; rc == 0 && i < w->input.count; i++) {
        int32_t *r = &w->input.at[i].ring;
        *r = *r >= 0 ? rank[*r] : -1;
    }
    free(ring);
    free(rank);
    return rc;
}

typedef struct ray {
    const pslg_work *w;
    mesh_point from;
    const bool *walled; /* rings that count as walls */
    int32_t *winding;   /* of each ring */
    int32_t on;         /* the line of a segment that the place lies on, or 0 */
} ray;

static int cross_ray(void *arg, int32_t link)
{
    ray *r = arg;
    const pslg_link *s = &r->w->input.at[link];
    mesh_point a = r->w->fine[s->a], b = r->w->fine[s->b], p = r->from;
    if (s->ring >= 0 && (a.y <= p.y) != (b.y <= p.y)) {
        bool up = a.y <= p.y;
        if ((mesh_orient(a, b, p) > 0) == up) {
            r->winding[s->ring] += up ? 1 : -1;
        }
    }
    return 0;
}

/* Rounding to the grid may move a segment to the other side of a place that is nearer than
 * NEAR_STEPS; snapping may move a wall past one that is nearer than NEAR_GRAINS. */
static int find_near(void *arg, int32_t link)
{
    ray *r = arg;
    const pslg_link *s = &r->w->input.at[link];
    bool wall = s->ring < 0 || r->walled[s->ring];
    double limit = wall ? NEAR_GRAINS * (double)MESH_GRAIN : NEAR_STEPS;
    r->on = s->line;
    return pslg_distance(r->w->fine[s->a], r->w->fine[s->b], r->from) < limit;
}

/* Finds the innermost ring around the hole. */
static int find_ring(ray *r, mesh_hole *hole)
{
    int32_t rings = r->w->out->ring_count;
    memset(r->winding, 0, (size_t)rings * sizeof *r->winding);
    r->from = hole->place;
    const mesh_point far = {(1 << MESH_COORD_BITS) - 1, hole->place.y};
    const mesh_box_tree *tree = &r->w->tree;
    if (mesh_box_tree_search(tree, hole->place, far, 0, cross_ray, r) != 0 ||
        mesh_box_tree_search(tree, hole->place, hole->place, NEAR_GRAINS * MESH_GRAIN, find_near,
                             r) != 0) {
        const mesh_frame *f = &r->w->out->frame;
        return mesh_fail(r->w->log,
                         "%s:%d: the hole at (%g, %g) lies on a segment, that of line %d",
                         r->w->out->name, hole->line, mesh_frame_x(f, hole->place.x),
                         mesh_frame_y(f, hole->place.y), r->on);
    }
    hole->ring = -1;
    for (int32_t k = 0; k < rings; k++) {
        hole->ring = r->winding[k] != 0 && !r->walled[k] ? k : hole->ring;
    }
    return 0;
}

/* Rings whose pieces became walls (pslg_merge) no longer cover anything. */
static bool *find_walled(const pslg_work *w)
{
    bool *walled = malloc(((size_t)w->out->ring_count + 1) * sizeof *walled);
    if (walled == NULL) {
        return NULL;
    }
    memset(walled, 0, (size_t)w->out->ring_count * sizeof *walled);
    for (int32_t i = 0; i < w->snapped.count; i++) {
        const pslg_link *s = &w->snapped.at[i];
        if (s->ring < -1) {
            walled[-2 - s->ring] = true;
        }
    }
    return walled;
}

int pslg_take_holes(pslg_work *w, const mesh_poly *poly)
{
    mesh_pslg *o = w->out;
    bool *walled = find_walled(w);
    ray r = {
        .w = w, .walled = walled, .winding = calloc((size_t)o->ring_count + 1, sizeof *r.winding)};
    o->hole = malloc(((size_t)poly->hole_count + 1) * sizeof *o->hole);
    int rc = walled == NULL || r.winding == NULL || o->hole == NULL ? mesh_fail_memory(w->log) : 0;
    double top = (double)((1 << MESH_COORD_BITS) - MESH_GRAIN);
    for (int32_t i = 0; rc == 0 && i < poly->hole_count; i++) {
        const mesh_poly_vertex *h = &poly->hole[i];
        double x = (h->x - o->frame.x0) * o->frame.scale, y = (h->y - o->frame.y0) * o->frame.scale;
        if (x < 1.0 || y < 1.0 || x >= top || y >= top) {
            mesh_note(w->log, "%s:%d: the hole at (%g, %g) lies outside everything: ignored",
                      poly->name, h->line, h->x, h->y);
            continue;
        }
        mesh_hole *hole = &o->hole[o->hole_count++];
        *hole = (mesh_hole){fine_place(&o->frame, h->x, h->y), h->line, -1};
        rc = find_ring(&r, hole);
    }
    free(walled);
    free(r.winding);
    return rc;
}
