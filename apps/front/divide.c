/* Divides what is left by METIS, as a graph: sub-domains with an interface in common are linked.
 * The parts are then numbered so that few sub-domains move: the pair of a part and a rank that has
 * most of it comes first. */
#include "program.h"

#include <stdlib.h>

#ifdef FERRY_HAVE_METIS
#include <metis.h>

typedef struct graph {
    idx_t count;
    idx_t *vertex; /* by sub-domain; -1: it does not wait */
    idx_t *start, *to, *weight, *part;
} graph;

static void graph_fini(graph *g)
{
    free(g->vertex);
    free(g->start);
    free(g->to);
    free(g->weight);
    free(g->part);
}

static bool graph_init(graph *g, int32_t count)
{
    size_t room = (size_t)count + 1;
    *g = (graph){.vertex = malloc(room * sizeof *g->vertex),
                 .start = malloc(room * sizeof *g->start),
                 .to = malloc(6 * room * sizeof *g->to),
                 .weight = malloc(room * sizeof *g->weight),
                 .part = malloc(room * sizeof *g->part)};
    return g->vertex != NULL && g->start != NULL && g->to != NULL && g->weight != NULL &&
           g->part != NULL;
}

static void graph_fill(graph *g, const front_domain *d, const int64_t *weights,
                       const int32_t *owner)
{
    int32_t count = front_domain_count(d);
    idx_t links = 0;
    for (int32_t i = 0; i < count; i++)
        g->vertex[i] = owner[i] < 0 ? -1 : g->count++;
    for (int32_t i = 0; i < count; i++) {
        if (g->vertex[i] < 0)
            continue;
        g->start[g->vertex[i]] = links;
        g->weight[g->vertex[i]] = weights == NULL ? 1 : (idx_t)(1 + weights[i] / 8);
        for (int side = 0; side < 6; side++) {
            int32_t next = front_domain_neighbour(d, i, side / 2, side % 2);
            if (next >= 0 && g->vertex[next] >= 0)
                g->to[links++] = g->vertex[next];
        }
    }
    g->start[g->count] = links;
}

static bool graph_divide(graph *g, int ranks)
{
    idx_t constraints = 1, parts = ranks, cut, options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    return METIS_PartGraphRecursive(&g->count, &constraints, g->start, g->to, g->weight, NULL, NULL,
                                    &parts, NULL, NULL, options, &cut, g->part) == METIS_OK;
}

/* The rank of each part; `shared` counts what part i and rank j have in common, and is used up. */
static void name_parts(int ranks, int32_t *shared, int32_t *rank_of)
{
    for (int named = 0; named < ranks; named++) {
        int best = -1;
        for (int i = 0; i < ranks * ranks; i++)
            if (shared[i] >= 0 && (best < 0 || shared[i] > shared[best]))
                best = i;
        int part = best / ranks, rank = best % ranks;
        rank_of[part] = rank;
        for (int i = 0; i < ranks; i++)
            shared[part * ranks + i] = shared[i * ranks + rank] = -1;
    }
}

static bool assign(const graph *g, int32_t count, int ranks, int32_t *owner)
{
    int32_t *shared = calloc((size_t)ranks * (size_t)ranks, sizeof *shared);
    int32_t *rank_of = malloc((size_t)ranks * sizeof *rank_of);
    bool room = shared != NULL && rank_of != NULL;
    for (int32_t i = 0; room && i < count; i++)
        if (g->vertex[i] >= 0)
            shared[g->part[g->vertex[i]] * ranks + owner[i]]++;
    if (room)
        name_parts(ranks, shared, rank_of);
    for (int32_t i = 0; room && i < count; i++)
        if (g->vertex[i] >= 0)
            owner[i] = rank_of[g->part[g->vertex[i]]];
    free(shared);
    free(rank_of);
    return room;
}

bool front_repartition(const front_domain *d, const int64_t *weights, int ranks, int32_t *owner)
{
    graph g;
    int32_t count = front_domain_count(d);
    if (ranks == 1)
        return true;
    bool divided = graph_init(&g, count);
    if (divided) {
        graph_fill(&g, d, weights, owner);
        divided = g.count < ranks || (graph_divide(&g, ranks) && assign(&g, count, ranks, owner));
    }
    graph_fini(&g);
    return divided;
}

bool front_can_repartition(void)
{
    return true;
}
#else
bool front_repartition(const front_domain *d, const int64_t *weights, int ranks, int32_t *owner)
{
    (void)d;
    (void)weights;
    (void)ranks;
    (void)owner;
    return false;
}

bool front_can_repartition(void)
{
    return false;
}
#endif
