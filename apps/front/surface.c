#include "surface.h"

#include <stdlib.h>
#include <string.h>

/* A square in a plane across `axis`; `at` is its corner with the least coordinates. */
typedef struct square {
    int axis;
    int32_t at[3], side;
} square;

/* The state of one call. */
typedef struct maker {
    front_surface *out;
    const front_sizing *sizing;
    int32_t centre; /* of the fan in hand, an index of points */
    bool flip, failed;
} maker;

enum { SIDE_LEAST = 8, TABLE_FIRST = 1024 };

static uint32_t hash(const int32_t p[3])
{
    uint64_t h = (uint64_t)(uint32_t)p[0] * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ (uint32_t)p[1]) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 29) ^ (uint32_t)p[2]) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(h >> 32);
}

/* The slot of the table where the point is, or would be. */
static int32_t *find(const front_surface *s, const int32_t p[3])
{
    uint32_t mask = (uint32_t)s->table_room - 1, i = hash(p) & mask;
    while (s->table[i] >= 0 && memcmp(s->points[s->table[i]], p, sizeof s->points[0]) != 0)
        i = (i + 1) & mask;
    return &s->table[i];
}

/* Doubles the room for points; the table is at most half full. */
static bool grow_points(front_surface *s)
{
    int32_t room = s->point_room > 0 ? 2 * s->point_room : TABLE_FIRST / 2;
    void *points = realloc(s->points, (size_t)room * sizeof *s->points);
    if (points == NULL)
        return false;
    s->points = points;
    int32_t *table = malloc(2 * (size_t)room * sizeof *table);
    if (table == NULL)
        return false;
    free(s->table);
    s->table = table;
    s->point_room = room;
    s->table_room = 2 * room;
    memset(table, 0xff, 2 * (size_t)room * sizeof *table);
    for (int32_t i = 0; i < s->point_count; i++)
        *find(s, s->points[i]) = i;
    return true;
}

/* The index of the point, which is made if it is new; -1: no memory. */
static int32_t point_of(front_surface *s, const int32_t p[3])
{
    if (s->point_count == s->point_room && !grow_points(s))
        return -1;
    int32_t *slot = find(s, p);
    if (*slot < 0) {
        *slot = s->point_count;
        memcpy(s->points[s->point_count++], p, sizeof s->points[0]);
    }
    return *slot;
}

static bool add_triangle(front_surface *s, int32_t a, int32_t b, int32_t c)
{
    if (s->triangle_count == s->triangle_room) {
        int32_t room = s->triangle_room > 0 ? 2 * s->triangle_room : TABLE_FIRST;
        void *triangles = realloc(s->triangles, (size_t)room * sizeof *s->triangles);
        if (triangles == NULL)
            return false;
        s->triangles = triangles;
        s->triangle_room = room;
    }
    int32_t *t = s->triangles[s->triangle_count++];
    t[0] = a;
    t[1] = b;
    t[2] = c;
    return true;
}

/* Whether the box, which has `side` along axes that are not flat, is divided. */
static bool is_divided(const front_sizing *s, const int32_t at[3], const int32_t extent[3],
                       int32_t side)
{
    double low[3], high[3];
    if (side <= SIDE_LEAST)
        return false;
    for (int d = 0; d < 3; d++) {
        low[d] = (double)at[d] / FRONT_UNIT;
        high[d] = (double)(at[d] + extent[d]) / FRONT_UNIT;
    }
    return (double)side / FRONT_UNIT > front_sizing_least(s, low, high);
}

static bool square_is_divided(const front_sizing *s, const square *q)
{
    int32_t extent[3] = {q->side, q->side, q->side};
    extent[q->axis] = 0;
    return is_divided(s, q->at, extent, q->side);
}

/* Whether the edge from `at` along `along` is halved: if any square is divided that it is a side
 * of. Edges within a face have two of them, in the plane across `axis`. Those of cubes have four.
 */
static bool edge_is_halved(const front_sizing *s, const int32_t at[3], int along, int axis,
                           int32_t side)
{
    int across = 3 - along - axis;
    bool rim = at[across] % FRONT_UNIT == 0;
    for (int plane = 0; plane < 2; plane++) {
        int step = plane == 0 ? across : axis; /* from one square of the plane to the other */
        for (int below = 0; below < 2 && (plane == 0 || rim); below++) {
            square q = {plane == 0 ? axis : across, {at[0], at[1], at[2]}, side};
            q.at[step] -= below * side;
            if (square_is_divided(s, &q))
                return true;
        }
    }
    return false;
}

static void fan_triangle(maker *m, const int32_t from[3], const int32_t to[3])
{
    int32_t a = point_of(m->out, from), b = point_of(m->out, to);
    if (a < 0 || b < 0 || !add_triangle(m->out, m->centre, m->flip ? b : a, m->flip ? a : b))
        m->failed = true;
}

/* The triangles between the fan's centre and the edge; `back`: the rim is walked downwards there.
 */
