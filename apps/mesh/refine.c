/* Delaunay refinement after Ruppert, with the encroachment test made only when it matters.
 *
 * A triangle is looked at when it is made, and again when it leaves the queue. Too large: a point
 * at its circumcentre. Too thin: the same, or a point nearer its shortest edge where that already
 * gives a triangle with the wanted angle. The point's cavity is found from the triangle itself,
 * whose circle holds the point. If a piece lies between, or the point lies in a piece's diametral
 * circle, the piece is halved instead and the triangle looked at again.
 *
 * Why it ends:
 * - A triangle that is thin because two pieces meet at a smaller angle is left alone.
 * - Input segments that meet at small angles start with pieces of equal length (pslg.c), so that
 *   halving one side of such a corner never feeds on the other.
 * - Pieces that cannot be halved on the grid, and edges below MESH_LENGTH_MIN, are left as they are
 *   whatever happens. */
#include "kernel.h"

#include <math.h>
#include <stdlib.h>

#define BLOCKERS_MAX 16

typedef enum verdict { GOOD, THIN, LARGE } verdict;

typedef struct job {
    const mesh_sizing *sizing;
    double sin2;           /* of the smallest angle allowed, squared */
    double half_cotangent; /* of half that angle, halved: where the nearer point goes */
    mesh_splits *splits;
    int rc;
} job;

typedef struct shape {
    double length2[3]; /* of the edge opposite each corner */
    double area2;
    int32_t shortest, longest;
} shape;

static shape measure(const mesh_sub *sub, const mesh_tri *tri)
{
    const mesh_point *p = sub->point;
    shape s;
    s.length2[0] = (double)mesh_length2(p[tri->v[1]], p[tri->v[2]]);
    s.length2[1] = (double)mesh_length2(p[tri->v[2]], p[tri->v[0]]);
    s.length2[2] = (double)mesh_length2(p[tri->v[0]], p[tri->v[1]]);
    s.area2 = (double)mesh_orient(p[tri->v[0]], p[tri->v[1]], p[tri->v[2]]);
    s.shortest = s.length2[0] <= s.length2[1] ? 0 : 1;
    s.shortest = s.length2[2] < s.length2[s.shortest] ? 2 : s.shortest;
    s.longest = s.length2[0] >= s.length2[1] ? 0 : 1;
    s.longest = s.length2[2] > s.length2[s.longest] ? 2 : s.longest;
    return s;
}

/* True when two pieces meet in a corner of the triangle at less than the wanted angle. */
static bool is_pinched(const mesh_tri *tri, const shape *s, double sin2)
{
    for (int32_t i = 0; i < 3; i++) {
        int32_t j = mesh_next3(i), k = mesh_prev3(i);
        bool acute = s->length2[j] + s->length2[k] > s->length2[i];
        if (tri->n[j] < 0 && tri->n[k] < 0 && acute &&
            s->area2 * s->area2 < sin2 * s->length2[j] * s->length2[k]) {
            return true;
        }
    }
    return false;
}

static verdict judge(const mesh_sub *sub, const job *j, const mesh_tri *tri, const shape *s)
{
    const mesh_point *p = sub->point;
    if (s->length2[s->shortest] < (double)MESH_LENGTH_MIN * MESH_LENGTH_MIN) {
        return GOOD;
    }
    double x = ((double)p[tri->v[0]].x + p[tri->v[1]].x + p[tri->v[2]].x) / 3.0;
    double y = ((double)p[tri->v[0]].y + p[tri->v[1]].y + p[tri->v[2]].y) / 3.0;
    double h = mesh_sizing_at(j->sizing, x, y);
    if (s->length2[s->longest] > h * h) {
        return LARGE;
    }
    /* The smallest angle lies between the two longest edges. */
    double product = s->length2[mesh_next3(s->shortest)] * s->length2[mesh_prev3(s->shortest)];
    if (s->area2 * s->area2 >= j->sin2 * product || is_pinched(tri, s, j->sin2)) {
        return GOOD;
    }
    return THIN;
}

static void look_at(mesh_sub *sub, int32_t t, void *arg)
{
    job *j = arg;
    shape s = measure(sub, &sub->tri[t]);
    if (judge(sub, j, &sub->tri[t], &s) != GOOD && mesh_queue_push(sub, t) != 0) {
        j->rc = -1;
    }
}

static int32_t on_grid(double value, int32_t grain)
{
    double top = (double)((1 << MESH_COORD_BITS) - grain);
    double rounded = floor(value / grain + 0.5) * grain;
    return (int32_t)(rounded < 0.0 ? 0.0 : rounded > top ? top : rounded);
}

/* Rounding must neither spoil the triangle nor move the point to another one. */
static int32_t fit_grain(int32_t grain, double room)
{
    while (grain > 1 && (double)grain * 32.0 > room) {
        grain /= 2;
    }
    return grain;
}

