/* Order matters. Constrained edges are marked first, by following each input segment and each cut
 * from midpoint to midpoint down to edges of the mesh. Then every other edge must be Delaunay, and
 * every border must be marked. */
#include "check.h"

#include "box_tree.h"
#include "check_domain.h"
#include "check_input.h"
#include "check_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LISTED_MAX 12
#define DEGREES (180.0 / 3.14159265358979323846)

typedef struct stuck_piece {
    mesh_point a, b;
} stuck_piece;

typedef struct checker {
    const mesh_check_input *in;
    mesh_check_result *out;
    mesh_table t;
    mesh_domain domain;
    stuck_piece *stuck; /* constrained edges that cannot be halved */
    int32_t stuck_count, stuck_room;
    mesh_box_tree stuck_tree; /* of their boxes, if there are any */
    double stuck_longest;
    int32_t listed;
} checker;

__attribute__((format(printf, 2, 3))) static void say(const checker *c, const char *format, ...)
{
    char text[512];
    va_list args;
    if (c->in->line == NULL) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->in->line(c->in->arg, text);
}

static const char *verdict(const checker *c, mesh_check_kind kind)
{
    return c->out->faults[kind] == 0 ? "ok  " : "FAIL";
}

static mesh_wide turn_of(mesh_point a, mesh_point b, mesh_point c)
{
    mesh_wide bx = (mesh_wide)b.x - a.x, by = (mesh_wide)b.y - a.y;
    mesh_wide cx = (mesh_wide)c.x - a.x, cy = (mesh_wide)c.y - a.y;
    return bx * cy - by * cx;
}

/* Positive when d is inside the circle of a, b, c: the lifted points'
 * determinant, by its last row.
 */
static mesh_wide circle_of(mesh_point a, mesh_point b, mesh_point c, mesh_point d)
{
    const mesh_point p[3] = {b, c, d};
    mesh_wide x[3], y[3], z[3];
    for (int i = 0; i < 3; i++) {
        x[i] = (mesh_wide)p[i].x - a.x;
        y[i] = (mesh_wide)p[i].y - a.y;
        z[i] = x[i] * x[i] + y[i] * y[i];
    }
    return -(z[0] * (x[1] * y[2] - x[2] * y[1]) - z[1] * (x[0] * y[2] - x[2] * y[0]) +
             z[2] * (x[0] * y[1] - x[1] * y[0]));
}

static bool stuck_at_limit(mesh_point a, mesh_point b)
{
    double x = (double)b.x - a.x, y = (double)b.y - a.y;
    return (b.x - a.x) % 2 != 0 || (b.y - a.y) % 2 != 0 ||
           x * x + y * y < 4.0 * MESH_LENGTH_MIN * MESH_LENGTH_MIN;
}

static int remember_stuck(checker *c, mesh_point a, mesh_point b)
{
    if (c->stuck_count == c->stuck_room) {
        int32_t more = 2 * c->stuck_room + 64;
        stuck_piece *bigger = realloc(c->stuck, (size_t)more * sizeof *bigger);
        if (bigger == NULL) {
            return -1;
        }
        c->stuck = bigger;
        c->stuck_room = more;
    }
    c->stuck[c->stuck_count++] = (stuck_piece){a, b};
    return 0;
}

/* A chain of edges and what must lie on its two sides: a sub-domain, nothing (-1), or anything
 * (-2). */
typedef struct chain {
    uint32_t mark;
    int32_t left, right;
    mesh_check_kind kind;
} chain;

static bool side_is_right(const checker *c, const mesh_side *side, int32_t wanted)
{
    if (side == NULL || wanted == -1) {
        return (side == NULL) == (wanted == -1);
    }
    return wanted == -2 || c->t.owner[side->tri] == wanted;
}

/* Follows the chain from a to b; returns -1 out of memory. Recursion is as deep
 * as halving goes. */
