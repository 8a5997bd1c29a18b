#include "shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN 6.28318530717958647692

uint32_t shape_roll(shape_dice *d, uint32_t sides)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % sides;
}

double shape_fraction(shape_dice *d)
{
    return (double)shape_roll(d, 1u << 30) / (double)(1u << 30);
}

/* Between -1 and 1, small values more often. */
static double lean(shape_dice *d)
{
    double f = 2.0 * shape_fraction(d) - 1.0;
    return f * f * f;
}

/* A length of 10^-9 to 10^-1 of the shape, each power of ten as often as the next. */
static double any_length(const shape *s, shape_dice *d)
{
    return s->stretch * pow(10.0, -9.0 + 8.0 * shape_fraction(d));
}

static void add_point(shape_ring *r, int at, shape_point p)
{
    if (r->count == SHAPE_POINTS_MAX) {
        return;
    }
    memmove(&r->at[at + 1], &r->at[at], (size_t)(r->count - at) * sizeof p);
    r->at[at] = p;
    r->count++;
}

/* Around (0, 0), each point further than `least`. */
static void make_star(shape_ring *r, shape_dice *d, int count, double least, double most)
{
    r->count = 0;
    for (int i = 0; i < count; i++) {
        double far = least + (most - least) * pow(shape_fraction(d), 2.0);
        add_point(r, i, (shape_point){far * cos(TURN * i / count), far * sin(TURN * i / count)});
    }
}

/* A rough coast around (0, 0). */
static void make_coast(shape_ring *r, shape_dice *d, int count)
{
    double phase[8], height[8];
    for (int k = 0; k < 8; k++) {
        phase[k] = TURN * shape_fraction(d);
        height[k] = 0.4 * shape_fraction(d) / (k + 1);
    }
    r->count = 0;
    for (int i = 0; i < count; i++) {
        double far = 1.0 + 0.05 * shape_fraction(d), turn = TURN * i / count;
        for (int k = 0; k < 8; k++) {
            far += height[k] * 0.6 * sin((1 << k) * turn + phase[k]);
        }
        far = 50.0 * fmax(far, 0.25);
        add_point(r, i, (shape_point){far * cos(turn), far * sin(turn)});
    }
}

static void make_comb(shape_ring *r, int teeth, double width)
{
    r->count = 0;
    for (int i = 0; i < teeth; i++) {
        double x = 100.0 * i / teeth, gap = 100.0 / teeth;
        add_point(r, r->count, (shape_point){x, 60.0});
        add_point(r, r->count, (shape_point){x + width * gap, 60.0});
        add_point(r, r->count, (shape_point){x + width * gap, 10.0});
        add_point(r, r->count, (shape_point){x + gap, 10.0});
    }
    add_point(r, r->count, (shape_point){100.0, 0.0});
    add_point(r, r->count, (shape_point){0.0, 0.0});
}

static void make_spiral(shape_ring *r, int count, double width)
{
    r->count = 0;
    for (int i = 0; i < 2 * count; i++) {
        int k = i < count ? i : 2 * count - 1 - i;
        double turn = TURN * 2.5 * k / count, far = 8.0 + 5.0 * turn + (i < count ? 0.0 : width);
        add_point(r, i, (shape_point){far * cos(turn), far * sin(turn)});
    }
}

static void make_inner_rings(shape *s, shape_dice *d)
{
    make_star(&s->ring[1], d, 5 + (int)shape_roll(d, 9), 3.0, 8.0);
    s->ring_count = 2;
    if (shape_roll(d, 3) != 0) {
        s->hole[s->hole_count++] = (shape_point){0.0, 0.0};
        if (shape_roll(d, 2) == 0) {
            make_star(&s->ring[2], d, 4, 1.0, 2.0);
            s->hole[0] = (shape_point){2.5, 0.01};
            s->ring_count = 3;
        }
    }
}

