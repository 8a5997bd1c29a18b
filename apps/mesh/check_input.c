/* Segments know the line of the file that they come from, and must lie near that segment. The check
 * tests places beside the file's segments, at distances from a few grains to the whole width. A
 * place must be land in the mesh if and only if it is land in the file. The file decides by the
 * rings that wind around the place, the innermost of them, and whether a hole point has the same
 * one. */
#include "check_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 64
#define TRIES 4
#define UNKNOWN 2 /* side of a ring that has vanished */

typedef struct place {
    double x, y;   /* of the file */
    mesh_point at; /* the nearest place of the grid */
    bool land;     /* in the file */
    bool covered;  /* in the mesh */
} place;

typedef struct comparison {
    const mesh_poly *poly;
    const mesh_pslg *pslg;
    const mesh_domain *domain;
    const mesh_table *table;
    int32_t ring_count;
    int32_t *ring; /* of each segment of the file, or -1 */
    double *area;  /* of each ring */
    bool *hole;    /* of each ring: a hole point lies in it */
    int8_t *side;  /* of each ring: 1 land on its left alone, -1 on its right
                      alone, 0 both or none */
    double *turns; /* scratch: of each ring, how often it winds around a place */
    uint32_t dice;
} comparison;

static double roll(comparison *c)
{
    c->dice = c->dice * 1664525u + 1013904223u;
    return (double)(c->dice >> 8) / (double)(1 << 24);
}

/* Numbers the chains of segments that close. Segments of other chains get -1.
 */
static bool find_rings(comparison *c)
{
    const mesh_poly_segment *s = c->poly->segment;
    int32_t count = c->poly->segment_count, open = 0;
    for (int32_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && s[end - 1].b != s[first].a && s[end].a == s[end - 1].b;
             end++) {
        }
        bool closed = s[end - 1].b == s[first].a;
        for (int32_t i = first; i < end; i++) {
            c->ring[i] = closed ? c->ring_count : -1;
        }
        open += !closed;
        c->ring_count += closed;
    }
    return open == 0;
}

static void measure_rings(comparison *c)
{
    const mesh_poly *p = c->poly;
    double x0 = p->vertex[p->segment[0].a].x, y0 = p->vertex[p->segment[0].a].y;
    for (int32_t i = 0; i < p->segment_count; i++) {
        const mesh_poly_vertex *a = &p->vertex[p->segment[i].a], *b = &p->vertex[p->segment[i].b];
        c->area[c->ring[i]] += (a->x - x0) * (b->y - y0) - (b->x - x0) * (a->y - y0);
    }
}

/* The innermost ring around a place, or -1. */
static int32_t innermost(const comparison *c, double x, double y)
{
    const mesh_poly *p = c->poly;
    int32_t best = -1;
    memset(c->turns, 0, (size_t)c->ring_count * sizeof *c->turns);
    for (int32_t i = 0; i < p->segment_count; i++) {
        const mesh_poly_vertex *a = &p->vertex[p->segment[i].a], *b = &p->vertex[p->segment[i].b];
        if ((a->y <= y) == (b->y <= y)) {
            continue;
        }
        double cross = (b->x - a->x) * (y - a->y) - (x - a->x) * (b->y - a->y);
        if ((cross > 0.0) == (a->y <= y)) {
            c->turns[c->ring[i]] += a->y <= y ? 1.0 : -1.0;
        }
    }
    for (int32_t r = 0; r < c->ring_count; r++) {
        if (c->turns[r] != 0.0 && (best < 0 || fabs(c->area[r]) <= fabs(c->area[best]))) {
            best = r;
        }
    }
    return best;
}

static void mark_holes(comparison *c)
{
    for (int32_t i = 0; i < c->poly->hole_count; i++) {
        int32_t ring = innermost(c, c->poly->hole[i].x, c->poly->hole[i].y);
        if (ring >= 0) {
            c->hole[ring] = true;
        }
    }
}

