/* SUMMA: C = A B on a grid of ranks. In every step, movers bring a panel of columns of A to all
 * ranks of a row, and a panel of rows of B to all ranks of a column. Meanwhile the ranks multiply
 * the panels of the step before.
 *
 * ferry run -n 4 build/apps/summa [N [PANEL]]
 *
 * The panels are xarrays whose blocks overlap: each rank has its own copy of what its row or column
 * shares. Checks every element of C against a closed form. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/cost.h"
#include "common/parameters.h"
#include <ferry/mover.h>

typedef struct solver {
    ferry *f;
    int64_t n, panel, steps;
    ferry_point grid; /* of ranks */
    ferry_xarray *a, *b, *c;
    ferry_xarray *columns[2], *rows[2]; /* panels of A and B, for even and odd steps */
    ferry_mover **get_columns, **get_rows;
    cost cost;
} solver;

static ferry_xarray *make_array(ferry *f, const ferry_floorplan *blocks)
{
    ferry_xarray *x;
    check(f, ferry_xarray_create(f, blocks, sizeof(double), ferry_point_all(0), &x));
    return x;
}

/* Panels: block i as wide as the matrices' block i in one dimension, `panel` in dimension `d`. */
static ferry_xarray *make_panels(const solver *s, int d)
{
    ferry_floorplan blocks;
    check(s->f, ferry_floorplan_copy(&s->c->blocks, &blocks));
    for (size_t i = 0; i < blocks.count; i++) {
        blocks.blocks[i].region.low.at[d] = 0;
        blocks.blocks[i].region.high.at[d] = s->panel - 1;
    }
    ferry_xarray *x = make_array(s->f, &blocks);
    ferry_floorplan_fini(&blocks);
    return x;
}

/* The mover of step `k`: columns (d = 1) or rows (d = 0) from k * panel on. */
static ferry_mover *bind_step(const solver *s, ferry_xarray *from, ferry_xarray *to, int d,
                              int64_t k)
{
    ferry_intersection meeting = FERRY_INTERSECTION_DEFAULTS;
    ferry_plan plan = {0};
    ferry_mover *m;
    meeting.shift.at[d] = k * s->panel;
    check(s->f,
          ferry_plan_intersect(&plan, &from->blocks, &to->blocks, &meeting, ferry_rank(s->f)));
    check(s->f, ferry_mover_bind(s->f, &plan, from, to, NULL, &m));
    ferry_plan_fini(&plan);
    return m;
}

static void solver_init(solver *s)
{
    ferry *f = s->f;
    ferry_floorplan blocks;
    const ferry_region square = ferry_region_sized(2, (int64_t[]){s->n, s->n});
    s->grid = ferry_floorplan_parts(square, ferry_ranks(f));
    check(f, ferry_floorplan_cut(square, s->grid, &blocks));
    check(f, ferry_floorplan_map_grid(&blocks, s->grid, s->grid));
    s->a = make_array(f, &blocks);
    s->b = make_array(f, &blocks);
    s->c = make_array(f, &blocks);
    ferry_floorplan_fini(&blocks);
    for (int i = 0; i < 2; i++) {
        s->columns[i] = make_panels(s, 1);
        s->rows[i] = make_panels(s, 0);
    }
    s->get_columns = calloc((size_t)s->steps, sizeof(ferry_mover *));
    s->get_rows = calloc((size_t)s->steps, sizeof(ferry_mover *));
    if (s->get_columns == NULL || s->get_rows == NULL)
        exit(1);
    for (int64_t k = 0; k < s->steps; k++) {
        s->get_columns[k] = bind_step(s, s->a, s->columns[k % 2], 1, k);
        s->get_rows[k] = bind_step(s, s->b, s->rows[k % 2], 0, k);
    }
}

static void solver_fini(solver *s)
{
    for (int64_t k = 0; k < s->steps; k++) {
        check(s->f, ferry_mover_free(s->get_columns[k]));
        check(s->f, ferry_mover_free(s->get_rows[k]));
    }
    free(s->get_columns);
    free(s->get_rows);
    ferry_xarray *arrays[] = {s->a,          s->b,       s->c,      s->columns[0],
                              s->columns[1], s->rows[0], s->rows[1]};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ferry_xarray_destroy(arrays[i]);
}

/* A(i, j) = i + j and B(i, j) = i - j. */
static void fill(const solver *s)
{
    for (size_t i = 0; i < s->a->local_count; i++) {
        const ferry_grid *a = &s->a->grids[i], *b = &s->b->grids[i];
        ferry_point p = a->region.low;
        do {
            *(double *)ferry_grid_at(a, p) = (double)(p.at[0] + p.at[1]);
            *(double *)ferry_grid_at(b, p) = (double)(p.at[0] - p.at[1]);
        } while (ferry_region_next(&a->region, &p));
    }
}