void shape_sound(shape *s, int index, const shape_point *coast, int coast_count)
{
    shape_dice d = {(uint64_t)index * 7919u + 17u};
    int kind = index % 8, count = 8 + 6 * (index / 8);
    s->ring_count = 1;
    s->extra_count = 0;
    s->hole_count = 0;
    s->shuffled = false;
    s->shared = false;
    s->digits = 17;
    s->stretch = 100.0;
    if (kind == 0) {
        make_star(&s->ring[0], &d, count, 2.0, 50.0);
    } else if (kind == 1) {
        make_comb(&s->ring[0], count / 3, 0.2 + 0.5 * shape_fraction(&d));
    } else if (kind == 2) {
        make_spiral(&s->ring[0], count, 2.0 + 20.0 * shape_fraction(&d));
    } else if (kind == 3 && index > 40) {
        s->ring[0].count = coast_count;
        memcpy(s->ring[0].at, coast, (size_t)coast_count * sizeof *coast);
        s->stretch = 300.0;
    } else {
        make_coast(&s->ring[0], &d, 2 * count);
        if (kind > 5) {
            make_inner_rings(s, &d);
        }
    }
}

/* A point of the shape and where it stands. */
typedef struct spot {
    shape_ring *ring;
    int at, next;
    shape_point p, q; /* itself and the next */
    double length;    /* to the next */
} spot;

static spot pick(shape *s, shape_dice *d)
{
    spot t;
    t.ring = &s->ring[shape_roll(d, (uint32_t)s->ring_count)];
    t.at = (int)shape_roll(d, (uint32_t)t.ring->count);
    t.next = (t.at + 1) % t.ring->count;
    t.p = t.ring->at[t.at];
    t.q = t.ring->at[t.next];
    t.length = hypot(t.q.x - t.p.x, t.q.y - t.p.y);
    return t;
}

/* One of the nearest of a few other points. */
static shape_point pick_near(shape *s, shape_dice *d, const spot *t)
{
    shape_point best = t->q;
    double least = INFINITY;
    for (int k = 0; k < 12; k++) {
        spot u = pick(s, d);
        double away = hypot(u.p.x - t->p.x, u.p.y - t->p.y);
        if (away < least && away > 0.0) {
            least = away;
            best = u.p;
        }
    }
    return best;
}

static shape_point beside(shape_point p, double reach, shape_dice *d)
{
    return (shape_point){p.x + reach * lean(d), p.y + reach * lean(d)};
}

static shape_point between(shape_point p, shape_point q, double along)
{
    return (shape_point){p.x + along * (q.x - p.x), p.y + along * (q.y - p.y)};
}

static void move_point(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    t.ring->at[t.at] = beside(t.p, shape_roll(d, 2) ? 2.0 * t.length : any_length(s, d), d);
}

static void copy_point(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    for (uint32_t k = 1 + shape_roll(d, 3); k > 0; k--) {
        add_point(t.ring, t.at, t.p);
    }
}

static void swap_points(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    int other = (t.at + 1 + (int)shape_roll(d, 3)) % t.ring->count;
    t.ring->at[t.at] = t.ring->at[other];
    t.ring->at[other] = t.p;
}

/* Out to a tip and back the same way: A, B, A. */
static void add_spike(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    shape_point tip = beside(t.p, 3.0 * t.length, d), near = pick_near(s, d, &t);
    uint32_t kind = shape_roll(d, 4);
    tip = kind == 1 ? near : kind == 2 ? between(t.p, near, shape_fraction(d)) : tip;
    add_point(t.ring, t.at + 1, t.p);
    add_point(t.ring, t.at + 1, tip);
    if (kind == 3) {
        add_point(t.ring, t.at + 2, beside(tip, t.length, d));
        add_point(t.ring, t.at + 3, tip);
    }
}

/* Out to a tip and back beside the way. */
static void add_needle(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    shape_point tip = beside(t.p, 2.0 * t.length, d);
    if (shape_roll(d, 2) == 0) {
        tip = beside(pick_near(s, d, &t), any_length(s, d), d);
    }
    add_point(t.ring, t.at + 1, beside(t.p, any_length(s, d), d));
    add_point(t.ring, t.at + 1, tip);
}

