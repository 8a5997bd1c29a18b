/* The steps from a graph to numbered parts; sub-domains are built from them in cut.c. */
#include "decompose.h"

#include "cdt.h"
#include "parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Coarse triangles per part: enough for round parts with gently curved cuts. */
#define TRIANGLES_PER_PART 24.0
/* The area of an average triangle whose longest edge may be 1. */
#define MEAN_AREA 0.2
#define COARSE_ANGLE_DEG 27.0
#define COARSE_TRIES 6
#define SAMPLE_DEPTH 3

typedef struct plan {
    const mesh_pslg *pslg;
    const mesh_sizing *sizing;
    const mesh_decompose_options *options;
    mesh_log *log;
    mesh_decomp *out;
} plan;

typedef struct spot {
    double x, y;
} spot;

/* The integral of 1 / size^2 over a triangle, by samples at the centroids of its parts. */
static double integrate(const mesh_sizing *sizing, spot a, spot b, spot c, int depth)
{
    if (depth > 0) {
        spot ab = {(a.x + b.x) / 2, (a.y + b.y) / 2}, bc = {(b.x + c.x) / 2, (b.y + c.y) / 2};
        spot ca = {(c.x + a.x) / 2, (c.y + a.y) / 2};
        return integrate(sizing, a, ab, ca, depth - 1) + integrate(sizing, ab, b, bc, depth - 1) +
               integrate(sizing, ca, bc, c, depth - 1) + integrate(sizing, ab, bc, ca, depth - 1);
    }
    double h = mesh_sizing_at(sizing, (a.x + b.x + c.x) / 3.0, (a.y + b.y + c.y) / 3.0);
    return 0.5 * ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)) / (h * h);
}

static void place_corners(const mesh_sub *s, int32_t t, spot p[3])
{
    for (int i = 0; i < 3; i++) {
        mesh_point q = s->point[s->tri[t].v[i]];
        p[i] = (spot){q.x, q.y};
    }
}

/* Where no feature changes the size field, one sample of a triangle is exact. */
static double measure_work(const mesh_sub *s, const mesh_sizing *sizing)
{
    const int depth = sizing->feature_count == 0 ? 0 : SAMPLE_DEPTH;
    double sum = 0.0;
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        spot p[3];
        place_corners(s, t, p);
        sum += integrate(sizing, p[0], p[1], p[2], depth);
    }
    return sum;
}

/* True when a feature is so near, and so small, that samples `extent` apart would miss it. */
static bool misses_feature(const mesh_sizing *sizing, spot at, double extent)
{
    for (int32_t i = 0; i < sizing->feature_count; i++) {
        const mesh_feature *f = &sizing->feature[i];
        double away = hypot(at.x - f->x, at.y - f->y);
        double detail = fmax(f->radius, sizing->size / f->factor / MESH_GRADATION);
        if (away < f->radius + 2.0 * extent && extent > 0.5 * detail) {
            return true;
        }
    }
    return false;
}

/* Like integrate, with more samples beside small features. No edge is made shorter than
 * MESH_LENGTH_MIN. */
static double integrate_all(const mesh_sizing *sizing, spot a, spot b, spot c)
{
    const spot at = {(a.x + b.x + c.x) / 3.0, (a.y + b.y + c.y) / 3.0};
    double extent = hypot(a.x - at.x, a.y - at.y);
    extent = fmax(extent, fmax(hypot(b.x - at.x, b.y - at.y), hypot(c.x - at.x, c.y - at.y)));
    if (extent > MESH_LENGTH_MIN && misses_feature(sizing, at, extent)) {
        spot ab = {(a.x + b.x) / 2, (a.y + b.y) / 2}, bc = {(b.x + c.x) / 2, (b.y + c.y) / 2};
        spot ca = {(c.x + a.x) / 2, (c.y + a.y) / 2};
        return integrate_all(sizing, a, ab, ca) + integrate_all(sizing, ab, b, bc) +
               integrate_all(sizing, ca, bc, c) + integrate_all(sizing, ab, bc, ca);
    }
    double h = fmax(mesh_sizing_at(sizing, at.x, at.y), MESH_LENGTH_MIN);
    return 0.5 * ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)) / (h * h);
}

double mesh_decomp_estimate(const mesh_decomp *decomp, const mesh_sizing *sizing)
{
    double sum = 0.0;
    for (int32_t t = 0; t < decomp->coarse->head.tri_count; t++) {
        spot p[3];
        place_corners(decomp->coarse, t, p);
        sum += integrate_all(sizing, p[0], p[1], p[2]);
    }
    return sum / MEAN_AREA;
}

