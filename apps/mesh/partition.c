/* Two ways to group: METIS on the dual graph, weighted by cut length, and recursive bisection
 * across the longer axis of inertia. */
#include "decompose.h"
#include "parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked_group {
    double along;
    int32_t group;
} ranked_group;

static int by_along(const void *a, const void *b)
{
    const ranked_group *l = a, *r = b;
    if (l->along != r->along) {
        return l->along < r->along ? -1 : 1;
    }
    return (l->group > r->group) - (l->group < r->group);
}

/* Ranks the groups along the axis in which they extend furthest. */
static void rank_groups(const mesh_parts *p, ranked_group *g, int32_t count)
{
    double w = 0.0, x = 0.0, y = 0.0, xx = 0.0, xy = 0.0, yy = 0.0;
    for (int32_t i = 0; i < count; i++) {
        double m = p->weight[g[i].group];
        w += m;
        x += m * p->x[g[i].group];
        y += m * p->y[g[i].group];
    }
    x /= w;
    y /= w;
    for (int32_t i = 0; i < count; i++) {
        double m = p->weight[g[i].group], dx = p->x[g[i].group] - x, dy = p->y[g[i].group] - y;
        xx += m * dx * dx;
        xy += m * dx * dy;
        yy += m * dy * dy;
    }
    double turn = 0.5 * atan2(2.0 * xy, xx - yy), c = cos(turn), s = sin(turn);
    for (int32_t i = 0; i < count; i++) {
        g[i].along = c * p->x[g[i].group] + s * p->y[g[i].group];
    }
    qsort(g, (size_t)count, sizeof *g, by_along);
}

static void bisect(mesh_parts *p, ranked_group *g, int32_t count, int32_t first, int32_t parts)
{
    if (parts == 1) {
        for (int32_t i = 0; i < count; i++) {
            p->part[g[i].group] = first;
        }
        return;
    }
    int32_t left_parts = parts / 2, left = 0;
    double total = 0.0, sum = 0.0;
    rank_groups(p, g, count);
    for (int32_t i = 0; i < count; i++) {
        total += p->weight[g[i].group];
    }
    /* Each side keeps at least one group per part. */
    while (
        left < count - (parts - left_parts) &&
        (left < left_parts || sum + 0.5 * p->weight[g[left].group] < total * left_parts / parts)) {
        sum += p->weight[g[left++].group];
    }
    bisect(p, g, left, first, left_parts);
    bisect(p, g + left, count - left, first + left_parts, parts - left_parts);
}

int mesh_partition_bisect(mesh_parts *p)
{
    ranked_group *g = malloc(((size_t)p->group_count + 1) * sizeof *g);
    if (g == NULL) {
        return -1;
    }
    for (int32_t i = 0; i < p->group_count; i++) {
        g[i] = (ranked_group){0.0, i};
    }
    bisect(p, g, p->group_count, 0, p->count);
    free(g);
    return 0;
}

int mesh_partition_split(mesh_parts *p, int32_t from, int32_t to)
{
    ranked_group *g = malloc(((size_t)p->group_count + 1) * sizeof *g);
    int32_t count = 0;
    double total = 0.0, sum = 0.0;
    if (g == NULL) {
        return -1;
    }
    for (int32_t i = 0; i < p->group_count; i++) {
        if (p->part[i] == from) {
            g[count++] = (ranked_group){0.0, i};
            total += p->weight[i];
        }
    }
    rank_groups(p, g, count);
    for (int32_t i = 0; i + 1 < count && (i == 0 || sum < 0.5 * total); i++) {
        sum += p->weight[g[i].group];
        p->part[g[i].group] = to;
    }
    free(g);
    return 0;
}

#ifdef FERRY_HAVE_METIS
#include <metis.h>

typedef struct graph {
    idx_t *start, *to, *length, *weight, *part;
} graph;

typedef struct link {
    int32_t from, to;
    double length;
} link;