static int follow(checker *c, mesh_point a, mesh_point b, const chain *ch)
{
    int32_t from = mesh_table_point(&c->t, a), to = mesh_table_point(&c->t, b);
    mesh_side *left = from < 0 || to < 0 ? NULL : mesh_table_side(&c->t, from, to);
    mesh_side *right = from < 0 || to < 0 ? NULL : mesh_table_side(&c->t, to, from);
    if (left != NULL || right != NULL) {
        if (left != NULL) {
            left->mark |= ch->mark;
        }
        if (right != NULL) {
            right->mark |= ch->mark;
        }
        if (!side_is_right(c, left, ch->left) || !side_is_right(c, right, ch->right)) {
            c->out->faults[ch->kind]++;
        }
        return stuck_at_limit(a, b) ? remember_stuck(c, a, b) : 0;
    }
    if (from < 0 || to < 0 || (b.x - a.x) % 2 != 0 || (b.y - a.y) % 2 != 0) {
        c->out->faults[ch->kind]++;
        return 0;
    }
    mesh_point middle = {a.x + (b.x - a.x) / 2, a.y + (b.y - a.y) / 2};
    return follow(c, a, middle, ch) != 0 ? -1 : follow(c, middle, b, ch);
}

static int mark_constrained(checker *c)
{
    const mesh_pslg *g = c->in->pslg;
    const mesh_decomp *d = c->in->decomp;
    for (int32_t s = 0; s < g->segment_count; s++) {
        chain ch = {MESH_MARK_INPUT, c->domain.filled[2 * s] ? -2 : -1,
                    c->domain.filled[2 * s + 1] ? -2 : -1, MESH_CHECK_BOUNDARY};
        if (ch.left == -1 && ch.right == -1) {
            continue;
        }
        if (follow(c, g->point[g->segment[s].a], g->point[g->segment[s].b], &ch) != 0) {
            return -1;
        }
    }
    for (int32_t k = 0; k < d->cut_count; k++) {
        const mesh_cut *cut = &d->cut[k];
        chain ch = {MESH_MARK_CUT, cut->sub[0], cut->sub[1], MESH_CHECK_CONFORMITY};
        if (follow(c, d->coarse->point[cut->a], d->coarse->point[cut->b], &ch) != 0) {
            return -1;
        }
    }
    return 0;
}

static void check_orientation(checker *c)
{
    mesh_wide area2 = 0;
    for (int64_t t = 0; t < c->t.tri_count; t++) {
        const int32_t *v = &c->t.corner[3 * t];
        mesh_wide turn = turn_of(c->t.point[v[0]], c->t.point[v[1]], c->t.point[v[2]]);
        c->out->faults[MESH_CHECK_ORIENTATION] += turn <= 0;
        area2 += turn;
    }
    c->out->faults[MESH_CHECK_OVERLAP] = c->t.doubled;
    c->out->faults[MESH_CHECK_AREA] = area2 != c->domain.area2;
    double unit = 0.5 / (c->in->pslg->frame.scale * c->in->pslg->frame.scale);
    say(c, "%s orientation: %lld triangles, %lld not turning left",
        verdict(c, MESH_CHECK_ORIENTATION), (long long)c->t.tri_count,
        (long long)c->out->faults[MESH_CHECK_ORIENTATION]);
    say(c, "%s overlap: %lld edges with two triangles on one side", verdict(c, MESH_CHECK_OVERLAP),
        (long long)c->t.doubled);
    say(c, "%s area: %.6f of the triangles, %.6f of the polygon, difference %s",
        verdict(c, MESH_CHECK_AREA), (double)area2 * unit, (double)c->domain.area2 * unit,
        area2 == c->domain.area2 ? "exactly 0" : "not 0");
}

static int32_t apex_of(const checker *c, const mesh_side *side)
{
    const int32_t *v = &c->t.corner[3 * (size_t)side->tri];
    return v[0] != side->from && v[0] != side->to   ? v[0]
           : v[1] != side->from && v[1] != side->to ? v[1]
                                                    : v[2];
}

/* Counts edges and looks at each from one side: borders, shared borders,
 * circles. */
