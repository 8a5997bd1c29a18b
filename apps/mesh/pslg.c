/* Steps: place the grid; take vertices, segments and rings (pslg_input.c); find crossings
 * (pslg_cross.c); snap (pslg_snap.c); merge what fell together (pslg_merge.c); equal lengths at
 * small angles (pslg_shell.c). */
#include "pslg_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one element more of `size` bytes after `used` ones. */
static int grow(void **array, int32_t *room, int32_t used, size_t size, mesh_log *log)
{
    if (used < *room) {
        return 0;
    }
    size_t more = 2 * (size_t)*room + 16;
    void *bigger = realloc(*array, more * size);
    if (bigger == NULL) {
        return mesh_fail_memory(log);
    }
    *array = bigger;
    *room = (int32_t)more;
    return 0;
}

double pslg_distance(mesh_point a, mesh_point b, mesh_point p)
{
    double x = (double)b.x - a.x, y = (double)b.y - a.y;
    double along = (x * ((double)p.x - a.x) + y * ((double)p.y - a.y)) / (x * x + y * y);
    along = fmin(fmax(along, 0.0), 1.0);
    return hypot(a.x + along * x - p.x, a.y + along * y - p.y);
}

int32_t pslg_add_point(pslg_work *w, mesh_point p)
{
    mesh_pslg *o = w->out;
    if (grow((void **)&o->point, &w->point_room, o->point_count, sizeof p, w->log) != 0) {
        return -1;
    }
    o->point[o->point_count] = p;
    return o->point_count++;
}

int pslg_add_segment(pslg_work *w, mesh_segment s)
{
    mesh_pslg *o = w->out;
    if (grow((void **)&o->segment, &w->segment_room, o->segment_count, sizeof s, w->log) != 0) {
        return -1;
    }
    o->segment[o->segment_count++] = s;
    return 0;
}

int pslg_add_cover(pslg_work *w, mesh_cover c)
{
    mesh_pslg *o = w->out;
    if (grow((void **)&o->cover, &w->cover_room, o->cover_count, sizeof c, w->log) != 0) {
        return -1;
    }
    o->cover[o->cover_count++] = c;
    return 0;
}

int pslg_add_link(pslg_links *links, pslg_link link, mesh_log *log)
{
    if (grow((void **)&links->at, &links->room, links->count, sizeof link, log) != 0) {
        return -1;
    }
    links->at[links->count++] = link;
    return 0;
}

static int clean(pslg_work *w, const mesh_poly *poly)
{
    if (pslg_place_grid(poly, &w->out->frame, w->log) != 0 || pslg_take_input(w, poly) != 0 ||
        pslg_find_crossings(w) != 0 || pslg_snap(w) != 0 || pslg_merge(w) != 0 ||
        pslg_take_holes(w, poly) != 0) {
        return -1;
    }
    if (w->out->segment_count < 3) {
        return mesh_fail(w->log, "%s: %d segments are left; they enclose nothing", poly->name,
                         w->out->segment_count);
    }
    return pslg_make_shells(w);
}

int mesh_pslg_create(const mesh_poly *poly, mesh_pslg *out, mesh_log *log)
{
    pslg_work w = {.out = out, .log = log};
    *out = (mesh_pslg){0};
    size_t length = strlen(poly->name) + 1;
    out->name = malloc(length);
    int rc = out->name == NULL ? mesh_fail_memory(log) : 0;
    if (rc == 0) {
        memcpy(out->name, poly->name, length);
        rc = clean(&w, poly);
    }
    free(w.fine);
    free(w.hot);
    free(w.input.at);
    free(w.snapped.at);
    mesh_box_tree_fini(&w.tree);
    if (rc != 0) {
        mesh_pslg_fini(out);
    }
    return rc;
}

void mesh_pslg_fini(mesh_pslg *pslg)
{
    free(pslg->point);
    free(pslg->segment);
    free(pslg->cover);
    free(pslg->hole);
    free(pslg->name);
    *pslg = (mesh_pslg){0};
}

int mesh_sizing_make(const mesh_frame *frame, double size, const mesh_feature *feature,
                     int32_t count, mesh_sizing *out, mesh_log *log)
{
    if (!isfinite(size) || size <= 0.0) {
        return mesh_fail(log, "the size is %g, not a positive length", size);
    }
    if (count < 0 || count > MESH_FEATURES_MAX) {
        return mesh_fail(log, "%d features; at most %d are possible", count, MESH_FEATURES_MAX);
    }
    mesh_sizing s = {.size = size * frame->scale, .feature_count = count};
    for (int32_t i = 0; i < count; i++) {
        const mesh_feature *f = &feature[i];
        if (!isfinite(f->x) || !isfinite(f->y) || !isfinite(f->radius) || f->radius < 0.0 ||
            !isfinite(f->factor) || f->factor < 1.0) {
            return mesh_fail(
                log, "feature %g,%g,%g,%g: the radius must be at least 0, the factor at least 1",
                f->x, f->y, f->radius, f->factor);
        }
        /* Edges of less than a step of the grid are not made, whatever the factor. */
        s.feature[i] =
            (mesh_feature){(f->x - frame->x0) * frame->scale, (f->y - frame->y0) * frame->scale,
                           f->radius * frame->scale, fmin(f->factor, fmax(s.size, 1.0))};
    }
    *out = s;
    return 0;
}
