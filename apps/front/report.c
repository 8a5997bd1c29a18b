/* The report: a line for each rank, one for all, and whether the mesh is right. */
#include "program.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Rank 0 prints this of each rank. */
typedef struct line {
    double took_s, busy_s, runtime_s, helper_s;
    uint64_t meshed, in, out;
} line;

static line line_of(const front_program *p)
{
    return (line){
        .took_s = (double)p->took_ns * 1e-9,
        .busy_s = p->busy_s,
        .runtime_s = (double)(p->after.runtime_ns - p->before.runtime_ns) * 1e-9,
        .helper_s = (double)(p->after.helper_ns - p->before.helper_ns) * 1e-9,
        .meshed = p->totals.meshed,
        .in = p->after.objects_in - p->before.objects_in,
        .out = p->after.objects_out - p->before.objects_out,
    };
}

/* Sums over all ranks. 0 or FERRY_E... */
static int sum_totals(ferry *f, front_totals *t)
{
    uint64_t counts[7] = {t->meshed,     t->failed,  t->tets, t->points,
                          t->interfaces, t->checked, t->wrong};
    int error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, counts, counts, 7);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &t->volume, &t->volume, 1);
    *t = (front_totals){counts[0], counts[1], counts[2], counts[3],
                        counts[4], counts[5], counts[6], t->volume};
    return error;
}

static void print_ranks(const line *lines, int ranks)
{
    printf("%4s %11s %10s %11s %11s %5s %5s\n", "rank", "sub-domains", "busy s", "runtime s",
           "helper s", "in", "out");
    for (int i = 0; i < ranks; i++)
        printf("%4d %11" PRIu64 " %10.3f %11.6f %11.6f %5" PRIu64 " %5" PRIu64 "\n", i,
               lines[i].meshed, lines[i].busy_s, lines[i].runtime_s, lines[i].helper_s, lines[i].in,
               lines[i].out);
}

static void print_all(const front_program *p, const line *lines, int ranks)
{
    double makespan = 0, work = 0, squares = 0, least = lines[0].busy_s, most = 0;
    for (int i = 0; i < ranks; i++) {
        makespan = fmax(makespan, lines[i].took_s);
        work += lines[i].busy_s;
        squares += lines[i].busy_s * lines[i].busy_s;
        least = fmin(least, lines[i].busy_s);
        most = fmax(most, lines[i].busy_s);
    }
    double mean = work / ranks;
    printf("makespan %.3f s, work / ranks %.3f s, busy %.3f to %.3f s, deviation %.3f s, "
           "%d stops\n",
           makespan, mean, least, most, sqrt(fmax(0, squares / ranks - mean * mean)),
           p->rounds > 0 ? p->rounds - 1 : 0);
}

static uint64_t interface_count(const front_domain *d)
{
    uint64_t count = 0;
    for (int axis = 0; axis < 3; axis++)
        count += (uint64_t)(d->parts[axis] - 1) * (uint64_t)front_domain_count(d) /
                 (uint64_t)d->parts[axis];
    return count;
}

/* Whether everything was checked and is right; says so. */
static bool verdict(const front_program *p)
{
    const front_domain *d = &p->options.domain;
    const front_totals *all = &p->totals;
    double whole = (double)d->cubes[0] * d->cubes[1] * d->cubes[2];
    bool right = all->wrong == 0 && all->checked == (uint64_t)front_domain_count(d) &&
                 all->interfaces == interface_count(d) &&
                 fabs(all->volume - whole) <= whole * FRONT_VOLUME_TOLERANCE;
    printf("%" PRIu64 " points, %" PRIu64 " of %" PRIu64 " interfaces match, volume %.12g of %g: "
           "%s\n",
           all->points, all->interfaces, interface_count(d), all->volume, whole,
           right ? "right" : "WRONG");
    return right;
}

/* Rank 0's part. The exit status. */
static int print(const front_program *p, const line *lines, int ranks)
{
    const front_totals *all = &p->totals;
    print_ranks(lines, ranks);
    print_all(p, lines, ranks);
    if (p->options.replay == NULL)
        printf("%" PRIu64 " tetrahedra in %" PRIu64 " sub-domains\n", all->tets, all->meshed);
    bool right = !p->options.check || verdict(p);
    if (all->failed > 0)
        fprintf(stderr, "front: %" PRIu64 " of %d sub-domains could not be meshed\n", all->failed,
                front_domain_count(&p->options.domain));
    return all->failed > 0 || !right ? 1 : 0;
}

int front_report(ferry *f, front_program *p)
{
    int ranks = ferry_ranks(f);
    line own = line_of(p), *lines = malloc((size_t)ranks * sizeof *lines);
    int error = lines == NULL ? FERRY_ENOMEM : sum_totals(f, &p->totals);
    if (error == 0)
        error = ferry_gather(f, 0, &own, sizeof own, lines);
    int status = error != 0 || p->totals.failed > 0;
    if (error == 0 && ferry_rank(f) == 0)
        status = print(p, lines, ranks);
    if (error != 0)
        fprintf(stderr, "front: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    free(lines);
    return status;
}