static void fan_edge(maker *m, const int32_t at[3], int along, int axis, int32_t side, bool back)
{
    int32_t end[3] = {at[0], at[1], at[2]};
    if (m->failed)
        return;
    if (edge_is_halved(m->sizing, at, along, axis, side)) {
        end[along] += side / 2;
        fan_edge(m, back ? end : at, along, axis, side / 2, back);
        fan_edge(m, back ? at : end, along, axis, side / 2, back);
        return;
    }
    end[along] += side;
    fan_triangle(m, back ? end : at, back ? at : end);
}

static void fan(maker *m, const square *q)
{
    int u = (q->axis + 1) % 3, v = (q->axis + 2) % 3;
    int32_t at[3] = {q->at[0], q->at[1], q->at[2]};
    at[u] += q->side / 2;
    at[v] += q->side / 2;
    m->centre = point_of(m->out, at);
    m->failed = m->failed || m->centre < 0;
    at[u] = q->at[u];
    at[v] = q->at[v];
    fan_edge(m, at, u, q->axis, q->side, false);
    fan_edge(m, at, v, q->axis, q->side, true);
    at[u] += q->side;
    fan_edge(m, at, v, q->axis, q->side, false);
    at[u] = q->at[u];
    at[v] += q->side;
    fan_edge(m, at, u, q->axis, q->side, true);
}

static void cover(maker *m, const square *q)
{
    if (m->failed)
        return;
    if (!square_is_divided(m->sizing, q)) {
        fan(m, q);
        return;
    }
    for (int quarter = 0; quarter < 4; quarter++) {
        square part = *q;
        part.side /= 2;
        part.at[(q->axis + 1) % 3] += (quarter & 1) * part.side;
        part.at[(q->axis + 2) % 3] += (quarter >> 1) * part.side;
        cover(m, &part);
    }
}

static void cover_face(maker *m, const front_box *box, int axis, bool high)
{
    int u = (axis + 1) % 3, v = (axis + 2) % 3;
    square q = {.axis = axis, .side = FRONT_UNIT};
    m->flip = !high;
    q.at[axis] = (high ? box->high : box->low)[axis] * FRONT_UNIT;
    for (int32_t i = box->low[u]; i < box->high[u]; i++)
        for (int32_t j = box->low[v]; j < box->high[v]; j++) {
            q.at[u] = i * FRONT_UNIT;
            q.at[v] = j * FRONT_UNIT;
            cover(m, &q);
        }
}

bool front_surface_make(front_surface *out, const front_sizing *s, const front_box *box)
{
    *out = (front_surface){0};
    maker m = {.out = out, .sizing = s};
    for (int axis = 0; axis < 3; axis++)
        for (int high = 0; high < 2; high++)
            cover_face(&m, box, axis, high != 0);
    return !m.failed;
}

void front_surface_fini(front_surface *surface)
{
    free(surface->points);
    free(surface->triangles);
    free(surface->table);
    *surface = (front_surface){0};
}

static bool add_spot(front_spots *s, const int32_t at[3], int32_t side)
{
    if (s->count == s->room) {
        int32_t room = s->room > 0 ? 2 * s->room : TABLE_FIRST;
        front_spot *spots = realloc(s->spots, (size_t)room * sizeof *spots);
        if (spots == NULL)
            return false;
        s->spots = spots;
        s->room = room;
    }
    front_spot *spot = &s->spots[s->count++];
    for (int d = 0; d < 3; d++)
        spot->at[d] = ((double)at[d] + (double)side / 2) / FRONT_UNIT;
    spot->size = (double)side / FRONT_UNIT;
    return true;
}

/* Divides the cube; returns the number of its parts, -1 without memory. */
static int64_t divide(front_spots *out, const front_sizing *s, const int32_t at[3], int32_t side)
{
    const int32_t extent[3] = {side, side, side};
    if (!is_divided(s, at, extent, side))
        return out == NULL || add_spot(out, at, side) ? 1 : -1;
    int64_t count = 0;
    for (int part = 0; part < 8; part++) {
        int32_t half = side / 2;
        const int32_t corner[3] = {at[0] + (part & 1) * half, at[1] + (part >> 1 & 1) * half,
                                   at[2] + (part >> 2) * half};
        int64_t more = divide(out, s, corner, half);
        if (more < 0)
            return -1;
        count += more;
    }
    return count;
}

static int64_t divide_box(front_spots *out, const front_sizing *s, const front_box *box)
{
    int64_t count = 0, more = 0;
    for (int32_t i = box->low[0]; i < box->high[0] && more >= 0; i++)
        for (int32_t j = box->low[1]; j < box->high[1] && more >= 0; j++)
            for (int32_t k = box->low[2]; k < box->high[2] && more >= 0; k++) {
                const int32_t at[3] = {i * FRONT_UNIT, j * FRONT_UNIT, k * FRONT_UNIT};
                more = divide(out, s, at, FRONT_UNIT);
                count += more;
            }
    return more < 0 ? -1 : count;
}

bool front_spots_make(front_spots *out, const front_sizing *s, const front_box *box)
{
    *out = (front_spots){0};
    return divide_box(out, s, box) >= 0;
}

int64_t front_spots_count(const front_sizing *s, const front_box *box)
{
    return divide_box(NULL, s, box);
}

void front_spots_fini(front_spots *spots)
{
    free(spots->spots);
    *spots = (front_spots){0};
}
