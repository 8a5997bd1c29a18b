/* Finds segments that touch or cross, with the help of a grid of cells, and repairs them round by
 * round. A segment with another's end on it is split there. A crossing is an error if the input
 * itself crosses; if rounding made it, one end has come within a grain of the other segment, which
 * is led through that end. */
#include "pslg_work.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDS_MAX 64
#define CELLS_SIDE_MAX 1024

typedef struct cells {
    int32_t side; /* cells per row */
    int32_t cell_size;
    int32_t *start; /* of each cell's list */
    int32_t *item;
} cells;

/* Calls `visit` for each cell that the segment's bounding strip in a row of cells touches. */
static void visit_cells(const cells *c, mesh_point a, mesh_point b,
                        void (*visit)(const cells *, int32_t cell, int32_t item, int32_t *fill),
                        int32_t item, int32_t *fill)
{
    if (a.y > b.y) {
        mesh_point swap = a;
        a = b;
        b = swap;
    }
    for (int32_t row = a.y / c->cell_size; row <= b.y / c->cell_size; row++) {
        double low = fmax((double)row * c->cell_size - 2.0, a.y);
        double high = fmin((double)(row + 1) * c->cell_size + 2.0, b.y);
        double slope = b.y > a.y ? ((double)b.x - a.x) / ((double)b.y - a.y) : 0.0;
        double x0 = b.y > a.y ? a.x + slope * (low - a.y) : a.x;
        double x1 = b.y > a.y ? a.x + slope * (high - a.y) : b.x;
        /* Two units of slack make up for the rounding of this estimate. */
        int32_t from = (int32_t)fmax((fmin(x0, x1) - 2.0) / c->cell_size, 0.0);
        int32_t to = (int32_t)fmin((fmax(x0, x1) + 2.0) / c->cell_size, c->side - 1);
        for (int32_t column = from; column <= to; column++) {
            visit(c, row * c->side + column, item, fill);
        }
    }
}

static void count_item(const cells *c, int32_t cell, int32_t item, int32_t *fill)
{
    (void)item;
    (void)fill;
    c->start[cell + 1]++;
}

static void store_item(const cells *c, int32_t cell, int32_t item, int32_t *fill)
{
    c->item[c->start[cell] + fill[cell]++] = item;
}

static int make_cells(const mesh_pslg *o, cells *c)
{
    int32_t side = (int32_t)sqrt((double)o->segment_count) + 1;
    c->side = side > CELLS_SIDE_MAX ? CELLS_SIDE_MAX : side;
    c->cell_size = (1 << MESH_COORD_BITS) / c->side + 1;
    size_t count = (size_t)c->side * (size_t)c->side;
    c->item = NULL;
    c->start = calloc(count + 1, sizeof *c->start);
    int32_t *fill = calloc(count, sizeof *fill);
    if (c->start != NULL && fill != NULL) {
        for (int32_t i = 0; i < o->segment_count; i++) {
            visit_cells(c, o->point[o->segment[i].a], o->point[o->segment[i].b], count_item, i,
                        fill);
        }
        for (size_t i = 0; i < count; i++) {
            c->start[i + 1] += c->start[i];
        }
        c->item = malloc(((size_t)c->start[count] + 1) * sizeof *c->item);
    }
    if (c->item == NULL) {
        free(c->start);
        free(fill);
        return -1;
    }
    for (int32_t i = 0; i < o->segment_count; i++) {
        visit_cells(c, o->point[o->segment[i].a], o->point[o->segment[i].b], store_item, i, fill);
    }
    free(fill);
    return 0;
}

/* True when p lies on segment a b but is none of its ends. */
static bool lies_on(mesh_point a, mesh_point b, mesh_point p)
{
    return mesh_orient(a, b, p) == 0 && mesh_dot(a, b, p) < 0;
}

static bool crosses(mesh_point a, mesh_point b, mesh_point c, mesh_point d)
{
    int64_t abc = mesh_orient(a, b, c), abd = mesh_orient(a, b, d);
    int64_t cda = mesh_orient(c, d, a), cdb = mesh_orient(c, d, b);
    return ((abc < 0) != (abd < 0)) && ((cda < 0) != (cdb < 0)) && abc != 0 && abd != 0 &&
           cda != 0 && cdb != 0;
}

static double distance_to(mesh_point a, mesh_point b, mesh_point p)
{
    double length = sqrt((double)mesh_length2(a, b));
    double along = length > 0.0
                       ? ((double)(b.x - a.x) * (p.x - a.x) + (double)(b.y - a.y) * (p.y - a.y)) /
                             (length * length)
                       : 0.0;
    along = fmin(fmax(along, 0.0), 1.0);
    double x = a.x + along * (b.x - a.x) - p.x, y = a.y + along * (b.y - a.y) - p.y;
    return sqrt(x * x + y * y);
}

typedef struct meeting {
    int32_t split; /* the segment to split, or -1 */
    int32_t at;    /* the point to lead it through */
} meeting;

/* The end of either segment nearest to the other. */
static meeting nearest_end(const mesh_point *p, const mesh_segment *s, int32_t i, int32_t j,
                           double *away)
{
    const int32_t end[4] = {s[j].a, s[j].b, s[i].a, s[i].b};
    meeting best = {-1, -1};
    *away = INFINITY;
    for (int k = 0; k < 4; k++) {
        int32_t other = k < 2 ? i : j;
        double d = distance_to(p[s[other].a], p[s[other].b], p[end[k]]);
        if (d < *away) {
            *away = d;
            best = (meeting){other, end[k]};
        }
    }
    return best;
}