static void double_segment(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    if (shape_roll(d, 2) == 0) {
        add_point(t.ring, t.at + 1, t.p);
        add_point(t.ring, t.at + 1, t.q);
    } else if (s->extra_count < SHAPE_EXTRAS_MAX) {
        bool back = shape_roll(d, 2) == 0;
        s->extra[s->extra_count][0] = back ? t.q : t.p;
        s->extra[s->extra_count++][1] = back ? t.p : t.q;
    }
}

static void double_ring(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    if (s->ring_count == SHAPE_RINGS_MAX) {
        return;
    }
    shape_ring *r = &s->ring[s->ring_count++];
    double noise = shape_roll(d, 2) == 0 ? 0.0 : any_length(s, d) * 1e-4;
    r->count = 0;
    for (int i = 0; i < t.ring->count; i++) {
        add_point(r, r->count, beside(t.ring->at[i], noise, d));
    }
}

/* A point moves onto another one or onto a segment, or nearly. */
static void touch(shape *s, shape_dice *d)
{
    spot t = pick(s, d), u = pick(s, d);
    shape_point at = shape_roll(d, 2) == 0 ? pick_near(s, d, &t) : between(u.p, u.q, 0.25);
    t.ring->at[t.at] = shape_roll(d, 2) == 0 ? at : beside(at, any_length(s, d) * 1e-3, d);
}

/* A small ring that has a corner or a side in common with another ring. */
static void add_touching_ring(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    if (s->ring_count == SHAPE_RINGS_MAX) {
        return;
    }
    shape_ring *r = &s->ring[s->ring_count++];
    double x = t.q.x - t.p.x, y = t.q.y - t.p.y, way = shape_roll(d, 2) == 0 ? 0.5 : -0.5;
    shape_point side = {t.p.x - way * y, t.p.y + way * x};
    r->count = 0;
    add_point(r, 0, t.p);
    add_point(r, 1, shape_roll(d, 2) == 0 ? t.q : between(t.p, t.q, shape_fraction(d)));
    add_point(r, 2, side);
    if (shape_roll(d, 2) == 0 && s->hole_count < SHAPE_HOLES_MAX) {
        s->hole[s->hole_count++] = between(between(t.p, t.q, 0.1), side, 0.3);
    }
}

static void cross(shape *s, shape_dice *d)
{
    spot t = pick(s, d), u = pick(s, d);
    t.ring->at[t.at] = u.p;
    u.ring->at[u.at] = t.p;
}

static void add_points_in_line(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    double noise = shape_roll(d, 2) == 0 ? 0.0 : any_length(s, d) * 1e-4;
    for (uint32_t k = 1 + shape_roll(d, 6); k > 0; k--) {
        add_point(t.ring, t.at + 1, beside(between(t.p, t.q, shape_fraction(d)), noise, d));
    }
}

/* A channel or a strip of land, a tiny way wide. */
static void add_channel(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    double wide = any_length(s, d), x = lean(d) * t.length, y = lean(d) * t.length;
    shape_point end = {t.p.x + x, t.p.y + y}, tip = beside(end, t.length, d);
    add_point(t.ring, t.at + 1, (shape_point){t.p.x + wide, t.p.y});
    add_point(t.ring, t.at + 1, (shape_point){end.x + wide, end.y});
    add_point(t.ring, t.at + 1, beside(tip, 0.5 * t.length, d));
    add_point(t.ring, t.at + 1, tip);
    add_point(t.ring, t.at + 1, end);
}

static void add_tiny_ring(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    if (s->ring_count == SHAPE_RINGS_MAX) {
        return;
    }
    shape_ring *r = &s->ring[s->ring_count++];
    double far = any_length(s, d);
    shape_point at = between(t.p, (shape_point){0.0, 0.0}, 0.2 * shape_fraction(d));
    make_star(r, d, 3 + (int)shape_roll(d, 6), 0.3 * far, far);
    for (int i = 0; i < r->count; i++) {
        r->at[i].x += at.x;
        r->at[i].y += at.y;
    }
    if (shape_roll(d, 2) == 0 && s->hole_count < SHAPE_HOLES_MAX) {
        s->hole[s->hole_count++] = at;
    }
}