static int by_link(const void *a, const void *b)
{
    const link *l = a, *r = b;
    if (l->from != r->from) {
        return l->from < r->from ? -1 : 1;
    }
    return (l->to > r->to) - (l->to < r->to);
}

/* All neighbouring pairs of groups, both ways, sorted; equal pairs merged. */
static int32_t list_links(const mesh_parts *p, link *list)
{
    const mesh_sub *s = p->coarse;
    int32_t count = 0, kept = 0;
    for (int32_t t = 0; t < s->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            int32_t n = mesh_across(s, t, i);
            if (n >= 0 && p->group[n] != p->group[t]) {
                const int32_t *v = s->tri[t].v;
                int64_t l2 = mesh_length2(s->point[v[mesh_next3(i)]], s->point[v[mesh_prev3(i)]]);
                list[count++] = (link){p->group[t], p->group[n], sqrt((double)l2)};
            }
        }
    }
    qsort(list, (size_t)count, sizeof *list, by_link);
    for (int32_t i = 0; i < count; i++) {
        if (kept > 0 && list[kept - 1].from == list[i].from && list[kept - 1].to == list[i].to) {
            list[kept - 1].length += list[i].length;
        } else {
            list[kept++] = list[i];
        }
    }
    return kept;
}

static void fill_graph(const mesh_parts *p, const link *list, int32_t links, graph *g)
{
    double heaviest = 0.0, longest = 0.0;
    for (int32_t i = 0; i < p->group_count; i++) {
        heaviest = fmax(heaviest, p->weight[i]);
        g->start[i + 1] = 0;
    }
    for (int32_t k = 0; k < links; k++) {
        longest = fmax(longest, list[k].length);
    }
    for (int32_t i = 0; i < p->group_count; i++) {
        g->weight[i] = 1 + (idx_t)(p->weight[i] / heaviest * 10000.0);
    }
    g->start[0] = 0;
    for (int32_t k = 0; k < links; k++) {
        g->start[list[k].from + 1]++;
        g->to[k] = list[k].to;
        g->length[k] = 1 + (idx_t)(list[k].length / longest * 1000.0);
    }
    for (int32_t i = 0; i < p->group_count; i++) {
        g->start[i + 1] += g->start[i];
    }
}

static int call_metis(mesh_parts *p, graph *g)
{
    idx_t groups = p->group_count, balances = 1, parts = p->count, cost;
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    options[METIS_OPTION_NUMBERING] = 0;
    int rc = METIS_PartGraphRecursive(&groups, &balances, g->start, g->to, g->weight, NULL,
                                      g->length, &parts, NULL, NULL, options, &cost, g->part);
    if (rc != METIS_OK) {
        return 1;
    }
    for (int32_t i = 0; i < p->group_count; i++) {
        p->part[i] = (int32_t)g->part[i];
    }
    return 0;
}

int mesh_partition_metis(mesh_parts *p)
{
    size_t groups = (size_t)p->group_count + 1, links = 3 * (size_t)p->coarse->head.tri_count + 1;
    link *list = malloc(links * sizeof *list);
    graph g = {malloc(groups * sizeof *g.start), malloc(links * sizeof *g.to),
               malloc(links * sizeof *g.length), malloc(groups * sizeof *g.weight),
               malloc(groups * sizeof *g.part)};
    int rc = -1;
    if (list != NULL && g.start != NULL && g.to != NULL && g.length != NULL && g.weight != NULL &&
        g.part != NULL) {
        int32_t count = list_links(p, list);
        fill_graph(p, list, count, &g);
        rc = call_metis(p, &g);
    }
    free(list);
    free(g.start);
    free(g.to);
    free(g.length);
    free(g.weight);
    free(g.part);
    return rc;
}

bool mesh_have_metis(void)
{
    return true;
}
#else
int mesh_partition_metis(mesh_parts *p)
{
    (void)p;
    return 1;
}

bool mesh_have_metis(void)
{
    return false;
}
#endif