static int fail_crossing(const pslg_work *w, int32_t i, int32_t j)
{
    const mesh_pslg *o = w->out;
    const mesh_segment *s = o->segment;
    const mesh_point *p = o->point;
    double ax = p[s[i].a].x, ay = p[s[i].a].y, bx = p[s[i].b].x, by = p[s[i].b].y;
    double from = fabs((double)mesh_orient(p[s[j].a], p[s[j].b], p[s[i].a]));
    double to = fabs((double)mesh_orient(p[s[j].a], p[s[j].b], p[s[i].b]));
    double t = from / (from + to);
    int32_t first = s[i].line < s[j].line ? s[i].line : s[j].line;
    int32_t second = s[i].line < s[j].line ? s[j].line : s[i].line;
    return mesh_fail(w->log, "%s:%d: this segment crosses the one on line %d near (%.6g, %.6g)",
                     o->name, second, first, o->frame.x0 + (ax + t * (bx - ax)) / o->frame.scale,
                     o->frame.y0 + (ay + t * (by - ay)) / o->frame.scale);
}

/* How segments i and j meet. Returns 0, or -1 if the input crosses itself there. */
static int judge_pair(const pslg_work *w, int32_t i, int32_t j, meeting *m)
{
    const mesh_segment *s = w->out->segment;
    const mesh_point *p = w->out->point;
    const int32_t end[4] = {s[j].a, s[j].b, s[i].a, s[i].b};
    *m = (meeting){-1, -1};
    for (int k = 0; k < 4; k++) {
        int32_t other = k < 2 ? i : j;
        if (end[k] != s[other].a && end[k] != s[other].b &&
            lies_on(p[s[other].a], p[s[other].b], p[end[k]])) {
            *m = (meeting){other, end[k]};
            return 0;
        }
    }
    if (!crosses(p[s[i].a], p[s[i].b], p[s[j].a], p[s[j].b])) {
        return 0;
    }
    double away, fine_away;
    (void)nearest_end(w->fine, s, i, j, &fine_away);
    *m = nearest_end(p, s, i, j, &away);
    bool input_crosses =
        crosses(w->fine[s[i].a], w->fine[s[i].b], w->fine[s[j].a], w->fine[s[j].b]);
    if ((input_crosses && fine_away > 4.0) || away > 2.0 * MESH_GRAIN || m->at == s[m->split].a ||
        m->at == s[m->split].b) {
        return fail_crossing(w, i, j);
    }
    return 0;
}

/* Notes for each segment a point to split it at; returns how many segments, or -1. */
static int32_t find_splits(const pslg_work *w, const cells *c, int32_t *split_at)
{
    int32_t found = 0, count = c->side * c->side;
    for (int32_t i = 0; i < w->out->segment_count; i++) {
        split_at[i] = -1;
    }
    for (int32_t cell = 0; cell < count; cell++) {
        for (int32_t k = c->start[cell]; k < c->start[cell + 1]; k++) {
            for (int32_t l = c->start[cell]; l < k; l++) {
                meeting m;
                if (judge_pair(w, c->item[k], c->item[l], &m) != 0) {
                    return -1;
                }
                if (m.split >= 0 && split_at[m.split] < 0) {
                    split_at[m.split] = m.at;
                    found++;
                }
            }
        }
    }
    return found;
}

static int apply_splits(pslg_work *w, const int32_t *split_at)
{
    mesh_pslg *o = w->out;
    int32_t count = o->segment_count;
    for (int32_t i = 0; i < count; i++) {
        if (split_at[i] < 0) {
            continue;
        }
        mesh_segment *s = &o->segment[i];
        mesh_point p = o->point[split_at[i]];
        mesh_note(w->log, "%s:%d: this segment passes through the point (%.6g, %.6g): split there",
                  o->name, s->line, mesh_frame_x(&o->frame, p.x), mesh_frame_y(&o->frame, p.y));
        mesh_segment rest = {split_at[i], s->b, s->line};
        s->b = split_at[i];
        if (pslg_add_segment(w, rest) != 0) {
            return -1;
        }
    }
    return pslg_drop_copies(w);
}

/* One round; returns the number of segments split, or -1. */
static int32_t uncross_once(pslg_work *w, bool strict)
{
    cells c;
    int32_t *split_at = malloc(((size_t)w->out->segment_count + 1) * sizeof *split_at);
    if (split_at == NULL || make_cells(w->out, &c) != 0) {
        free(split_at);
        return mesh_fail_memory(w->log);
    }
    int32_t found = find_splits(w, &c, split_at);
    if (found > 0 && !strict && apply_splits(w, split_at) != 0) {
        found = -1;
    }
    free(split_at);
    free(c.start);
    free(c.item);
    return found;
}

int pslg_uncross(pslg_work *w, bool strict)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        int32_t found = uncross_once(w, strict);
        if (found <= 0 || strict) {
            return found == 0 ? 0 : -1;
        }
    }
    return mesh_fail(w->log, "%s: the input is too fine for a grid of %g: repairs do not end",
                     w->out->name, MESH_GRAIN / w->out->frame.scale);
}