static void add_nested_rings(shape *s, shape_dice *d)
{
    double far = 3.0;
    for (uint32_t k = 1 + shape_roll(d, 4); k > 0 && s->ring_count < SHAPE_RINGS_MAX; k--) {
        make_star(&s->ring[s->ring_count++], d, 4 + (int)shape_roll(d, 5), far * 0.7, far);
        far *= 0.6;
        if (shape_roll(d, 3) == 0 && s->hole_count < SHAPE_HOLES_MAX) {
            s->hole[s->hole_count++] = (shape_point){far * lean(d), far * lean(d)};
        }
    }
}

static void add_wall(shape *s, shape_dice *d)
{
    for (uint32_t k = 1 + shape_roll(d, 3); k > 0 && s->extra_count < SHAPE_EXTRAS_MAX; k--) {
        spot t = pick(s, d);
        uint32_t kind = shape_roll(d, 3);
        s->extra[s->extra_count][0] = kind == 0 ? between(t.p, t.q, 0.5) : t.p;
        s->extra[s->extra_count++][1] = kind == 2 ? pick_near(s, d, &t) : beside(t.p, t.length, d);
    }
}

static void shuffle(shape *s, shape_dice *d)
{
    (void)d;
    s->shuffled = true;
}

static void share(shape *s, shape_dice *d)
{
    s->shared = true;
    s->digits = 4 + (int)shape_roll(d, 14);
}

static void add_hole(shape *s, shape_dice *d)
{
    spot t = pick(s, d);
    if (s->hole_count < SHAPE_HOLES_MAX) {
        s->hole[s->hole_count++] = beside(t.p, shape_roll(d, 2) ? t.length : any_length(s, d), d);
    }
}

const char *shape_spoil(shape *s, shape_dice *d)
{
    static const struct {
        const char *name;
        void (*change)(shape *, shape_dice *);
    } way[] = {{"move", move_point},
               {"copy", copy_point},
               {"swap", swap_points},
               {"spike", add_spike},
               {"needle", add_needle},
               {"double", double_segment},
               {"double-ring", double_ring},
               {"touch", touch},
               {"touching-ring", add_touching_ring},
               {"cross", cross},
               {"in-line", add_points_in_line},
               {"channel", add_channel},
               {"tiny-ring", add_tiny_ring},
               {"nested", add_nested_rings},
               {"wall", add_wall},
               {"shuffle", shuffle},
               {"share", share},
               {"hole", add_hole}};
    uint32_t which = shape_roll(d, sizeof way / sizeof way[0]);
    way[which].change(s, d);
    return way[which].name;
}

static void place_point(shape_point *p, double turn, double scale, shape_point to)
{
    double x = p->x, y = p->y;
    p->x = scale * (cos(turn) * x - sin(turn) * y) + to.x;
    p->y = scale * (sin(turn) * x + cos(turn) * y) + to.y;
}

void shape_place(shape *s, shape_dice *d)
{
    double scale = pow(10.0, -30.0 + 39.0 * shape_fraction(d));
    double turn = shape_roll(d, 2) == 0 ? 0.0 : TURN * shape_fraction(d);
    double far =
        shape_roll(d, 2) == 0 ? 0.0 : scale * s->stretch * pow(10.0, 9.0 * shape_fraction(d));
    far = fmin(far, 4e11);
    const shape_point to = {far * lean(d), far * lean(d)};
    for (int r = 0; r < s->ring_count; r++) {
        for (int i = 0; i < s->ring[r].count; i++) {
            place_point(&s->ring[r].at[i], turn, scale, to);
        }
    }
    for (int i = 0; i < s->extra_count; i++) {
        place_point(&s->extra[i][0], turn, scale, to);
        place_point(&s->extra[i][1], turn, scale, to);
    }
    for (int i = 0; i < s->hole_count; i++) {
        place_point(&s->hole[i], turn, scale, to);
    }
    s->stretch *= scale;
}