static int refine_coarse(plan *p, const mesh_sizing *sizing)
{
    mesh_sub *s = p->out->coarse;
    mesh_quality quality = {COARSE_ANGLE_DEG};
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        if (mesh_queue_push(s, t) != 0) {
            return mesh_fail_memory(p->log);
        }
    }
    return mesh_sub_refine(s, sizing, &quality, 0, NULL) < 0 ? mesh_fail_memory(p->log) : 0;
}

/* Makes the coarse mesh so fine that each part has enough triangles of about equal weight.
 * `density` becomes the size field under which equal weights are equal numbers of triangles. */
static int make_coarse(plan *p, double triangles, mesh_sizing *density)
{
    mesh_sizing flat = {.size = 1.0};
    double area = measure_work(p->out->coarse, &flat);
    flat.size = sqrt(area / (MEAN_AREA * triangles));
    if (refine_coarse(p, &flat) != 0) {
        return -1;
    }
    double share = p->options->work_share;
    *density = *p->sizing;
    density->blend_flat = (1.0 - share) / area;
    density->blend_work = share / measure_work(p->out->coarse, p->sizing);
    density->blend = sqrt(1.0 / (MEAN_AREA * triangles));
    return refine_coarse(p, density);
}

static int partition(plan *p, mesh_parts *parts)
{
    int rc = 1;
    if (parts->count == 1) {
        return 0;
    }
    if (!p->options->avoid_metis && parts->group_count >= 4 * parts->count) {
        rc = mesh_partition_metis(parts);
        p->out->used_metis = rc == 0;
    }
    rc = rc == 1 ? mesh_partition_bisect(parts) : rc;
    rc = rc != 0 ? rc : mesh_parts_mend(parts);
    return rc != 0 ? rc : mesh_parts_smooth(parts);
}

/* Numbers the parts by bisecting them again and again, each counting alike, so that every range of
 * numbers is a compact area; then gives triangles their part's number. */
static int number_parts(plan *p, const mesh_parts *parts)
{
    mesh_decomp *d = p->out;
    size_t count = (size_t)parts->count;
    mesh_parts whole = {.count = parts->count, .group_count = parts->count};
    whole.part = calloc(count, sizeof *whole.part);
    whole.weight = calloc(count, sizeof *whole.weight);
    whole.x = calloc(count, sizeof *whole.x);
    whole.y = calloc(count, sizeof *whole.y);
    int rc = -1;
    if (whole.part != NULL && whole.weight != NULL && whole.x != NULL && whole.y != NULL) {
        for (int32_t g = 0; g < parts->group_count; g++) {
            int32_t at = parts->part[g];
            whole.weight[at] += parts->weight[g];
            whole.x[at] += parts->weight[g] * parts->x[g];
            whole.y[at] += parts->weight[g] * parts->y[g];
        }
        for (size_t i = 0; i < count; i++) {
            whole.x[i] /= whole.weight[i];
            whole.y[i] /= whole.weight[i];
            whole.weight[i] = 1.0;
        }
        rc = mesh_partition_bisect(&whole);
    }
    for (int32_t t = 0; rc == 0 && t < d->coarse->head.tri_count; t++) {
        d->part[t] = whole.part[mesh_part_of(parts, t)];
    }
    mesh_parts_fini(&whole);
    return rc != 0 ? mesh_fail_memory(p->log) : 0;
}

static void sort_by_part(mesh_decomp *d)
{
    int32_t count = d->coarse->head.tri_count;
    for (int32_t t = 0; t < count; t++) {
        d->part_start[d->part[t] + 2]++;
    }
    for (int32_t i = 0; i <= d->count; i++) {
        d->part_start[i + 1] += d->part_start[i];
    }
    for (int32_t t = 0; t < count; t++) {
        d->part_tri[d->part_start[d->part[t] + 1]++] = t;
    }
}

static void list_cuts(mesh_decomp *d)
{
    const mesh_sub *s = d->coarse;
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            int32_t n = mesh_across(s, t, i), far = s->tri[t].n[i];
            if (n < 0 || d->part[n] == d->part[t] || d->cut_at[3 * t + i] >= 0) {
                continue;
            }
            int32_t segment = far < 0 ? s->edge[s->piece[~far].edge].segment : -1;
            d->cut_at[3 * t + i] = d->cut_count;
            d->cut_at[3 * n + mesh_slot_of(s, n, far < 0 ? far : t)] = d->cut_count;
            d->cut[d->cut_count++] = (mesh_cut){s->tri[t].v[mesh_next3(i)],
                                                s->tri[t].v[mesh_prev3(i)],
                                                {d->part[t], d->part[n]},
                                                segment};
        }
    }
}