/* The point to insert for a triangle. */
static mesh_point choose_point(const mesh_sub *sub, const job *j, const mesh_tri *tri,
                               const shape *s, verdict why)
{
    /* Seen from the corner opposite the shortest edge's start: a, b end the shortest edge. */
    mesh_point o = sub->point[tri->v[s->shortest]];
    mesh_point a = sub->point[tri->v[mesh_next3(s->shortest)]];
    mesh_point b = sub->point[tri->v[mesh_prev3(s->shortest)]];
    double ux = o.x - a.x, uy = o.y - a.y, vx = b.x - a.x, vy = b.y - a.y;
    double u2 = ux * ux + uy * uy, v2 = vx * vx + vy * vy, d = 2.0 * s->area2;
    /* a, b, o turn left, so v x u is the doubled area. */
    double cx = (uy * v2 - vy * u2) / d, cy = (vx * u2 - ux * v2) / d;
    double radius = sqrt(cx * cx + cy * cy);
    if (why == THIN) {
        double mx = vx / 2.0, my = vy / 2.0, dx = cx - mx, dy = cy - my;
        double away = sqrt(dx * dx + dy * dy), wanted = 0.95 * j->half_cotangent * sqrt(v2);
        if (away > wanted) {
            cx = mx + dx * (wanted / away);
            cy = my + dy * (wanted / away);
        }
    }
    int32_t grain = sub->head.grain;
    if (grain > 1) {
        grain = fit_grain(grain, fmin(radius, 8.0 * hypot(cx, cy)));
    }
    return (mesh_point){on_grid(a.x + cx, grain), on_grid(a.y + cy, grain)};
}

/* Pieces on the rim that lie between the triangle and p, or whose diametral circle holds p. */
static int32_t find_blockers(const mesh_sub *sub, mesh_point p, int32_t blocker[BLOCKERS_MAX])
{
    int32_t count = 0;
    for (int32_t i = 0; i < sub->rim_count && count < BLOCKERS_MAX; i++) {
        const mesh_rim *r = &sub->rim[i];
        mesh_point a = sub->point[r->a], b = sub->point[r->b];
        if (r->n < 0 && (mesh_dot(a, b, p) < 0 || mesh_orient(a, b, p) <= 0)) {
            blocker[count++] = ~r->n;
        }
    }
    return count;
}

static int note_split(mesh_sub *sub, mesh_splits *splits, const mesh_piece *piece)
{
    const mesh_edge *edge = &sub->edge[piece->edge];
    if (edge->id < 0 || splits == NULL) {
        return 0;
    }
    if (splits->count == splits->capacity) {
        int32_t more = splits->capacity < 32 ? 64 : 2 * splits->capacity;
        mesh_split *bigger = realloc(splits->at, (size_t)more * sizeof *bigger);
        if (bigger == NULL) {
            return -1;
        }
        splits->at = bigger;
        splits->capacity = more;
    }
    splits->at[splits->count++] = (mesh_split){edge->neighbour, edge->id, piece->path};
    return 0;
}

/* Halves those of the pieces that can be. Returns how many, or -1. */
static int32_t halve_blockers(mesh_sub *sub, job *j, const int32_t *blocker, int32_t count)
{
    int32_t halved = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t a, b;
        mesh_piece_ends(sub, blocker[i], &a, &b);
        if (!mesh_can_halve(sub->point[a], sub->point[b])) {
            continue;
        }
        if (note_split(sub, j->splits, &sub->piece[blocker[i]]) != 0 ||
            mesh_halve(sub, blocker[i], look_at, j) != 0) {
            return -1;
        }
        halved++;
    }
    sub->head.halved += halved;
    return halved;
}

static int insert_point(mesh_sub *sub, job *j, mesh_point p)
{
    if (mesh_room_points(sub, 1) != 0) {
        return -1;
    }
    int32_t v = mesh_add_point(sub, p);
    if (mesh_fill(sub, v) != 0) {
        return -1;
    }
    for (int32_t i = 0; i < sub->rim_count; i++) {
        look_at(sub, sub->dead[i], j);
    }
    sub->head.inserted++;
    return j->rc;
}

/* Looks at one queued triangle; returns the number of points made, or -1. */
static int32_t improve(mesh_sub *sub, job *j, int32_t t)
{
    int32_t blocker[BLOCKERS_MAX];
    mesh_tri before = sub->tri[t];
    shape s = measure(sub, &before);
    verdict why = judge(sub, j, &before, &s);
    if (why == GOOD) {
        return 0;
    }
    mesh_point p = choose_point(sub, j, &before, &s, why);
    if (mesh_cavity(sub, p, t, -1) != 0) {
        return -1;
    }
    int32_t count = find_blockers(sub, p, blocker);
    if (count == 0) {
        return insert_point(sub, j, p) != 0 ? -1 : 1;
    }
    int32_t halved = halve_blockers(sub, j, blocker, count);
    if (halved <= 0) {
        return halved;
    }
    const mesh_tri *now = &sub->tri[t];
    bool same = now->v[0] == before.v[0] && now->v[1] == before.v[1] && now->v[2] == before.v[2];
    if (same && mesh_queue_push(sub, t) != 0) {
        return -1;
    }
    return j->rc != 0 ? -1 : halved;
}

int mesh_sub_refine(mesh_sub *sub, const mesh_sizing *sizing, const mesh_quality *quality,
                    int64_t budget, mesh_splits *splits)
{
    double angle = quality->angle_deg * 3.14159265358979323846 / 180.0;
    job j = {sizing, sin(angle) * sin(angle), 0.5 / tan(0.5 * (angle > 0.01 ? angle : 0.01)),
             splits, 0};
    int64_t points = 0;
    while (sub->head.queue_count > 0) {
        if (budget > 0 && points >= budget) {
            return MESH_MORE;
        }
        int32_t t = sub->queue[sub->queue_first];
        sub->queue_first = (sub->queue_first + 1) & (sub->queue_room - 1);
        sub->head.queue_count--;
        int32_t made = improve(sub, &j, t);
        if (made < 0) {
            return -1;
        }
        points += made;
    }
    return MESH_DONE;
}
