/* Groups, and the mending of parts.
 *
 * Where the input turns by less than a right angle the triangles of that corner form one group: a
 * cut that ended there would make a smaller angle. If parts cannot be mended, triangles that the
 * grid left narrow stay with those beside them too: no cut through a needle is blunt.
 *
 * After the partition three defects are mended in turn until none is left:
 * - a part in several pieces loses the lesser ones to a neighbour
 * - a run of triangles that gives a part a corner below 45 degrees goes to the part beside it
 * - an empty part takes half of the heaviest */
#include "parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "union_find.h"

#define GROUP_CORNER (3.14159265358979323846 / 2.0)
/* Triangles of the coarse mesh have larger corners, unless the input or the grid forbids it. */
#define NARROW_CORNER (25.0 / 180.0 * 3.14159265358979323846)
#define MEND_ROUNDS 40
#define SHARP_ROUNDS 30
/* After so many passes, islands move as a whole. Coastlines need about 40. */
#define PASSES_MAX 100

static double fan_angle(const mesh_sub *s, const mesh_fan *fan)
{
    double sum = 0.0;
    for (int32_t i = 0; i < fan->count; i++) {
        sum += mesh_corner_angle(s, fan->at[i]);
    }
    return sum;
}

/* Joins the triangles of narrow corners of the input in `parent`. */
static int join_corners(const mesh_sub *s, int32_t *parent)
{
    mesh_fan fan = {0};
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        parent[t] = t;
    }
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            /* Each open fan is met once: at its first triangle. */
            if (s->tri[t].n[mesh_prev3(i)] >= 0) {
                continue;
            }
            if (mesh_fan_find(s, (mesh_corner){t, i}, &fan) != 0) {
                free(fan.at);
                return -1;
            }
            for (int32_t k = 1; fan_angle(s, &fan) < GROUP_CORNER && k < fan.count; k++) {
                parent[find_root(parent, fan.at[k].tri)] = find_root(parent, fan.at[0].tri);
            }
        }
    }
    free(fan.at);
    return 0;
}

/* Joins narrow triangles and those beside them in `parent`. */
static void join_narrow(const mesh_sub *s, int32_t *parent)
{
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        bool narrow = false;
        for (int32_t i = 0; i < 3; i++) {
            narrow = narrow || mesh_corner_angle(s, (mesh_corner){t, i}) < NARROW_CORNER;
        }
        for (int32_t i = 0; i < 3 && narrow; i++) {
            int32_t n = mesh_across(s, t, i);
            if (n >= 0) {
                parent[find_root(parent, n)] = find_root(parent, t);
            }
        }
    }
}

static void weigh_groups(mesh_parts *p, const mesh_sizing *density)
{
    const mesh_sub *s = p->coarse;
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        const int32_t *v = s->tri[t].v;
        mesh_point a = s->point[v[0]], b = s->point[v[1]], c = s->point[v[2]];
        double x = ((double)a.x + b.x + c.x) / 3.0, y = ((double)a.y + b.y + c.y) / 3.0;
        double h = mesh_sizing_at(density, x, y), w = (double)mesh_orient(a, b, c) / (h * h);
        int32_t g = p->group[t];
        p->weight[g] += w;
        p->x[g] += w * x;
        p->y[g] += w * y;
    }
    for (int32_t g = 0; g < p->group_count; g++) {
        p->x[g] /= p->weight[g];
        p->y[g] /= p->weight[g];
    }
}

int mesh_parts_init(mesh_parts *p, mesh_sub *coarse, int32_t count, const mesh_sizing *density,
                    bool keep_narrow)
{
    size_t tris = (size_t)coarse->head.tri_count;
    *p = (mesh_parts){.coarse = coarse, .count = count};
    int32_t *parent = malloc(tris * sizeof *parent);
    p->group = malloc(tris * sizeof *p->group);
    p->part = calloc(tris, sizeof *p->part);
    p->weight = calloc(tris, sizeof *p->weight);
    p->x = calloc(tris, sizeof *p->x);
    p->y = calloc(tris, sizeof *p->y);
    p->part_groups = calloc((size_t)count, sizeof *p->part_groups);
    if (parent == NULL || p->group == NULL || p->part == NULL || p->weight == NULL ||
        p->x == NULL || p->y == NULL || p->part_groups == NULL ||
        join_corners(coarse, parent) != 0) {
        free(parent);
        return -1;
    }
    if (keep_narrow) {
        join_narrow(coarse, parent);
    }
    for (int32_t t = 0; t < coarse->head.tri_count; t++) {
        if (find_root(parent, t) == t) {
            p->group[t] = p->group_count++;
        }
    }
    for (int32_t t = 0; t < coarse->head.tri_count; t++) {
        p->group[t] = p->group[find_root(parent, t)];
    }
    free(parent);
    weigh_groups(p, density);
    return 0;
}

