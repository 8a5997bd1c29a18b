/* Where two segments meet at a small angle, refinement halves one, then the other, and so on
 * without end unless the pieces at the corner become equally long (the concentric shells of
 * Ruppert's paper). Midpoints alone never make them equal, so it is done here, once, before any
 * tree of midpoints begins: the segments at such a corner are cut at a common distance. The cut is
 * a multiple of MESH_GRAIN, and so bends the segment by at most half a grain, as snapping does. */
#include "pslg_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHELL_GRAINS_MIN 4.0
#define SHELL_TRIES 48

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

static int cut_spoke(pslg_work *w, int32_t corner, const spoke *s, double distance)
{
    mesh_pslg *o = w->out;
    mesh_point at;
    (void)rounded_length(s, distance, &at);
    int32_t p =
        pslg_add_point(w, (mesh_point){o->point[corner].x + at.x, o->point[corner].y + at.y});
    if (p < 0) {
        return -1;
    }
    mesh_segment *whole = &o->segment[s->segment];
    mesh_segment rest = {s->outward ? p : whole->a, s->outward ? whole->b : p, whole->line};
    whole->a = s->outward ? corner : p;
    whole->b = s->outward ? p : corner;
    return pslg_add_segment(w, rest);
}

static int shell_corner(pslg_work *w, int32_t corner, spoke *s, int32_t count, int32_t *skipped)
{
    qsort(s, (size_t)count, sizeof *s, by_direction);
    double shortest = mark_sharp(s, count);
    if (shortest == 0.0) {
        return 0;
    }
    double distance = choose_distance(s, count, shortest);
    if (distance < SHELL_GRAINS_MIN * MESH_GRAIN) {
        ++*skipped;
        return 0;
    }
    for (int32_t i = 0; i < count; i++) {
        if (s[i].sharp && cut_spoke(w, corner, &s[i], distance) != 0) {
            return -1;
        }
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

static int shell_all(pslg_work *w, const int32_t *start, int32_t *list, int32_t *skipped)
{
    mesh_pslg *o = w->out;
    int32_t points = o->point_count, most = 0;
    int rc = 0;
    for (int32_t p = 0; p < points; p++) {
        int32_t count = start[p + 1] - start[p];
        most = count > most ? count : most;
    }
    spoke *s = malloc(((size_t)most + 1) * sizeof *s);
    if (s == NULL) {
        return mesh_fail_memory(w->log);
    }
    for (int32_t p = 0; rc == 0 && p < points; p++) {
        int32_t count = start[p + 1] - start[p], before = o->segment_count;
        for (int32_t i = 0; i < count; i++) {
            aim_spoke(o, p, list[start[p] + i], &s[i]);
        }
        rc = shell_corner(w, p, s, count, skipped);
        for (int32_t k = before; rc == 0 && k < o->segment_count; k++) {
            tell_far_end(o, k, points, start, list);
        }
    }
    free(s);
    return rc;
}

int pslg_make_shells(pslg_work *w)
{
    mesh_pslg *o = w->out;
    int32_t *start = NULL, *list = NULL, points = o->point_count, segments = o->segment_count;
    int32_t skipped = 0;
    mesh_segment *backup = malloc(((size_t)segments + 1) * sizeof *backup);
    int rc = -1;
    if (backup == NULL || list_spokes(o, &start, &list) != 0) {
        (void)mesh_fail_memory(w->log);
        goto out;
    }
    memcpy(backup, o->segment, (size_t)segments * sizeof *backup);
    rc = shell_all(w, start, list, &skipped);
    if (rc == 0 && pslg_uncross(w, true) != 0) {
        mesh_note(w->log, "%s: no room for equal lengths at small angles: the mesh is finer there",
                  o->name);
        memcpy(o->segment, backup, (size_t)segments * sizeof *backup);
        o->segment_count = segments;
        o->point_count = points;
    }
    if (rc == 0 && skipped > 0) {
        mesh_note(w->log,
                  "%s: %d small angles on segments too short to cut: the mesh is finer there",
                  o->name, skipped);
    }
out:
    free(backup);
    free(start);
    free(list);
    return rc;
}
