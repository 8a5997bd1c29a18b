/* Steps: place the grid; round; merge points; judge rings; drop segments that say nothing; split
 * where segments touch (pslg_cross.c); equal lengths at small angles (pslg_shell.c). */
#include "pslg_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The input covers at most this many grains, which leaves a margin around it. */
#define SPAN_GRAINS ((1 << (MESH_COORD_BITS - MESH_GRAIN_BITS)) - 8192)
#define MARGIN_GRAINS 4096

int32_t pslg_add_point(pslg_work *w, mesh_point p)
{
    mesh_pslg *o = w->out;
    if (o->point_count == w->point_room) {
        size_t more = 2 * (size_t)w->point_room + 16;
        mesh_point *point = realloc(o->point, more * sizeof *point);
        o->point = point != NULL ? point : o->point;
        mesh_point *fine = realloc(w->fine, more * sizeof *fine);
        w->fine = fine != NULL ? fine : w->fine;
        if (point == NULL || fine == NULL) {
            return mesh_fail_memory(w->log);
        }
        w->point_room = (int32_t)more;
    }
    o->point[o->point_count] = p;
    w->fine[o->point_count] = p;
    return o->point_count++;
}

int pslg_add_segment(pslg_work *w, mesh_segment s)
{
    mesh_pslg *o = w->out;
    if (o->segment_count == w->segment_room) {
        size_t more = 2 * (size_t)w->segment_room + 16;
        mesh_segment *segment = realloc(o->segment, more * sizeof *segment);
        if (segment == NULL) {
            return mesh_fail_memory(w->log);
        }
        o->segment = segment;
        w->segment_room = (int32_t)more;
    }
    o->segment[o->segment_count++] = s;
    return 0;
}

static int place_grid(const mesh_poly *poly, mesh_frame *frame, mesh_log *log)
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
    if (!(span > 0.0) || span < largest * 1e-9) {
        return mesh_fail(log, "%s: all segments lie within %g of one place", poly->name, span);
    }
    frame->scale = (double)SPAN_GRAINS * MESH_GRAIN / span;
    frame->x0 = low_x - MARGIN_GRAINS * (double)MESH_GRAIN / frame->scale;
    frame->y0 = low_y - MARGIN_GRAINS * (double)MESH_GRAIN / frame->scale;
    return 0;
}

static mesh_point round_to(const mesh_frame *f, double x, double y, int32_t grain)
{
    double top = (double)((1 << MESH_COORD_BITS) - MESH_GRAIN);
    double gx = floor((x - f->x0) * f->scale / grain + 0.5) * grain;
    double gy = floor((y - f->y0) * f->scale / grain + 0.5) * grain;
    gx = fmin(fmax(gx, 0.0), top);
    gy = fmin(fmax(gy, 0.0), top);
    return (mesh_point){(int32_t)gx, (int32_t)gy};
}

typedef struct sorted_point {
    mesh_point p;
    int32_t index;
} sorted_point;