void mesh_parts_fini(mesh_parts *p)
{
    free(p->group);
    free(p->part);
    free(p->weight);
    free(p->x);
    free(p->y);
    free(p->part_groups);
    *p = (mesh_parts){0};
}

static void count_groups(mesh_parts *p)
{
    memset(p->part_groups, 0, (size_t)p->count * sizeof *p->part_groups);
    for (int32_t g = 0; g < p->group_count; g++) {
        p->part_groups[p->part[g]]++;
    }
}

static void move_group(mesh_parts *p, int32_t g, int32_t to)
{
    p->part_groups[p->part[g]]--;
    p->part_groups[to]++;
    p->part[g] = to;
}

/* One stretch of a fan within one part. */
typedef struct run {
    int32_t first, count;
    double angle;
} run;

/* The next run of the fan from `first` on; positions count past the end of a closed fan. */
static run next_run(const mesh_parts *p, const mesh_fan *fan, int32_t first, int32_t end)
{
    run r = {first, 0, 0.0};
    int32_t part = mesh_part_of(p, fan->at[first % fan->count].tri);
    while (first + r.count < end) {
        mesh_corner c = fan->at[(first + r.count) % fan->count];
        if (mesh_part_of(p, c.tri) != part) {
            break;
        }
        r.angle += mesh_corner_angle(p->coarse, c);
        r.count++;
    }
    return r;
}

/* Where to start so that no run of a closed fan wraps around; -1 if the fan is all one part. */
static int32_t first_change(const mesh_parts *p, const mesh_fan *fan)
{
    for (int32_t i = 1; i < fan->count; i++) {
        if (mesh_part_of(p, fan->at[i].tri) != mesh_part_of(p, fan->at[i - 1].tri)) {
            return fan->closed ? i : 0;
        }
    }
    return -1;
}

/* The smallest run of the fan; its angle is infinite if the fan is all one part. */
static run smallest_run(const mesh_parts *p, const mesh_fan *fan)
{
    run least = {0, 0, INFINITY};
    int32_t first = first_change(p, fan), end = first + fan->count;
    for (int32_t at = first; first >= 0 && at < end;) {
        run r = next_run(p, fan, at, end);
        least = r.angle < least.angle ? r : least;
        at += r.count;
    }
    return least;
}

double mesh_parts_smallest_corner(const mesh_parts *p, const mesh_fan *fan)
{
    return smallest_run(p, fan).angle;
}

static uint32_t roll(mesh_parts *p)
{
    p->dice = p->dice * 1664525u + 1013904223u;
    return p->dice >> 16;
}

/* Removes the small corner `r`: its triangles go to the part beside it, or now and then the
 * triangle beside it comes to its part. Which, and on which side, is left to the dice: repairs of
 * neighbouring corners that undo each other do not do so forever. Returns whether anything moved.
 */
static bool blunt(mesh_parts *p, const mesh_fan *fan, run r)
{
    int32_t n = fan->count, from = mesh_part_of(p, fan->at[r.first % n].tri);
    bool can_before = fan->closed || r.first > 0;
    bool can_after = fan->closed || r.first + r.count < n;
    bool use_after = can_after && (!can_before || roll(p) % 2 == 0);
    int32_t beside = fan->at[(use_after ? r.first + r.count : r.first - 1 + n) % n].tri;
    int32_t other = mesh_part_of(p, beside);
    if (other == from) {
        return false;
    }
    if (roll(p) % 3 == 0 && p->part_groups[other] > 1) {
        move_group(p, p->group[beside], from);
        return true;
    }
    if (p->part_groups[from] <= r.count) {
        return false;
    }
    for (int32_t i = 0; i < r.count; i++) {
        int32_t g = p->group[fan->at[(r.first + i) % n].tri];
        if (p->part[g] == from) {
            move_group(p, g, other);
        }
    }
    return true;
}