static void check_edges(checker *c)
{
    mesh_check_result *o = c->out;
    int64_t free_edges = 0;
    for (uint64_t i = 0; i <= c->t.side_mask; i++) {
        const mesh_side *side = &c->t.side[i];
        if (side->from < 0) {
            continue;
        }
        const mesh_side *back = mesh_table_side(&c->t, side->to, side->from);
        o->edges += back == NULL || side->from < side->to;
        if (back == NULL) {
            o->faults[MESH_CHECK_BOUNDARY] += (side->mark & MESH_MARK_INPUT) == 0;
            continue;
        }
        if (side->from > side->to) {
            continue;
        }
        if (c->t.owner[side->tri] != c->t.owner[back->tri]) {
            o->faults[MESH_CHECK_CONFORMITY] += (side->mark & MESH_MARK_CUT) == 0;
        }
        if (side->mark == 0) {
            const int32_t *v = &c->t.corner[3 * (size_t)side->tri];
            const mesh_point *p = c->t.point;
            free_edges++;
            o->faults[MESH_CHECK_DELAUNAY] +=
                circle_of(p[v[0]], p[v[1]], p[v[2]], p[apex_of(c, back)]) > 0;
        }
    }
    say(c, "%s boundary: %d input segments, %lld faults", verdict(c, MESH_CHECK_BOUNDARY),
        c->in->pslg->segment_count, (long long)o->faults[MESH_CHECK_BOUNDARY]);
    say(c, "%s conformity: %d shared edges, %lld faults", verdict(c, MESH_CHECK_CONFORMITY),
        c->in->decomp->cut_count, (long long)o->faults[MESH_CHECK_CONFORMITY]);
    say(c,
        "%s Delaunay: %lld edges free to turn, %lld with a point inside the "
        "circle",
        verdict(c, MESH_CHECK_DELAUNAY), (long long)free_edges,
        (long long)o->faults[MESH_CHECK_DELAUNAY]);
}

typedef struct figure {
    double length[3]; /* of the side after each corner */
    double angle[3];  /* at each corner, radians */
    double longest, shortest, smallest;
    double x, y; /* centroid */
} figure;

static figure figure_of(const checker *c, int64_t t)
{
    figure f;
    mesh_point p[3];
    for (int i = 0; i < 3; i++) {
        p[i] = c->t.point[c->t.corner[3 * t + i]];
    }
    for (int i = 0; i < 3; i++) {
        mesh_point a = p[i], b = p[(i + 1) % 3], e = p[(i + 2) % 3];
        double ux = (double)b.x - a.x, uy = (double)b.y - a.y;
        double wx = (double)e.x - a.x, wy = (double)e.y - a.y;
        f.length[i] = sqrt(ux * ux + uy * uy);
        f.angle[i] = atan2((double)turn_of(a, b, e), ux * wx + uy * wy);
    }
    f.longest = fmax(f.length[0], fmax(f.length[1], f.length[2]));
    f.shortest = fmin(f.length[0], fmin(f.length[1], f.length[2]));
    f.smallest = fmin(f.angle[0], fmin(f.angle[1], f.angle[2]));
    f.x = ((double)p[0].x + p[1].x + p[2].x) / 3.0;
    f.y = ((double)p[0].y + p[1].y + p[2].y) / 3.0;
    return f;
}

/* True when two input segments meet in a corner of the triangle at less than
 * the wanted angle. */
static bool fills_input_corner(const checker *c, int64_t t, const figure *f, double wanted)
{
    const int32_t *v = &c->t.corner[3 * t];
    for (int i = 0; i < 3; i++) {
        const mesh_side *out = mesh_table_side(&c->t, v[i], v[(i + 1) % 3]);
        const mesh_side *in = mesh_table_side(&c->t, v[(i + 2) % 3], v[i]);
        if (f->angle[i] < wanted && out != NULL && in != NULL &&
            (out->mark & MESH_MARK_INPUT) != 0 && (in->mark & MESH_MARK_INPUT) != 0) {
            return true;
        }
    }
    return false;
}

static double distance_to(const stuck_piece *s, double x, double y)
{
    double dx = (double)s->b.x - s->a.x, dy = (double)s->b.y - s->a.y;
    double along = ((x - s->a.x) * dx + (y - s->a.y) * dy) / (dx * dx + dy * dy);
    along = fmin(fmax(along, 0.0), 1.0);
    return hypot(s->a.x + along * dx - x, s->a.y + along * dy - y);
}

typedef struct nearness {
    const checker *c;
    double x, y, radius;
} nearness;

