/* Cuts one sub-domain out of the coarse mesh. */
#include "decompose.h"
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

/* Shared edges are split until they are this much shorter than the size bound: edges of the refined
 * mesh are, on average, and so few are split while tasks run. */
#define PRESPLIT 0.7

typedef struct cutter {
    const mesh_decomp *d;
    mesh_sub *sub;
    int32_t index;
    int32_t *tri_map;   /* coarse triangle to ours, or -1 */
    int32_t *point_map; /* coarse point to ours, or -1 */
    int32_t *piece_map; /* coarse piece to ours, or -1 */
} cutter;

static int compare_ints(const void *a, const void *b)
{
    int32_t l = *(const int32_t *)a, r = *(const int32_t *)b;
    return (l > r) - (l < r);
}

static int32_t tri_total(const cutter *c)
{
    return c->d->part_start[c->index + 1] - c->d->part_start[c->index];
}

static int32_t coarse_tri(const cutter *c, int32_t i)
{
    return c->d->part_tri[c->d->part_start[c->index] + i];
}

static int copy_triangles(cutter *c)
{
    mesh_sub *sub = c->sub;
    const mesh_sub *coarse = c->d->coarse;
    int32_t count = tri_total(c);
    if (mesh_room_tris(sub, count + 2) != 0 || mesh_room_points(sub, 3 * count) != 0) {
        return -1;
    }
    for (int32_t k = 0; k < count; k++) {
        int32_t t = coarse_tri(c, k);
        c->tri_map[t] = k;
        for (int i = 0; i < 3; i++) {
            int32_t v = coarse->tri[t].v[i];
            if (c->point_map[v] < 0) {
                c->point_map[v] = mesh_add_point(sub, coarse->point[v]);
            }
            sub->tri[k].v[i] = c->point_map[v];
        }
    }
    sub->head.tri_count = count;
    return 0;
}

/* Shared edges come first, by ascending id, so that they can be found by bisection. */
static int add_shared_edges(cutter *c)
{
    int32_t count = 0, total = tri_total(c);
    int32_t *id = malloc((3 * (size_t)total + 1) * sizeof *id);
    if (id == NULL) {
        return -1;
    }
    for (int32_t k = 0; k < total; k++) {
        for (int32_t i = 0; i < 3; i++) {
            int32_t cut = c->d->cut_at[3 * coarse_tri(c, k) + i];
            if (cut >= 0) {
                id[count++] = cut;
            }
        }
    }
    qsort(id, (size_t)count, sizeof *id, compare_ints);
    int rc = 0;
    for (int32_t k = 0; k < count && rc == 0; k++) {
        const mesh_cut *cut = &c->d->cut[id[k]];
        int32_t other = cut->sub[0] == c->index ? cut->sub[1] : cut->sub[0];
        rc = mesh_add_edge(c->sub, (mesh_edge){id[k], other, cut->segment, 0}) < 0 ? -1 : 0;
    }
    c->sub->head.shared_count = count;
    free(id);
    return rc;
}

/* The piece at slot i of coarse triangle t and the side we see of it. */
static int32_t find_piece(cutter *c, int32_t t, int32_t i, int32_t *side)
{
    const mesh_sub *coarse = c->d->coarse;
    int32_t cut = c->d->cut_at[3 * t + i];
    if (cut >= 0) {
        *side = c->d->cut[cut].sub[0] == c->index ? 0 : 1;
        return 1 + mesh_sub_shared(c->sub, cut); /* piece 0 is none of them */
    }
    int32_t old = ~coarse->tri[t].n[i];
    *side = coarse->piece[old].tri[0] == t ? 0 : 1;
    if (c->piece_map[old] < 0) {
        int32_t segment = coarse->edge[coarse->piece[old].edge].segment;
        c->piece_map[old] = mesh_add_edge(c->sub, (mesh_edge){-1, -1, segment, 0});
    }
    return c->piece_map[old];
}

static int link_triangles(cutter *c)
{
    const mesh_sub *coarse = c->d->coarse;
    int32_t total = tri_total(c);
    for (int32_t k = 0; k < total; k++) {
        int32_t t = coarse_tri(c, k);
        for (int32_t i = 0; i < 3; i++) {
            int32_t n = coarse->tri[t].n[i];
            if (n >= 0 && c->d->cut_at[3 * t + i] < 0) {
                c->sub->tri[k].n[i] = c->tri_map[n];
                continue;
            }
            int32_t side, piece = find_piece(c, t, i, &side);
            if (piece < 0) {
                return -1;
            }
            c->sub->tri[k].n[i] = ~piece;
            c->sub->piece[piece].tri[side] = k;
        }
    }
    return 0;
}

/* Pieces made here are appended and met by the same loop. Both owners of an edge do the same. */
static int presplit(mesh_sub *sub, const mesh_sizing *sizing)
{
    for (int32_t p = 1; p < sub->head.piece_count; p++) {
        while (sub->piece[p].edge < sub->head.shared_count) {
            int32_t a, b;
            mesh_piece_ends(sub, p, &a, &b);
            mesh_point pa = sub->point[a], pb = sub->point[b], m = mesh_middle(pa, pb);
            double h = PRESPLIT * mesh_sizing_at(sizing, m.x, m.y);
            if ((double)mesh_length2(pa, pb) <= h * h || !mesh_can_halve(pa, pb)) {
                break;
            }
            if (mesh_halve(sub, p, NULL, NULL) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int build(cutter *c, const mesh_sizing *sizing)
{
    mesh_sub *sub = c->sub;
    if (sub == NULL || c->tri_map == NULL || c->point_map == NULL || c->piece_map == NULL) {
        return -1;
    }
    sub->head.index = c->index;
    if (copy_triangles(c) != 0 || add_shared_edges(c) != 0 || link_triangles(c) != 0 ||
        mesh_make_delaunay(sub) != 0 || presplit(sub, sizing) != 0) {
        return -1;
    }
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        if (mesh_queue_push(sub, t) != 0) {
            return -1;
        }
    }
    return 0;
}

static int32_t *new_map(int32_t count)
{
    size_t size = ((size_t)count + 1) * sizeof(int32_t);
    int32_t *map = malloc(size);
    if (map != NULL) {
        memset(map, -1, size);
    }
    return map;
}

mesh_sub *mesh_decomp_sub(const mesh_decomp *decomp, const mesh_sizing *sizing, int32_t index,
                          mesh_log *log)
{
    if (index < 0 || index >= decomp->count) {
        (void)mesh_fail(log, "sub-domain %d of %d", index, decomp->count);
        return NULL;
    }
    const mesh_sub_head *h = &decomp->coarse->head;
    cutter c = {decomp,
                mesh_sub_new(),
                index,
                new_map(h->tri_count),
                new_map(h->point_count),
                new_map(h->piece_count)};
    if (build(&c, sizing) != 0) {
        mesh_sub_destroy(c.sub);
        c.sub = NULL;
        (void)mesh_fail_memory(log);
    }
    free(c.tri_map);
    free(c.point_map);
    free(c.piece_map);
    return c.sub;
}
