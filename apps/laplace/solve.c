#include "laplace/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "laplace/mesh.h"

/* A node that is somebody else's, and its number in the mesh. */
typedef struct stranger {
    laplace_ghost ghost;
    int32_t node;
} stranger;

static int by_owner(const void *a, const void *b)
{
    const laplace_ghost *s = &((const stranger *)a)->ghost, *t = &((const stranger *)b)->ghost;
    return s->owner != t->owner ? (s->owner > t->owner) - (s->owner < t->owner)
                                : (s->index > t->index) - (s->index < t->index);
}

/* Own nodes first, in the order of their numbers, then ghosts: all others at own triangles. `local`
 * gets each node's place here. */
static void number_nodes(laplace *l, const laplace_mesh *m, int rank, int ranks, int32_t *local)
{
    stranger *others = laplace_memory(m->nodes, sizeof *others);
    for (int64_t i = 0; i < m->nodes; i++) {
        local[i] = m->owner[i] == rank ? m->index[i] : -1;
        l->own += m->owner[i] == rank;
    }
    int64_t found = 0;
    for (int64_t i = 0; i < 3 * m->triangles; i++) {
        int32_t node = m->corner[i];
        if (laplace_rank_of(m, i / 3, ranks) != rank || local[node] >= 0)
            continue;
        local[node] = 0;
        others[found++] = (stranger){.ghost = {m->owner[node], m->index[node]}, .node = node};
    }
    qsort(others, (size_t)found, sizeof *others, by_owner);
    l->count = l->own + found;
    l->ghosts = laplace_memory(found, sizeof *l->ghosts);
    for (int64_t i = 0; i < found; i++) {
        l->ghosts[i] = others[i].ghost;
        local[others[i].node] = (int32_t)(l->own + i);
    }
    free(others);
}

static laplace_element element_of(const laplace_mesh *m, int64_t triangle, const int32_t *local)
{
    laplace_element e;
    const double *at[3];
    double b[3], c[3];
    for (int i = 0; i < 3; i++) {
        int32_t node = m->corner[3 * triangle + i];
        e.node[i] = local[node];
        at[i] = m->place + 3 * (int64_t)m->point_of[node];
    }
    for (int i = 0; i < 3; i++) {
        b[i] = at[(i + 1) % 3][1] - at[(i + 2) % 3][1];
        c[i] = at[(i + 2) % 3][0] - at[(i + 1) % 3][0];
    }
    double twice_area = fabs(b[0] * c[1] - b[1] * c[0]);
    for (int i = 0; i < 3; i++) {
        int next = (i + 1) % 3;
        e.a[i] = (b[i] * b[i] + c[i] * c[i]) / (2 * twice_area);
        e.a[3 + i] = (b[i] * b[next] + c[i] * c[next]) / (2 * twice_area);
    }
    return e;
}

void laplace_init(laplace *l, const char *path, int rank, int ranks)
{
    laplace_mesh m = {0};
    laplace_mesh_init(&m, path, ranks);
    *l = (laplace){.nodes = m.nodes, .triangles = m.triangles};
    int32_t *local = laplace_memory(m.nodes, sizeof *local);
    number_nodes(l, &m, rank, ranks, local);
    l->elements = laplace_memory(m.triangles, sizeof *l->elements);
    for (int64_t t = 0; t < m.triangles; t++)
        if (laplace_rank_of(&m, t, ranks) == rank)
            l->elements[l->element_count++] = element_of(&m, t, local);
    l->edge = laplace_memory(l->own, 1);
    l->exact = laplace_memory(l->own, sizeof *l->exact);
    l->u = laplace_memory(l->own, sizeof *l->u);
    l->r = laplace_memory(l->own, sizeof *l->r);
    for (int64_t i = 0; i < m.nodes; i++) {
        const double *at = m.place + 3 * (int64_t)m.point_of[i];
        if (m.owner[i] != rank)
            continue;
        l->edge[local[i]] = m.edge[i];
        l->exact[local[i]] = at[0] + 2 * at[1];
    }
    free(local);
    laplace_mesh_fini(&m);
}

void laplace_fini(laplace *l)
{
    void *all[] = {l->ghosts, l->elements, l->edge, l->exact, l->u, l->r};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* y = A p inside the domain, 0 on its edge. */
static void apply(const laplace *l)
{
    const double *p = l->p;
    double *y = l->y;
    l->out(l->arg);
    memset(y, 0, (size_t)l->count * sizeof *y);
    for (int64_t t = 0; t < l->element_count; t++) {
        const laplace_element *e = &l->elements[t];
        const double v[3] = {p[e->node[0]], p[e->node[1]], p[e->node[2]]};
        y[e->node[0]] += e->a[0] * v[0] + e->a[3] * v[1] + e->a[5] * v[2];
        y[e->node[1]] += e->a[3] * v[0] + e->a[1] * v[1] + e->a[4] * v[2];
        y[e->node[2]] += e->a[5] * v[0] + e->a[4] * v[1] + e->a[2] * v[2];
    }
    l->back(l->arg);
    for (int64_t i = 0; i < l->own; i++)
        if (l->edge[i])
            y[i] = 0;
}

static double dot(const laplace *l, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < l->own; i++)
        sum += a[i] * b[i];
    return l->sum(l->arg, sum);
}

/* Puts u in p, and its residual, -A u, in r; returns the residual's square. */
static double residual(laplace *l)
{
    memcpy(l->p, l->u, (size_t)l->own * sizeof *l->p);
    apply(l);
    for (int64_t i = 0; i < l->own; i++)
        l->r[i] = -l->y[i];
    return dot(l, l->r, l->r);
}

void laplace_begin(laplace *l)
{
    for (int64_t i = 0; i < l->own; i++)
        l->u[i] = l->edge[i] ? l->exact[i] : 0;
    l->rr = l->first = residual(l);
    memcpy(l->p, l->r, (size_t)l->own * sizeof *l->p);
}

double laplace_step(laplace *l)
{
    double *p = l->p, *y = l->y;
    apply(l);
    double alpha = l->rr / dot(l, p, y);
    for (int64_t i = 0; i < l->own; i++) {
        l->u[i] += alpha * p[i];
        l->r[i] -= alpha * y[i];
    }
    double next = dot(l, l->r, l->r);
    for (int64_t i = 0; i < l->own; i++)
        p[i] = l->r[i] + next / l->rr * p[i];
    l->rr = next;
    return sqrt(next / l->first);
}

double laplace_error(const laplace *l)
{
    double off = 0, all = 0;
    for (int64_t i = 0; i < l->own; i++) {
        off += (l->u[i] - l->exact[i]) * (l->u[i] - l->exact[i]);
        all += l->exact[i] * l->exact[i];
    }
    return sqrt(l->sum(l->arg, off) / l->sum(l->arg, all));
}

double laplace_residual(laplace *l)
{
    return sqrt(residual(l) / l->first);
}