/* 1 when the circle reaches the circle around stuck edge `i`, or nearly. */
static int visit_stuck(void *arg, int32_t i)
{
    const nearness *n = arg;
    const stuck_piece *s = &n->c->stuck[i];
    double half = 0.5 * hypot((double)s->b.x - s->a.x, (double)s->b.y - s->a.y);
    return distance_to(s, n->x, n->y) <= n->radius + half;
}

/* True when the circle comes too close to an edge that cannot be halved. */
static bool near_stuck(const checker *c, double x, double y, double radius)
{
    nearness n = {c, x, y, radius};
    const double most = (double)(1 << MESH_COORD_BITS);
    double reach = radius + c->stuck_longest + 2.0;
    if (c->stuck_count > 0 && fabs(x) < most && fabs(y) < most && reach < most) {
        const mesh_point at = {(int32_t)x, (int32_t)y};
        return mesh_box_tree_search(&c->stuck_tree, at, at, (int32_t)reach, visit_stuck, &n) != 0;
    }
    for (int32_t i = 0; i < c->stuck_count; i++) {
        if (visit_stuck(&n, i) != 0) {
            return true;
        }
    }
    return false;
}

/* -1 out of memory. */
static int sort_stuck(checker *c)
{
    mesh_box *box = malloc(((size_t)c->stuck_count + 1) * sizeof *box);
    int rc = box == NULL ? -1 : 0;
    for (int32_t i = 0; rc == 0 && i < c->stuck_count; i++) {
        const stuck_piece *s = &c->stuck[i];
        box[i] = mesh_box_around(s->a, s->b);
        c->stuck_longest =
            fmax(c->stuck_longest, hypot((double)s->b.x - s->a.x, (double)s->b.y - s->a.y));
    }
    rc = rc == 0 && c->stuck_count > 0 ? mesh_box_tree_init(&c->stuck_tree, box, c->stuck_count)
                                       : rc;
    free(box);
    return rc;
}

/* True when improving the triangle would have to halve an edge that cannot be
 * halved: one that the new point, which lies in the triangle's circle, would
 * come too close to. */
static bool near_limit(const checker *c, int64_t t, const figure *f)
{
    if (f->shortest < MESH_LENGTH_MIN) {
        return true;
    }
    const int32_t *v = &c->t.corner[3 * t];
    mesh_point o = c->t.point[v[0]], p = c->t.point[v[1]], q = c->t.point[v[2]];
    double ux = (double)p.x - o.x, uy = (double)p.y - o.y, wx = (double)q.x - o.x,
           wy = (double)q.y - o.y;
    double d = 2.0 * (ux * wy - uy * wx), u2 = ux * ux + uy * uy, w2 = wx * wx + wy * wy;
    double x = o.x + (u2 * wy - w2 * uy) / d, y = o.y + (w2 * ux - u2 * wx) / d;
    return near_stuck(c, x, y, hypot(x - o.x, y - o.y));
}

static void list_excused(checker *c, const figure *f, const char *why)
{
    const mesh_frame *frame = &c->in->pslg->frame;
    if (c->listed++ < LISTED_MAX) {
        say(c, "       left as it is: %.2f degrees at (%.4f, %.4f): %s", f->smallest * DEGREES,
            frame->x0 + f->x / frame->scale, frame->y0 + f->y / frame->scale, why);
    }
}

static void check_shape(checker *c, int64_t t, double wanted)
{
    mesh_check_result *o = c->out;
    figure f = figure_of(c, t);
    bool thin = f.smallest < wanted * (1.0 - 1e-9);
    bool large = f.longest > mesh_sizing_at(c->in->sizing, f.x, f.y) * (1.0 + 1e-9);
    if (thin && !large && fills_input_corner(c, t, &f, wanted)) {
        o->excused_input++;
        list_excused(c, &f, "between input segments that meet at a small angle");
        return;
    }
    if ((thin || large) && near_limit(c, t, &f)) {
        o->excused_limit++;
        list_excused(c, &f, "beside an edge that was halved as often as the grid allows");
        return;
    }
    o->faults[MESH_CHECK_SIZE] += large;
    o->faults[MESH_CHECK_ANGLE] += thin;
    if ((thin || large) && o->faults[MESH_CHECK_SIZE] + o->faults[MESH_CHECK_ANGLE] <= LISTED_MAX) {
        list_excused(c, &f, large ? "FAULT: too large" : "FAULT: too thin");
    }
    o->angle_min_deg = fmin(o->angle_min_deg, f.smallest * DEGREES);
}