static int by_place(const void *a, const void *b)
{
    const sorted_point *l = a, *r = b;
    if (l->p.x != r->p.x) {
        return l->p.x < r->p.x ? -1 : 1;
    }
    if (l->p.y != r->p.y) {
        return l->p.y < r->p.y ? -1 : 1;
    }
    return (l->index > r->index) - (l->index < r->index);
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

/* Fills same[i] with the clean point of vertex i, or -1 if no segment uses it. */
static int merge_points(pslg_work *w, const mesh_poly *poly, sorted_point *order, int32_t *same)
{
    int32_t close = 0, count = 0;
    for (int32_t i = 0; i < poly->vertex_count; i++) {
        if (same[i] >= 0) {
            const mesh_poly_vertex *v = &poly->vertex[i];
            order[count++] = (sorted_point){round_to(&w->out->frame, v->x, v->y, MESH_GRAIN), i};
        }
    }
    qsort(order, (size_t)count, sizeof *order, by_place);
    for (int32_t k = 0, first = 0; k < count; k++) {
        int32_t i = order[k].index;
        if (k > 0 && mesh_point_equal(order[k].p, order[first].p)) {
            same[i] = same[order[first].index];
            note_merged(poly, order[first].index, i, &close, w->log);
            continue;
        }
        first = k;
        same[i] = pslg_add_point(w, order[k].p);
        if (same[i] < 0) {
            return -1;
        }
        w->fine[same[i]] = round_to(&w->out->frame, poly->vertex[i].x, poly->vertex[i].y, 1);
    }
    if (close > 0) {
        mesh_note(w->log, "%s: %d points closer than %g to another: merged", poly->name, close,
                  MESH_GRAIN / w->out->frame.scale);
    }
    return 0;
}

static int32_t find_root(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

typedef struct ring {
    int32_t segments, points, line;
    bool open; /* some point has an odd number of segments */
} ring;

/* A group of connected segments that closes on itself but has fewer than three distinct points is a
 * ring that encloses nothing; a hole in it would swallow what lies around it. `same` maps vertices
 * to distinct points. */
static int judge_rings(pslg_work *w, const mesh_poly *poly, const int32_t *same, int32_t *parent,
                       ring *group, int32_t *degree)
{
    int32_t points = w->out->point_count;
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
        ring *g = &group[find_root(parent, i)];
        g->points++;
        g->open = g->open || degree[i] % 2 != 0;
    }
    for (int32_t i = poly->segment_count - 1; i >= 0; i--) {
        ring *g = &group[find_root(parent, same[poly->segment[i].a])];
        g->segments++;
        g->line = poly->segment[i].line;
    }
    for (int32_t i = 0; i < points; i++) {
        const ring *g = &group[i];
        if (g->segments > 0 && !g->open && g->points < 3) {
            return mesh_fail(
                w->log,
                "%s:%d: the ring that starts here has %d distinct point%s (closer than "
                "%g counts as one); it needs three",
                poly->name, g->line, g->points, g->points == 1 ? "" : "s",
                MESH_GRAIN / w->out->frame.scale);
        }
    }
    return 0;
}

static int check_rings(pslg_work *w, const mesh_poly *poly, const int32_t *same)
{
    size_t count = (size_t)w->out->point_count;
    int32_t *parent = calloc(count, sizeof *parent);
    int32_t *degree = calloc(count, sizeof *degree);
    ring *group = calloc(count, sizeof *group);
    int rc = parent == NULL || degree == NULL || group == NULL
                 ? mesh_fail_memory(w->log)
                 : judge_rings(w, poly, same, parent, group, degree);
    free(parent);
    free(degree);
    free(group);
    return rc;
}

static int take_segments(pslg_work *w, const mesh_poly *poly)
{
    size_t count = (size_t)poly->vertex_count;
    int32_t *same = malloc(count * sizeof *same);
    sorted_point *order = malloc(count * sizeof *order);
    int rc = same == NULL || order == NULL ? mesh_fail_memory(w->log) : 0;
    if (rc == 0) {
        memset(same, -1, count * sizeof *same);
        for (int32_t i = 0; i < poly->segment_count; i++) {
            same[poly->segment[i].a] = 0;
            same[poly->segment[i].b] = 0;
        }
        rc = merge_points(w, poly, order, same);
    }
    rc = rc != 0 ? rc : check_rings(w, poly, same);
    for (int32_t i = 0; rc == 0 && i < poly->segment_count; i++) {
        const mesh_poly_segment *s = &poly->segment[i];
        rc = pslg_add_segment(w, (mesh_segment){same[s->a], same[s->b], s->line});
    }
    free(same);
    free(order);
    return rc;
}

static int take_holes(pslg_work *w, const mesh_poly *poly)
{
    mesh_pslg *o = w->out;
    o->hole = malloc(((size_t)poly->hole_count + 1) * sizeof *o->hole);
    o->hole_line = malloc(((size_t)poly->hole_count + 1) * sizeof *o->hole_line);
    if (o->hole == NULL || o->hole_line == NULL) {
        return mesh_fail_memory(w->log);
    }
    double top = (double)((1 << MESH_COORD_BITS) - MESH_GRAIN);
    for (int32_t i = 0; i < poly->hole_count; i++) {
        const mesh_poly_vertex *h = &poly->hole[i];
        double x = (h->x - o->frame.x0) * o->frame.scale, y = (h->y - o->frame.y0) * o->frame.scale;
        if (x < 1.0 || y < 1.0 || x >= top || y >= top) {
            mesh_note(w->log, "%s:%d: the hole at (%g, %g) lies outside everything: ignored",
                      poly->name, h->line, h->x, h->y);
            continue;
        }
        o->hole[o->hole_count] = round_to(&o->frame, h->x, h->y, 1);
        o->hole_line[o->hole_count++] = h->line;
    }
    return 0;
}

typedef struct sorted_segment {
    int32_t low, high, index;
} sorted_segment;

static int by_ends(const void *a, const void *b)
{
    const sorted_segment *l = a, *r = b;
    if (l->low != r->low) {
        return l->low < r->low ? -1 : 1;
    }
    if (l->high != r->high) {
        return l->high < r->high ? -1 : 1;
    }
    return (l->index > r->index) - (l->index < r->index);
}

int pslg_drop_copies(pslg_work *w)
{
    mesh_pslg *o = w->out;
    mesh_log *log = w->log;
    sorted_segment *order = malloc(((size_t)o->segment_count + 1) * sizeof *order);
    if (order == NULL) {
        return mesh_fail_memory(w->log);
    }
    for (int32_t i = 0; i < o->segment_count; i++) {
        int32_t a = o->segment[i].a, b = o->segment[i].b;
        order[i] = (sorted_segment){a < b ? a : b, a < b ? b : a, i};
    }
    qsort(order, (size_t)o->segment_count, sizeof *order, by_ends);
    for (int32_t k = 0, first = 0; k < o->segment_count; k++) {
        mesh_segment *s = &o->segment[order[k].index];
        if (order[k].low == order[k].high) {
            mesh_note(log, "%s:%d: a segment without length: dropped", o->name, s->line);
            s->a = -1;
        } else if (k > 0 && order[k].low == order[first].low &&
                   order[k].high == order[first].high) {
            mesh_note(log, "%s:%d: the same segment as on line %d: dropped", o->name, s->line,
                      o->segment[order[first].index].line);
            s->a = -1;
        } else {
            first = k;
        }
    }
    free(order);
    int32_t kept = 0;
    for (int32_t i = 0; i < o->segment_count; i++) {
        if (o->segment[i].a >= 0) {
            o->segment[kept++] = o->segment[i];
        }
    }
    o->segment_count = kept;
    return 0;
}

int mesh_pslg_create(const mesh_poly *poly, mesh_pslg *out, mesh_log *log)
{
    pslg_work w = {out, NULL, 0, 0, log};
    *out = (mesh_pslg){0};
    size_t length = strlen(poly->name) + 1;
    out->name = malloc(length);
    int rc = out->name == NULL ? mesh_fail_memory(log) : 0;
    if (rc == 0) {
        memcpy(out->name, poly->name, length);
        rc = place_grid(poly, &out->frame, log);
    }
    rc = rc != 0 ? rc : take_segments(&w, poly);
    rc = rc != 0 ? rc : take_holes(&w, poly);
    rc = rc != 0 ? rc : pslg_drop_copies(&w);
    rc = rc != 0 ? rc : pslg_uncross(&w, false);
    if (rc == 0 && out->segment_count < 3) {
        rc = mesh_fail(log, "%s: %d segments are left; they enclose nothing", poly->name,
                       out->segment_count);
    }
    rc = rc != 0 ? rc : pslg_make_shells(&w);
    free(w.fine);
    if (rc != 0) {
        mesh_pslg_fini(out);
    }
    return rc;
}

void mesh_pslg_fini(mesh_pslg *pslg)
{
    free(pslg->point);
    free(pslg->segment);
    free(pslg->hole);
    free(pslg->hole_line);
    free(pslg->name);
    *pslg = (mesh_pslg){0};
}

int mesh_sizing_make(const mesh_frame *frame, double size, const mesh_feature *feature,
                     int32_t count, mesh_sizing *out, mesh_log *log)
{
    if (!isfinite(size) || size <= 0.0) {
        return mesh_fail(log, "the size is %g, not a positive length", size);
    }
    if (count < 0 || count > MESH_FEATURES_MAX) {
        return mesh_fail(log, "%d features; at most %d are possible", count, MESH_FEATURES_MAX);
    }
    mesh_sizing s = {.size = size * frame->scale, .feature_count = count};
    for (int32_t i = 0; i < count; i++) {
        const mesh_feature *f = &feature[i];
        if (!isfinite(f->x) || !isfinite(f->y) || !isfinite(f->radius) || f->radius < 0.0 ||
            !isfinite(f->factor) || f->factor < 1.0) {
            return mesh_fail(
                log, "feature %g,%g,%g,%g: the radius must be at least 0, the factor at least 1",
                f->x, f->y, f->radius, f->factor);
        }
        s.feature[i] =
            (mesh_feature){(f->x - frame->x0) * frame->scale, (f->y - frame->y0) * frame->scale,
                           f->radius * frame->scale, f->factor};
    }
    *out = s;
    return 0;
}