/* One pass over all corners. Returns how many small ones there were (`moved`: how many changed), or
 * -1. */
static int32_t blunt_corners(mesh_parts *p, int32_t *moved)
{
    const mesh_sub *s = p->coarse;
    mesh_fan fan = {0};
    int32_t found = 0;
    *moved = 0;
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            /* Every corner with a cut on its right is looked at. */
            int32_t right = s->tri[t].n[mesh_prev3(i)];
            if (right < 0 || mesh_part_of(p, right) == mesh_part_of(p, t)) {
                continue;
            }
            if (mesh_fan_find(s, (mesh_corner){t, i}, &fan) != 0) {
                free(fan.at);
                return -1;
            }
            run r = smallest_run(p, &fan);
            if (r.angle < MESH_CORNER_MIN) {
                found++;
                *moved += blunt(p, &fan, r) ? 1 : 0;
            }
        }
    }
    free(fan.at);
    return found;
}

typedef struct islands {
    int32_t *label; /* of each triangle */
    double *weight; /* of each label */
    int32_t *stack;
    int32_t count;
} islands;

/* Labels the connected stretches of equal part. */
static void label_islands(const mesh_parts *p, islands *is)
{
    const mesh_sub *s = p->coarse;
    is->count = 0;
    memset(is->label, -1, (size_t)s->head.tri_count * sizeof *is->label);
    for (int32_t seed = 0; seed < s->head.tri_count; seed++) {
        if (is->label[seed] >= 0) {
            continue;
        }
        int32_t depth = 0, label = is->count++;
        is->weight[label] = 0.0;
        is->label[seed] = label;
        is->stack[depth++] = seed;
        while (depth > 0) {
            int32_t t = is->stack[--depth];
            const int32_t *v = s->tri[t].v;
            is->weight[label] +=
                (double)mesh_orient(s->point[v[0]], s->point[v[1]], s->point[v[2]]);
            for (int32_t i = 0; i < 3; i++) {
                int32_t n = mesh_across(s, t, i);
                if (n >= 0 && is->label[n] < 0 && mesh_part_of(p, n) == mesh_part_of(p, t)) {
                    is->label[n] = label;
                    is->stack[depth++] = n;
                }
            }
        }
    }
}

/* Labels the islands, and finds the largest of each part. `largest` has an entry per part. */
static void find_largest(const mesh_parts *p, islands *is, int32_t *largest)
{
    const mesh_sub *s = p->coarse;
    label_islands(p, is);
    memset(largest, -1, (size_t)p->count * sizeof *largest);
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        int32_t *l = &largest[mesh_part_of(p, t)];
        if (*l < 0 || is->weight[is->label[t]] > is->weight[*l]) {
            *l = is->label[t];
        }
    }
}

/* The `depth` triangles on the stack have come to the largest islands of their parts, and join what
 * they touch to these. */
static void extend_largest(const mesh_parts *p, islands *is, const int32_t *largest, int32_t depth)
{
    for (int32_t k = 0; k < depth; k++) {
        is->label[is->stack[k]] = largest[mesh_part_of(p, is->stack[k])];
    }
    while (depth > 0) {
        int32_t t = is->stack[--depth], own = mesh_part_of(p, t);
        for (int32_t i = 0; i < 3; i++) {
            int32_t n = mesh_across(p->coarse, t, i);
            if (n >= 0 && mesh_part_of(p, n) == own && is->label[n] != largest[own]) {
                is->label[n] = largest[own];
                is->stack[depth++] = n;
            }
        }
    }
}

/* Gives the triangles of lesser islands that lie beside another part to that part; returns how
 * many. Largest islands only grow, so the labels are kept up to date. */
static int32_t join_islands(mesh_parts *p, islands *is, const int32_t *largest)
{
    const mesh_sub *s = p->coarse;
    int32_t moved = 0;
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        int32_t own = mesh_part_of(p, t);
        for (int32_t i = 0; i < 3 && is->label[t] != largest[own]; i++) {
            int32_t n = mesh_across(s, t, i);
            int32_t other = n >= 0 ? mesh_part_of(p, n) : own;
            if (other != own && is->label[n] == largest[other]) {
                move_group(p, p->group[t], other);
                is->stack[moved++] = t;
                break;
            }
        }
    }
    extend_largest(p, is, largest, moved);
    return moved;
}