static int finish(plan *p, const mesh_parts *parts)
{
    mesh_decomp *d = p->out;
    size_t tris = (size_t)d->coarse->head.tri_count;
    d->part = malloc(tris * sizeof *d->part);
    d->part_start = calloc((size_t)d->count + 2, sizeof *d->part_start);
    d->part_tri = malloc(tris * sizeof *d->part_tri);
    d->cut_at = malloc(3 * tris * sizeof *d->cut_at);
    d->cut = malloc((3 * tris / 2 + 2) * sizeof *d->cut);
    if (d->part == NULL || d->part_start == NULL || d->part_tri == NULL || d->cut_at == NULL ||
        d->cut == NULL) {
        return mesh_fail_memory(p->log);
    }
    memset(d->cut_at, -1, 3 * tris * sizeof *d->cut_at);
    if (number_parts(p, parts) != 0) {
        return -1;
    }
    sort_by_part(d);
    list_cuts(d);
    return 0;
}

/* Makes parts of the coarse mesh. Returns 1 if it is too coarse for them. */
static int make_parts(plan *p, const mesh_sizing *density, bool keep_narrow)
{
    mesh_parts parts;
    if (mesh_parts_init(&parts, p->out->coarse, p->options->count, density, keep_narrow) != 0) {
        mesh_parts_fini(&parts);
        return mesh_fail_memory(p->log);
    }
    int rc = 1;
    if (p->options->count == 1 || parts.group_count >= 3 * p->options->count) {
        rc = partition(p, &parts);
        rc = rc < 0 ? mesh_fail_memory(p->log) : rc > 0 ? 1 : finish(p, &parts);
    }
    mesh_parts_fini(&parts);
    return rc;
}

/* One attempt with a coarse mesh of about so many triangles. Returns 1 if it was too coarse. */
static int try_decompose(plan *p, double triangles)
{
    mesh_sizing density = *p->sizing;
    if (p->options->count > 1 && make_coarse(p, triangles, &density) != 0) {
        return -1;
    }
    int rc = make_parts(p, &density, false);
    return rc == 1 ? make_parts(p, &density, true) : rc;
}

int mesh_decompose(const mesh_pslg *pslg, const mesh_sizing *sizing,
                   const mesh_decompose_options *options, mesh_decomp *out, mesh_log *log)
{
    plan p = {pslg, sizing, options, log, out};
    *out = (mesh_decomp){.count = options->count};
    if (options->count < 1 || options->count > MESH_SUBDOMAINS_MAX) {
        return mesh_fail(log, "%d sub-domains; between 1 and %d are possible", options->count,
                         MESH_SUBDOMAINS_MAX);
    }
    out->coarse = mesh_cdt_create(pslg, log);
    if (out->coarse == NULL) {
        return -1;
    }
    out->coarse->head.grain = MESH_GRAIN;
    double needed = mesh_decomp_estimate(out, sizing);
    if (options->triangles_max > 0.0 && !(needed <= options->triangles_max)) {
        mesh_decomp_fini(out);
        return mesh_fail(log,
                         "%s: edges as short as asked need about %.2g triangles; at most %.2g fit "
                         "into the memory: expected a larger size, or smaller features",
                         pslg->name, needed, p.options->triangles_max);
    }
    double triangles = TRIANGLES_PER_PART * options->count;
    int rc = 1;
    for (int i = 0; i < COARSE_TRIES && rc == 1; i++, triangles *= 2.0) {
        rc = try_decompose(&p, triangles);
    }
    if (rc == 1) {
        rc = mesh_fail(log, "%s: %d sub-domains cannot be made: %d coarse triangles do not suffice",
                       pslg->name, options->count, out->coarse->head.tri_count);
    }
    if (rc != 0) {
        mesh_decomp_fini(out);
    }
    return rc;
}

void mesh_decomp_fini(mesh_decomp *d)
{
    mesh_sub_destroy(d->coarse);
    free(d->part);
    free(d->part_start);
    free(d->part_tri);
    free(d->cut_at);
    free(d->cut);
    *d = (mesh_decomp){0};
}