/* The distance of (x, y) from segment i of the file, in grains. */
static double grains_from(const comparison *c, int32_t i, double x, double y)
{
    const mesh_poly_segment *s = &c->poly->segment[i];
    const mesh_poly_vertex *a = &c->poly->vertex[s->a], *b = &c->poly->vertex[s->b];
    double ux = b->x - a->x, uy = b->y - a->y, u2 = ux * ux + uy * uy;
    double along = u2 > 0.0 ? ((x - a->x) * ux + (y - a->y) * uy) / u2 : 0.0;
    along = fmin(fmax(along, 0.0), 1.0);
    return hypot(a->x + along * ux - x, a->y + along * uy - y) * c->pslg->frame.scale / MESH_GRAIN;
}

static bool is_clear(const comparison *c, double x, double y)
{
    for (int32_t i = 0; i < c->poly->segment_count; i++) {
        if (grains_from(c, i, x, y) < MESH_MOVE_GRAINS) {
            return false;
        }
    }
    return true;
}

static bool on_grid(const comparison *c, double x, double y, mesh_point *at)
{
    const mesh_frame *f = &c->pslg->frame;
    double gx = floor((x - f->x0) * f->scale + 0.5), gy = floor((y - f->y0) * f->scale + 0.5);
    double top = (double)(1 << MESH_COORD_BITS);
    if (gx < 0.0 || gy < 0.0 || gx >= top || gy >= top) {
        return false;
    }
    *at = (mesh_point){(int32_t)gx, (int32_t)gy};
    return true;
}

/* A place beside a segment of the file, by dice. False when it is too near to
 * some segment. */
static bool find_place(comparison *c, place *out)
{
    const mesh_poly *p = c->poly;
    int32_t i = (int32_t)(roll(c) * p->segment_count);
    const mesh_poly_vertex *a = &p->vertex[p->segment[i].a], *b = &p->vertex[p->segment[i].b];
    double length = hypot(b->x - a->x, b->y - a->y), along = roll(c);
    double away = pow(2.0, 2.0 + 15.0 * roll(c)) * MESH_GRAIN / c->pslg->frame.scale;
    double side = roll(c) < 0.5 ? -away : away;
    if (!(length > 0.0)) {
        return false;
    }
    out->x = a->x + along * (b->x - a->x) - side * (b->y - a->y) / length;
    out->y = a->y + along * (b->y - a->y) + side * (b->x - a->x) / length;
    if (!on_grid(c, out->x, out->y, &out->at) || !is_clear(c, out->x, out->y)) {
        return false;
    }
    int32_t ring = innermost(c, out->x, out->y);
    out->land = ring >= 0 && !c->hole[ring];
    out->covered = false;
    return true;
}

static int64_t turn_of(mesh_point a, mesh_point b, mesh_point p)
{
    return ((int64_t)b.x - a.x) * ((int64_t)p.y - a.y) -
           ((int64_t)b.y - a.y) * ((int64_t)p.x - a.x);
}

static void find_covered(const comparison *c, place *at, int32_t count)
{
    const mesh_table *t = c->table;
    for (int64_t k = 0; k < t->tri_count; k++) {
        mesh_point u = t->point[t->corner[3 * k]], v = t->point[t->corner[3 * k + 1]];
        mesh_point w = t->point[t->corner[3 * k + 2]];
        for (int32_t i = 0; i < count; i++) {
            mesh_point p = at[i].at;
            if (turn_of(u, v, p) >= 0 && turn_of(v, w, p) >= 0 && turn_of(w, u, p) >= 0) {
                at[i].covered = true;
            }
        }
    }
}

static void compare_places(comparison *c, mesh_input_faults *out)
{
    place at[PLACES];
    mark_holes(c);
    for (int32_t tries = 0; tries < TRIES * PLACES && out->places < PLACES; tries++) {
        out->places += find_place(c, &at[out->places]) ? 1 : 0;
    }
    find_covered(c, at, out->places);
    for (int32_t i = 0; i < out->places; i++) {
        out->wrong += at[i].land != at[i].covered;
    }
}

