/* Two numbers say for each triangle whether it is land: its zone, by a flood that only walls stop,
 * and its innermost ring. A walk over all triangles keeps the winding number of each ring, changes
 * it at the ring's segments, and takes the change back on its way back. */
#include "cdt_land.h"

#include "kernel.h"

#include <stdlib.h>
#include <string.h>

typedef struct land {
    mesh_sub *sub;
    const mesh_pslg *pslg;
    mesh_log *log;
    int32_t *zone;     /* of each triangle; 0 reaches the box */
    int32_t *inner;    /* of each triangle: its innermost ring, or -1 */
    int32_t *winding;  /* of each ring at the walk's place */
    int32_t *covering; /* rings whose winding is not 0, ascending */
    int32_t covering_count;
    int32_t *stack;
    int8_t *turn; /* of each triangle in the walk: the next slot to try, -1 before the first */
    int8_t *back; /* of each triangle in the walk: the slot that it was entered by */
} land;

static const mesh_segment *segment_of(const land *l, int32_t piece)
{
    return &l->pslg->segment[l->sub->edge[l->sub->piece[piece].edge].segment];
}

/* The triangle across slot i; -1 outside the box. */
static int32_t across(const land *l, int32_t t, int32_t i)
{
    int32_t n = l->sub->tri[t].n[i];
    if (n >= 0) {
        return n;
    }
    const mesh_piece *p = &l->sub->piece[~n];
    return ~n == 0 ? -1 : p->tri[p->tri[0] == t ? 1 : 0];
}

static bool is_wall(const land *l, int32_t n)
{
    return n < 0 && (~n == 0 || segment_of(l, ~n)->cover_count == 0);
}

static void flood_zone(land *l, int32_t seed, int32_t zone)
{
    int32_t depth = 0;
    if (l->zone[seed] >= 0) {
        return;
    }
    l->zone[seed] = zone;
    l->stack[depth++] = seed;
    while (depth > 0) {
        int32_t t = l->stack[--depth];
        for (int32_t i = 0; i < 3; i++) {
            int32_t n = is_wall(l, l->sub->tri[t].n[i]) ? -1 : across(l, t, i);
            if (n >= 0 && l->zone[n] < 0) {
                l->zone[n] = zone;
                l->stack[depth++] = n;
            }
        }
    }
}

static int32_t triangle_at_box(const land *l)
{
    for (int32_t t = 0; t < l->sub->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            if (l->sub->tri[t].n[i] == ~0) {
                return t;
            }
        }
    }
    return 0;
}

static void find_zones(land *l)
{
    int32_t zones = 1, count = l->sub->head.tri_count;
    memset(l->zone, -1, (size_t)count * sizeof *l->zone);
    flood_zone(l, triangle_at_box(l), 0);
    for (int32_t t = 0; t < count; t++) {
        if (l->zone[t] < 0) {
            flood_zone(l, t, zones++);
        }
    }
}

static void set_covering(land *l, int32_t ring, bool covers)
{
    int32_t at = l->covering_count;
    while (at > 0 && l->covering[at - 1] >= ring + (covers ? 1 : 0)) {
        at--;
    }
    size_t rest = (size_t)(l->covering_count - at) * sizeof *l->covering;
    if (covers) {
        memmove(&l->covering[at + 1], &l->covering[at], rest);
        l->covering[at] = ring;
        l->covering_count++;
    } else {
        memmove(&l->covering[at], &l->covering[at + 1], rest - sizeof *l->covering);
        l->covering_count--;
    }
}

/* Changes the winding numbers for a step from triangle t across neighbour value n. */
static void step(land *l, int32_t t, int32_t n)
{
    if (n >= 0) {
        return;
    }
    const mesh_segment *s = segment_of(l, ~n);
    int32_t sign = l->sub->piece[~n].tri[0] == t ? -1 : 1;
    for (int32_t i = 0; i < s->cover_count; i++) {
        const mesh_cover *c = &l->pslg->cover[s->cover + i];
        int32_t before = l->winding[c->ring];
        l->winding[c->ring] += sign * c->net;
        if ((before == 0) != (l->winding[c->ring] == 0)) {
            set_covering(l, c->ring, before == 0);
        }
    }
}

static void enter(land *l, int32_t t, int32_t back)
{
    l->turn[t] = 0;
    l->back[t] = (int8_t)back;
    l->inner[t] = l->covering_count > 0 ? l->covering[l->covering_count - 1] : -1;
}