static void check_shapes(checker *c)
{
    mesh_check_result *o = c->out;
    o->angle_min_deg = 180.0;
    for (int64_t t = 0; t < c->t.tri_count; t++) {
        check_shape(c, t, c->in->quality->angle_deg / DEGREES);
    }
    if (c->listed > LISTED_MAX) {
        say(c, "       and %d more", c->listed - LISTED_MAX);
    }
    say(c, "%s size: %lld triangles larger than asked", verdict(c, MESH_CHECK_SIZE),
        (long long)o->faults[MESH_CHECK_SIZE]);
    say(c,
        "%s angle: smallest %.3f degrees, %lld below %g; left as they are: %lld "
        "in corners of the "
        "input, %lld at the limit of the grid",
        verdict(c, MESH_CHECK_ANGLE), o->angle_min_deg, (long long)o->faults[MESH_CHECK_ANGLE],
        c->in->quality->angle_deg, (long long)o->excused_input, (long long)o->excused_limit);
}

static void check_euler(checker *c)
{
    mesh_check_result *o = c->out;
    o->triangles = c->t.tri_count;
    o->points = c->t.point_count;
    int64_t euler = o->points - o->edges + o->triangles;
    o->faults[MESH_CHECK_EULER] = euler != c->domain.euler;
    say(c,
        "%s Euler: %lld points - %lld edges + %lld triangles = %lld, the "
        "polygon's is %lld",
        verdict(c, MESH_CHECK_EULER), (long long)o->points, (long long)o->edges,
        (long long)o->triangles, (long long)euler, (long long)c->domain.euler);
}

/* -1 out of memory. */
static int check_input(checker *c)
{
    mesh_input_faults f;
    if (c->in->poly == NULL) {
        return 0;
    }
    if (mesh_check_against(c->in->poly, c->in->pslg, &c->domain, &c->t, &f) != 0) {
        return -1;
    }
    double grain = MESH_GRAIN / c->in->pslg->frame.scale;
    double unit = 0.5 / (c->in->pslg->frame.scale * c->in->pslg->frame.scale);
    bool strange = f.measured && !(fabs((double)c->domain.area2 - f.area2) <= f.allowed2);
    c->out->faults[MESH_CHECK_INPUT] = f.strayed + f.wrong + strange;
    say(c,
        "%s input: %d segments moved by more than %g; %d places tested%s, %d "
        "wrong",
        verdict(c, MESH_CHECK_INPUT), f.strayed, MESH_MOVE_GRAINS * grain, f.places,
        f.walls ? " (the file has segments in no ring)" : "", f.wrong);
    if (f.measured) {
        say(c, "       area in the file %.6f, in the mesh %.6f%s", f.area2 * unit,
            (double)c->domain.area2 * unit, strange ? ": FAULT" : "");
    }
    return 0;
}

int mesh_check(const mesh_check_input *in, mesh_check_result *out, mesh_log *log)
{
    checker c = {.in = in, .out = out};
    int rc = -1;
    *out = (mesh_check_result){0};
    if (mesh_domain_init(&c.domain, in->pslg) != 0 ||
        mesh_table_init(&c.t, in->sub, in->decomp->count) != 0 || mark_constrained(&c) != 0 ||
        sort_stuck(&c) != 0 || check_input(&c) != 0) {
        (void)mesh_fail_memory(log);
    } else {
        check_orientation(&c);
        check_edges(&c);
        check_shapes(&c);
        check_euler(&c);
        rc = 0;
        for (int k = 0; k < MESH_CHECK_KINDS; k++) {
            rc = out->faults[k] != 0 ? 1 : rc;
        }
    }
    mesh_domain_fini(&c.domain);
    mesh_table_fini(&c.t);
    mesh_box_tree_fini(&c.stuck_tree);
    free(c.stuck);
    return rc;
}