/* Gives each lesser island as a whole to a part beside it; returns how many triangles, or -1. An
 * island thousands of triangles long takes as many passes of join_islands as it is long. */
static int32_t move_islands(mesh_parts *p, islands *is, const int32_t *largest)
{
    const mesh_sub *s = p->coarse;
    int32_t moved = 0, *to = malloc((size_t)is->count * sizeof *to);
    if (to == NULL) {
        return -1;
    }
    memset(to, -1, (size_t)is->count * sizeof *to);
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        int32_t own = mesh_part_of(p, t), label = is->label[t];
        for (int32_t i = 0; i < 3 && label != largest[own] && to[label] < 0; i++) {
            int32_t n = mesh_across(s, t, i);
            int32_t other = n >= 0 ? mesh_part_of(p, n) : own;
            to[label] = other != own && is->label[n] == largest[other] ? other : -1;
        }
    }
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        int32_t other = to[is->label[t]];
        if (other >= 0 && mesh_part_of(p, t) != other) {
            move_group(p, p->group[t], other);
            moved++;
        }
    }
    free(to);
    return moved;
}

static int32_t mend_islands(mesh_parts *p)
{
    size_t tris = (size_t)p->coarse->head.tri_count;
    islands is = {malloc(tris * sizeof(int32_t)), malloc(tris * sizeof(double)),
                  malloc(tris * sizeof(int32_t)), 0};
    int32_t *largest = malloc((size_t)p->count * sizeof *largest);
    int32_t moved = -1;
    if (is.label != NULL && is.weight != NULL && is.stack != NULL && largest != NULL) {
        int32_t more = 1;
        moved = 0;
        find_largest(p, &is, largest);
        for (int32_t pass = 0; more > 0; pass++) {
            more = join_islands(p, &is, largest);
            if (more > 0 && pass >= PASSES_MAX) {
                more = move_islands(p, &is, largest);
                find_largest(p, &is, largest);
            }
            moved = more < 0 ? -1 : moved + more;
        }
    }
    free(is.label);
    free(is.weight);
    free(is.stack);
    free(largest);
    return moved;
}

/* Fills empty parts from the heaviest; returns how many, or -1. */
static int32_t fill_empty(mesh_parts *p)
{
    int32_t filled = 0;
    double *weight = malloc((size_t)p->count * sizeof *weight);
    if (weight == NULL) {
        return -1;
    }
    for (int32_t e = 0; e < p->count; e++) {
        if (p->part_groups[e] > 0) {
            continue;
        }
        memset(weight, 0, (size_t)p->count * sizeof *weight);
        for (int32_t g = 0; g < p->group_count; g++) {
            weight[p->part[g]] += p->weight[g];
        }
        int32_t heaviest = -1;
        for (int32_t i = 0; i < p->count; i++) {
            if (p->part_groups[i] > 1 && (heaviest < 0 || weight[i] > weight[heaviest])) {
                heaviest = i;
            }
        }
        if (heaviest < 0 || mesh_partition_split(p, heaviest, e) != 0) {
            filled = -1;
            break;
        }
        count_groups(p);
        filled++;
    }
    free(weight);
    return filled;
}

int mesh_parts_mend(mesh_parts *p)
{
    int32_t found = 0, moved = 0;
    count_groups(p);
    for (int round = 0; round < MEND_ROUNDS; round++) {
        int32_t filled = fill_empty(p), joined = filled < 0 ? -1 : mend_islands(p);
        if (filled < 0 || joined < 0) {
            return -1;
        }
        int pass = 0;
        do {
            found = blunt_corners(p, &moved);
        } while (found > 0 && moved > 0 && ++pass < SHARP_ROUNDS);
        /* If so many passes leave small corners, more rounds do not help: a finer mesh may. */
        if (found < 0 || pass == SHARP_ROUNDS) {
            return found;
        }
        if (found == 0 && filled == 0 && joined == 0) {
            return 0;
        }
    }
    return found;
}
