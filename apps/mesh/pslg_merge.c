/* Segments that fell together become one. It remembers how often each ring passes in either
 * direction. If all rings go back as often as forth and no wall lies there, the segment separates
 * nothing and vanishes: a spike, or a part of the input that is thinner than the grid. */
#include "pslg_work.h"

#include <stdlib.h>

#include "union_find.h"

typedef struct sorted_link {
    int32_t low, high, ring, index;
} sorted_link;

static int by_ends(const void *a, const void *b)
{
    const sorted_link *l = a, *r = b;
    if (l->low != r->low) {
        return l->low < r->low ? -1 : 1;
    }
    if (l->high != r->high) {
        return l->high < r->high ? -1 : 1;
    }
    if (l->ring != r->ring) {
        return l->ring < r->ring ? -1 : 1;
    }
    return (l->index > r->index) - (l->index < r->index);
}

typedef struct merger {
    pslg_work *w;
    sorted_link *order;
    mesh_segment *of; /* by link: the segment that it leads; a < 0 if it leads none */
    int32_t *parent;  /* union of the points that segments join */
    bool *walled;     /* by root point: a wall belongs to the set */
} merger;

static void note_copies(const merger *m, const sorted_link *first, int32_t count, int32_t leader,
                        bool kept)
{
    const pslg_work *w = m->w;
    for (int32_t i = 0; i < count; i++) {
        int32_t line = w->snapped.at[first[i].index].line;
        if (first[i].index == leader) {
            continue;
        }
        mesh_note(w->log,
                  kept ? "%s:%d: the same segment as on line %d: dropped"
                       : "%s:%d: goes back along the segment of line %d: a spike, dropped",
                  w->out->name, line, w->snapped.at[leader].line);
    }
}

/* Adds one cover entry for each ring of the group, as seen along the leader. Returns how many, or
 * -1. */
static int32_t add_covers(merger *m, const sorted_link *first, int32_t count, int32_t from)
{
    int32_t added = 0;
    for (int32_t i = 0, end; i < count; i = end) {
        int32_t net = 0;
        for (end = i; end < count && first[end].ring == first[i].ring; end++) {
            net += m->w->snapped.at[first[end].index].a == from ? 1 : -1;
        }
        if (first[i].ring >= 0 && net != 0) {
            if (pslg_add_cover(m->w, (mesh_cover){first[i].ring, net}) != 0) {
                return -1;
            }
            added++;
        }
    }
    return added;
}

/* Makes one segment of links with the same ends; their rings ascend, walls come first. */
static int merge_group(merger *m, const sorted_link *first, int32_t count)
{
    int32_t leader = first[0].index;
    for (int32_t i = 1; i < count; i++) {
        leader = first[i].index < leader ? first[i].index : leader;
    }
    const pslg_link *s = &m->w->snapped.at[leader];
    mesh_segment segment = {s->a, s->b, s->line, m->w->out->cover_count, 0};
    segment.cover_count = add_covers(m, first, count, s->a);
    if (segment.cover_count < 0) {
        return -1;
    }
    bool kept = segment.cover_count > 0 || first[0].ring < 0;
    note_copies(m, first, count, leader, kept);
    if (kept) {
        m->of[leader] = segment;
    }
    return 0;
}

static int merge_links(merger *m)
{
    const pslg_links *links = &m->w->snapped;
    for (int32_t i = 0; i < links->count; i++) {
        const pslg_link *s = &links->at[i];
        bool up = s->a < s->b;
        m->order[i] = (sorted_link){up ? s->a : s->b, up ? s->b : s->a, s->ring, i};
        m->of[i].a = -1;
    }
    qsort(m->order, (size_t)links->count, sizeof *m->order, by_ends);
    for (int32_t i = 0, end; i < links->count; i = end) {
        const sorted_link *first = &m->order[i];
        for (end = i; end < links->count && m->order[end].low == first->low &&
                      m->order[end].high == first->high;
             end++) {
        }
        if (merge_group(m, first, end - i) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Where a wall touches rings, the rings count as walls too: what all of them enclose is land. */
static void spread_walls(merger *m)
{
    pslg_links *links = &m->w->snapped;
    for (int32_t p = 0; p < m->w->out->point_count; p++) {
        m->parent[p] = p;
        m->walled[p] = false;
    }
    /* Links that were dropped join points too: all of a ring stays one set. */
    for (int32_t i = 0; i < links->count; i++) {
        m->parent[find_root(m->parent, links->at[i].a)] = find_root(m->parent, links->at[i].b);
    }
    for (int32_t i = 0; i < links->count; i++) {
        if (m->of[i].a >= 0 && m->of[i].cover_count == 0) {
            m->walled[find_root(m->parent, m->of[i].a)] = true;
        }
    }
    for (int32_t i = 0; i < links->count; i++) {
        pslg_link *s = &links->at[i];
        if (!m->walled[find_root(m->parent, s->a)]) {
            continue;
        }
        if (m->of[i].a >= 0) {
            m->of[i].cover_count = 0;
        }
        s->ring = s->ring >= 0 ? -2 - s->ring : s->ring;
    }
}

int pslg_merge(pslg_work *w)
{
    size_t links = (size_t)w->snapped.count + 1, points = (size_t)w->out->point_count;
    merger m = {.w = w};
    int rc = -1;
    m.order = malloc(links * sizeof *m.order);
    m.of = malloc(links * sizeof *m.of);
    m.parent = malloc(points * sizeof *m.parent);
    m.walled = malloc(points * sizeof *m.walled);
    if (m.order == NULL || m.of == NULL || m.parent == NULL || m.walled == NULL) {
        (void)mesh_fail_memory(w->log);
    } else if (merge_links(&m) == 0) {
        spread_walls(&m);
        rc = 0;
    }
    for (int32_t i = 0; rc == 0 && i < w->snapped.count; i++) {
        rc = m.of[i].a >= 0 ? pslg_add_segment(w, m.of[i]) : 0;
    }
    free(m.order);
    free(m.of);
    free(m.parent);
    free(m.walled);
    return rc;
}
