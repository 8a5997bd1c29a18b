/* The beginning: each rank makes as many bodies as any other, and sends each to its box's rank. */
#include <stdlib.h>
#include <string.h>

#include "fmm/fmm.h"

static uint32_t chunk_key(const void *arg, const body *b)
{
    const layout *l = arg;
    return l->chunk_of[layout_box_at(l, b->at)];
}

static uint32_t rank_key(const void *arg, const body *b)
{
    return (uint32_t)((const layout *)arg)->rank[chunk_key(arg, b)];
}

/* Makes this rank's part of all bodies, sorted by the rank where they belong. */
static body *make_bodies(const fmm *s, uint32_t *ends)
{
    const uint64_t count = (uint64_t)s->scene.count, ranks = (uint64_t)ferry_ranks(s->f);
    const uint64_t rank = (uint64_t)ferry_rank(s->f);
    const uint64_t first = count * rank / ranks, end = count * (rank + 1) / ranks;
    body *made = malloc((end - first + 1) * sizeof *made);
    fmm_need(s->f, made != NULL);
    for (uint64_t id = first; id < end; id++)
        made[id - first] = body_begin(&s->scene, id);
    fmm_need(s->f, bodies_sort(made, (uint32_t)(end - first), rank_key, &s->layout, (uint32_t)ranks,
                               ends));
    return made;
}

void fmm_begin(fmm *s)
{
    const size_t ranks = (size_t)ferry_ranks(s->f);
    uint32_t *ends = calloc(ranks, sizeof *ends);
    size_t *sizes = calloc(2 * ranks, sizeof *sizes), *in_sizes = sizes + ranks, all = 0;
    fmm_need(s->f, ends != NULL && sizes != NULL);
    body *made = make_bodies(s, ends);
    for (size_t r = 0; r < ranks; r++)
        sizes[r] = (ends[r] - (r > 0 ? ends[r - 1] : 0)) * sizeof(body);
    check(s->f, ferry_alltoall(s->f, sizes, sizeof *sizes, in_sizes));
    for (size_t r = 0; r < ranks; r++)
        all += in_sizes[r];
    free(s->begun);
    s->begun = malloc(all + 1);
    fmm_need(s->f, s->begun != NULL);
    check(s->f, ferry_alltoallv(s->f, made, sizes, s->begun, in_sizes));
    fmm_need(s->f, bodies_sort(s->begun, (uint32_t)(all / sizeof(body)), chunk_key, &s->layout,
                               s->layout.chunks, s->begun_end));
    free(made);
    free(ends);
    free(sizes);
}
