#include "laplace/halo.h"

#include "common/check.h"

#include <stdio.h>
#include <stdlib.h>

static void move(const laplace_halo *h, ferry_mover *m)
{
    check(h->f, ferry_mover_start(m, NULL));
    check(h->f, ferry_mover_wait(m));
}

static void out(void *arg)
{
    const laplace_halo *h = arg;
    move(h, h->out);
}

static void back(void *arg)
{
    const laplace_halo *h = arg;
    move(h, h->back);
}

static double sum(void *arg, double value)
{
    const laplace_halo *h = arg;
    check(h->f, ferry_allreduce(h->f, FERRY_DOUBLE, FERRY_SUM, &value, &value, 1));
    return value;
}

void laplace_halo_bind(laplace_halo *h, ferry *f, laplace *l)
{
    *h = (laplace_halo){.f = f};
    const int64_t extent = l->count > 0 ? l->count : 1;
    const size_t count = (size_t)(l->count - l->own);
    const ferry_region line = ferry_region_sized(1, &extent);
    ferry_ghost *items = calloc(count + 1, sizeof *items);
    if (items == NULL)
        exit(1);
    for (size_t i = 0; i < count; i++)
        items[i] = (ferry_ghost){.local = l->own + (int64_t)i,
                                 .remote = l->ghosts[i].index,
                                 .owner = l->ghosts[i].owner};
    ferry_ghosts ghosts = {.items = items, .count = count};
    ferry_mover_options add = FERRY_MOVER_OPTIONS_DEFAULTS;
    add.operation.reduction = FERRY_SUM;
    check(h->f, ferry_grid_alloc(h->f, line, sizeof(double), &h->p));
    check(h->f, ferry_grid_alloc(h->f, line, sizeof(double), &h->y));
    check(h->f, ferry_mover_bind_ghosts(h->f, &ghosts, &h->p, &h->p, NULL, &h->out));
    ghosts.back = true;
    check(h->f, ferry_mover_bind_ghosts(h->f, &ghosts, &h->y, &h->y, &add, &h->back));
    free(items);
    l->p = h->p.data;
    l->y = h->y.data;
    l->out = out;
    l->back = back;
    l->sum = sum;
    l->arg = h;
}

void laplace_halo_free(laplace_halo *h)
{
    check(h->f, ferry_mover_free(h->out));
    check(h->f, ferry_mover_free(h->back));
    check(h->f, ferry_free(h->f, h->p.data));
    check(h->f, ferry_free(h->f, h->y.data));
}