/* The segment of the file on a line; segments are in the order of their lines.
 */
static int32_t segment_on(const mesh_poly *poly, int32_t line)
{
    int32_t low = 0, high = poly->segment_count - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (poly->segment[middle].line < line) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void compare_segments(const comparison *c, mesh_input_faults *out)
{
    const mesh_pslg *g = c->pslg;
    for (int32_t s = 0; s < g->segment_count; s++) {
        const mesh_point end[2] = {g->point[g->segment[s].a], g->point[g->segment[s].b]};
        int32_t from = segment_on(c->poly, g->segment[s].line);
        bool strayed = false;
        for (int k = 0; k < 2; k++) {
            double x = mesh_frame_x(&g->frame, end[k].x), y = mesh_frame_y(&g->frame, end[k].y);
            strayed = strayed || !(grains_from(c, from, x, y) < MESH_MOVE_GRAINS);
        }
        out->strayed += strayed;
    }
}

/* On which side of each ring the land is. False if that is not the same all
 * along a ring, or if rings share a segment: such areas are not measured. */
static bool find_sides(comparison *c)
{
    const mesh_pslg *g = c->pslg;
    memset(c->side, UNKNOWN, (size_t)c->ring_count);
    for (int32_t s = 0; s < g->segment_count; s++) {
        const mesh_cover *cover = &g->cover[g->segment[s].cover];
        if (g->segment[s].cover_count != 1 || abs(cover->net) != 1) {
            return false;
        }
        int32_t ring = c->ring[segment_on(c->poly, g->segment[s].line)];
        int side = (c->domain->filled[2 * s] - c->domain->filled[2 * s + 1]) * cover->net;
        if (c->side[ring] != UNKNOWN && c->side[ring] != side) {
            return false;
        }
        c->side[ring] = (int8_t)side;
    }
    return true;
}

/* Rings that have vanished count as they are: they are too small, or too thin,
 * to matter. */
static void measure_area(comparison *c, mesh_input_faults *out)
{
    const mesh_poly *p = c->poly;
    double scale = c->pslg->frame.scale, length = 0.0;
    out->measured = find_sides(c);
    for (int32_t r = 0; out->measured && r < c->ring_count; r++) {
        out->area2 += c->side[r] != UNKNOWN ? c->side[r] * c->area[r] * scale * scale : 0.0;
    }
    for (int32_t i = 0; i < p->segment_count; i++) {
        const mesh_poly_vertex *a = &p->vertex[p->segment[i].a], *b = &p->vertex[p->segment[i].b];
        length += hypot(b->x - a->x, b->y - a->y) * scale + MESH_GRAIN;
    }
    out->allowed2 = 2.0 * length * MESH_MOVE_GRAINS * MESH_GRAIN;
}

int mesh_check_against(const mesh_poly *poly, const mesh_pslg *pslg, const mesh_domain *domain,
                       const mesh_table *table, mesh_input_faults *out)
{
    size_t count = (size_t)poly->segment_count + 1;
    comparison c = {.poly = poly, .pslg = pslg, .domain = domain, .table = table, .dice = 1};
    *out = (mesh_input_faults){0};
    c.ring = malloc(count * sizeof *c.ring);
    c.area = calloc(count, sizeof *c.area);
    c.hole = calloc(count, sizeof *c.hole);
    c.turns = calloc(count, sizeof *c.turns);
    c.side = calloc(count, sizeof *c.side);
    int rc = c.ring == NULL || c.area == NULL || c.hole == NULL || c.turns == NULL || c.side == NULL
                 ? -1
                 : 0;
    if (rc == 0) {
        compare_segments(&c, out);
        out->walls = !find_rings(&c);
        if (!out->walls) {
            measure_rings(&c);
            compare_places(&c, out);
            measure_area(&c, out);
        }
    }
    free(c.ring);
    free(c.area);
    free(c.hole);
    free(c.turns);
    free(c.side);
    return rc;
}