static void find_inner(land *l)
{
    int32_t t = triangle_at_box(l);
    memset(l->turn, -1, (size_t)l->sub->head.tri_count);
    enter(l, t, 3);
    for (;;) {
        const int32_t *n = l->sub->tri[t].n;
        int32_t i = l->turn[t]++;
        if (i < 3) {
            int32_t to = across(l, t, i);
            if (to >= 0 && l->turn[to] < 0) {
                step(l, t, n[i]);
                enter(l, to, mesh_slot_of(l->sub, to, n[i] >= 0 ? t : n[i]));
                t = to;
            }
        } else if (l->back[t] < 3) {
            int32_t from = l->back[t];
            step(l, t, n[from]);
            t = across(l, t, from);
        } else {
            return;
        }
    }
}

/* A triangle that holds p; -1 outside the box. */
static int32_t locate(const land *l, mesh_point p)
{
    const mesh_point *at = l->sub->point;
    for (int32_t t = 0; t < l->sub->head.tri_count; t++) {
        const int32_t *v = l->sub->tri[t].v;
        if (mesh_orient(at[v[0]], at[v[1]], p) >= 0 && mesh_orient(at[v[1]], at[v[2]], p) >= 0 &&
            mesh_orient(at[v[2]], at[v[0]], p) >= 0) {
            return t;
        }
    }
    return -1;
}

static bool has_walls(const land *l)
{
    for (int32_t i = 0; i < l->pslg->segment_count; i++) {
        if (l->pslg->segment[i].cover_count == 0) {
            return true;
        }
    }
    return false;
}

/* The zone of a hole. Without walls there is but one. */
static int32_t zone_of(const land *l, const mesh_hole *hole)
{
    int32_t t = has_walls(l) ? locate(l, hole->place) : -1;
    return t >= 0 ? l->zone[t] : 0;
}

/* Empties what belongs to one hole. Returns how many triangles became empty. */
static int32_t dig_hole(land *l, const mesh_hole *hole, uint8_t *gone)
{
    int32_t dug = 0, zone = zone_of(l, hole);
    for (int32_t t = 0; t < l->sub->head.tri_count; t++) {
        if (!gone[t] && l->inner[t] == hole->ring && l->zone[t] == zone) {
            gone[t] = 1;
            dug++;
        }
    }
    if (dug == 0) {
        const mesh_frame *f = &l->pslg->frame;
        mesh_note(l->log, "%s:%d: the hole at (%g, %g) lies outside or in a hole: ignored",
                  l->pslg->name, hole->line, mesh_frame_x(f, hole->place.x),
                  mesh_frame_y(f, hole->place.y));
    }
    return dug;
}

static int find_land(land *l, uint8_t *gone)
{
    const mesh_pslg *g = l->pslg;
    int32_t left = 0;
    find_zones(l);
    find_inner(l);
    for (int32_t t = 0; t < l->sub->head.tri_count; t++) {
        gone[t] = l->zone[t] == 0 && l->inner[t] < 0;
        left += !gone[t];
    }
    if (left == 0) {
        return mesh_fail(l->log, "%s: the segments enclose nothing: no ring is closed", g->name);
    }
    for (int32_t i = 0; i < g->hole_count; i++) {
        left -= dig_hole(l, &g->hole[i], gone);
        if (left == 0) {
            return mesh_fail(
                l->log,
                "%s:%d: the hole at (%g, %g) is in no ring of its own: nothing would be left",
                g->name, g->hole[i].line, mesh_frame_x(&g->frame, g->hole[i].place.x),
                mesh_frame_y(&g->frame, g->hole[i].place.y));
        }
    }
    return 0;
}

int mesh_cdt_find_land(mesh_sub *sub, const mesh_pslg *pslg, uint8_t *gone, mesh_log *log)
{
    size_t tris = (size_t)sub->head.tri_count, rings = (size_t)pslg->ring_count + 1;
    land l = {.sub = sub, .pslg = pslg, .log = log};
    l.zone = malloc(tris * sizeof *l.zone);
    l.inner = malloc(tris * sizeof *l.inner);
    l.stack = malloc(tris * sizeof *l.stack);
    l.turn = malloc(tris);
    l.back = malloc(tris);
    l.winding = calloc(rings, sizeof *l.winding);
    l.covering = malloc(rings * sizeof *l.covering);
    int rc = l.zone == NULL || l.inner == NULL || l.stack == NULL || l.turn == NULL ||
                     l.back == NULL || l.winding == NULL || l.covering == NULL
                 ? mesh_fail_memory(log)
                 : find_land(&l, gone);
    free(l.zone);
    free(l.inner);
    free(l.stack);
    free(l.turn);
    free(l.back);
    free(l.winding);
    free(l.covering);
    return rc;
}