/* C += panel of A times panel of B, four rows of B at a time. */
static void multiply(solver *s, int which)
{
    for (size_t g = 0; g < s->c->local_count; g++) {
        const ferry_grid *c = &s->c->grids[g];
        const double *a = s->columns[which]->grids[g].data, *b = s->rows[which]->grids[g].data;
        int64_t height = (int64_t)ferry_region_extent(c->region, 0);
        int64_t width = (int64_t)ferry_region_extent(c->region, 1);
        for (int64_t i = 0; i < height; i++) {
            double *restrict row = (double *)c->data + i * width;
            int64_t k = 0;
            for (; k + 4 <= s->panel; k += 4) {
                const double *w = a + i * s->panel + k, *v = b + k * width;
                for (int64_t j = 0; j < width; j++)
                    row[j] += w[0] * v[j] + w[1] * v[width + j] + w[2] * v[2 * width + j] +
                              w[3] * v[3 * width + j];
            }
            for (; k < s->panel; k++)
                for (int64_t j = 0; j < width; j++)
                    row[j] += a[i * s->panel + k] * b[k * width + j];
        }
        cost_add(&s->cost, 2 * (double)(height * width * s->panel));
    }
    cost_spend(&s->cost, s->f);
}

static void start(const solver *s, int64_t k)
{
    check(s->f, ferry_mover_start(s->get_columns[k], NULL));
    check(s->f, ferry_mover_start(s->get_rows[k], NULL));
}

static void run(solver *s)
{
    start(s, 0);
    for (int64_t k = 0; k < s->steps; k++) {
        cost_communication_begins(&s->cost, s->f);
        check(s->f, ferry_mover_wait(s->get_columns[k]));
        check(s->f, ferry_mover_wait(s->get_rows[k]));
        if (k + 1 < s->steps)
            start(s, k + 1);
        cost_communication_ends(&s->cost, s->f);
        multiply(s, (int)(k % 2));
    }
}

/* How many elements of C are wrong, over all ranks: sum over k of (i + k)(k - j). */
static int64_t count_wrong(const solver *s)
{
    const double n = (double)s->n, sum = n * (n - 1) / 2, squares = sum * (2 * n - 1) / 3;
    int64_t wrong = 0;
    for (size_t g = 0; g < s->c->local_count; g++) {
        const ferry_grid *c = &s->c->grids[g];
        ferry_point p = c->region.low;
        do {
            double i = (double)p.at[0], j = (double)p.at[1];
            double expected = squares + (i - j) * sum - n * i * j;
            wrong += *(double *)ferry_grid_at(c, p) != expected;
        } while (ferry_region_next(&c->region, &p));
    }
    check(s->f, ferry_allreduce(s->f, FERRY_INT64, FERRY_SUM, &wrong, &wrong, 1));
    return wrong;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long n = 512, panel = 64;
    solver s = {.f = f};
    const parameter table[] = {
        {"N", "rows of the matrices", 1, 8192, .whole = &n},
        {"PANEL", "columns of a panel: N is a multiple of it", 1, 8192, .whole = &panel},
        COST_PARAMETER(&s.cost),
        {0},
    };
    int status = parameters_read(f, argc, argv, "Multiplies two matrices.", table);
    if (status >= 0)
        return status;
    if (n % panel != 0) {
        if (ferry_rank(f) == 0)
            fprintf(stderr, "summa: N is %ld: expected a multiple of PANEL, %ld\n", n, panel);
        return 2;
    }
    s.n = n;
    s.panel = panel;
    s.steps = s.n / s.panel;
    solver_init(&s);
    fill(&s);
    check(f, ferry_barrier(f));
    uint64_t begin = ferry_now(f);
    run(&s);
    check(f, ferry_barrier(f));
    double seconds = (double)(ferry_now(f) - begin) * 1e-9, rows = (double)s.n;
    int64_t wrong = count_wrong(&s);
    double communication = cost_communication_s(&s.cost, f);
    if (ferry_rank(f) == 0)
        printf("%lld^2 on %lld x %lld ranks: %.6f s, %.2f Gflop/s, %lld elements wrong, "
               "communication %.6f s\n",
               (long long)s.n, (long long)s.grid.at[0], (long long)s.grid.at[1], seconds,
               2 * rows * rows * rows / seconds * 1e-9, (long long)wrong, communication);
    solver_fini(&s);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
