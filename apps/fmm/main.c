/* A fast multipole N-body simulation on objects that move, after prema.txt 7.4.
 *
 *   ferry run -n 2 build/apps/fmm --distribution clusters --speed 0.01 --steps 10 --check 1000
 *   ferry sim -n 32 build/apps/fmm --flops 1e9 --split weighted --no-balance
 *
 * Bodies attract each other by Newton's law in a cube of edge 1. The cube has 8^level boxes. Each
 * box is an adaptive tree of cells with expansions of order --order; a run of boxes is an object
 * (layout.h). With --split weighted each rank begins with the run of boxes that is best at the
 * start: a time step is run first, its operations are counted, and all begins anew. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/parameters.h"
#include "fmm/fmm.h"

enum { EQUAL, WEIGHTED };

typedef struct options {
    long order, leaf, level, chunk, check;
    double tolerance;
    int split;
    bool no_balance;
} options;

void fmm_need(ferry *f, bool got)
{
    if (got)
        return;
    fprintf(stderr, "fmm: rank %d: no memory\n", ferry_rank(f));
    exit(1);
}

/* Finds the best runs of boxes for the bodies as they begin. */
static void split_weighted(fmm *s)
{
    const long steps = s->steps;
    s->steps = 1;
    fmm_begin(s);
    (void)fmm_run(s, true);
    check(s->f, ferry_collection_destroy(s->parts));
    check(s->f,
          ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, s->flops, s->flops, s->layout.chunks));
    layout_split(&s->layout, s->flops);
    s->steps = steps;
}

static void print(fmm *s, const options *o, uint64_t took_ns)
{
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    check(s->f, ferry_stats_get(s->f, &stats));
    uint64_t sums[3] = {s->work_ns, stats.objects_out, stats.messages_forwarded}, most;
    check(s->f, ferry_allreduce(s->f, FERRY_UINT64, FERRY_MAX, &s->work_ns, &most, 1));
    check(s->f, ferry_allreduce(s->f, FERRY_UINT64, FERRY_SUM, sums, sums, 3));
    const double mean_ns = (double)sums[0] / ferry_ranks(s->f);
    if (ferry_rank(s->f) == 0)
        printf("scheduler %s, %d ranks, %ld bodies in %u boxes, %u chunks, order %d, %ld steps: "
               "%.3f ms per step, ratio %.3f, most work %.3f of the mean, %" PRIu64 " moves, "
               "%" PRIu64 " forwards\n",
               o->no_balance ? "off" : ferry_balance_scheduler(s->f), ferry_ranks(s->f),
               s->scene.count, s->layout.boxes, s->layout.chunks, s->method.order, s->steps,
               (double)took_ns / 1e6 / (double)s->steps, (double)took_ns / mean_ns,
               (double)most / mean_ns, sums[1], sums[2]);
}

static bool check_sums(fmm *s, const options *o)
{
    double errors[2];
    const bool there = fmm_compare(s, o->check, errors);
    const bool right = there && errors[0] <= o->tolerance && errors[1] <= o->tolerance;
    if (ferry_rank(s->f) == 0)
        printf("error of potentials %.2e, of accelerations %.2e, expected at most %.2e: %s\n",
               errors[0], errors[1], o->tolerance,
               right   ? "right"
               : there ? "WRONG"
                       : "WRONG, and bodies are lost or there twice");
    return right;
}

static int run(fmm *s, const options *o)
{
    bool right = true;
    fmm_need(s->f, layout_init(&s->layout, (int)o->level, ferry_ranks(s->f), (uint32_t)o->chunk));
    s->begun_end = calloc(s->layout.chunks, sizeof *s->begun_end);
    s->flops = calloc(s->layout.chunks, sizeof *s->flops);
    fmm_need(s->f, s->begun_end != NULL && s->flops != NULL);
    if (o->split == WEIGHTED)
        split_weighted(s);
    fmm_begin(s);
    if (!o->no_balance)
        check(s->f, ferry_balance_enable(s->f, true));
    const uint64_t took_ns = fmm_run(s, o->no_balance);
    if (!o->no_balance)
        check(s->f, ferry_balance_enable(s->f, false));
    print(s, o, took_ns);
    if (o->check != 0)
        right = check_sums(s, o);
    check(s->f, ferry_collection_destroy(s->parts));
    free(s->begun);
    free(s->begun_end);
    free(s->flops);
    layout_fini(&s->layout);
    return right ? 0 : 1;
}

static int read_options(fmm *s, int argc, char **argv, options *o)
{
    static const char *const distributions[] = {"uniform", "half", "clusters", NULL};
    static const char *const splits[] = {"equal", "weighted", NULL};
    scene *c = &s->scene;
    const parameter table[] = {
        {"bodies", "how many", 1, 1e8, .whole = &c->count},
        {"steps", "time steps", 1, 1e6, .whole = &s->steps},
        {"order", "of the expansions", 1, ORDER_MAX, .whole = &o->order},
        {"leaf", "bodies from which on a cell is divided", 1, 1e6, .whole = &o->leaf},
        {"level", "there are 8^level boxes", 0, 6, .whole = &o->level},
        {"chunk", "boxes of an object; 0: half of what is left, again and again", 0, 1e6,
         .whole = &o->chunk},
        {"distribution", "of the bodies", .choice = &c->distribution, .of = distributions},
        {"clusters", "how many", 1, 1e6, .whole = &c->clusters},
        {"radius", "of a cluster", 1e-3, 0.25, .real = &c->radius},
        {"speed", "of clusters, in edges of the cube per step", 0, 1, .real = &c->speed},
        {"pull", "what an acceleration of 1 adds to the speed in a step", 0, 1, .real = &c->pull},
        {"split", "boxes begin on ranks: as many on each, or as much work as far as can be",
         .choice = &o->split, .of = splits},
        {"no-balance", "every object where it was made", .flag = &o->no_balance},
        {"check", "compare so many bodies with direct sums", 0, 1e8, .whole = &o->check},
        {"tolerance", "of --check (0: what the order promises)", 0, 1, .real = &o->tolerance},
        COST_PARAMETER(&s->cost),
        {0},
    };
    return parameters_read(s->f, argc, argv, "Bodies that attract each other.", table);
}

/* The error that an order promises. Up to two thirds of it have been measured. */
static double promised(long order)
{
    return 0.09 * pow(0.4, (double)order);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    fmm s = {.f = f,
             .steps = 5,
             .method = {.softening = 1e-4},
             .scene = {.count = 20000, .clusters = 4, .radius = 0.03, .pull = 1e-7}};
    options o = {.order = 10, .leaf = 100, .level = 3, .chunk = 1};
    int status = read_options(&s, argc, argv, &o);
    if (status >= 0)
        return status;
    s.method.order = (int)o.order;
    s.method.leaf = (uint32_t)o.leaf;
    if (o.tolerance == 0)
        o.tolerance = promised(o.order);
    s.method.space = expansion_space_create();
    fmm_need(f, s.method.space != NULL);
    ferry_user_data_set(f, &s);
    status = run(&s, &o);
    free(s.method.space);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
