/* MPI's side of AMR, by hand. After each change every rank lists what it copies within its memory,
 * packs for each other rank, and unpacks from it. There is one message per neighbour and movement,
 * which is in flight while the copies within are made. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#include "peers/apps_amr.h"
#include "peers/mover_apps.h"
#include "peers/mover_mpi_side.h"

enum {
    TILE = BENCH_AMR_TILE,
    WIDE = TILE + 2,
    TILE_SIZE = WIDE * WIDE,
    FINE_WIDE = BENCH_AMR_FINE + 2,
    FINE_SIZE = FINE_WIDE * FINE_WIDE
};

/* A row or column of values, or of sums of pairs of values. */
typedef struct piece {
    double *to;
    const double *from;
    int count, to_stride, from_stride;
    bool pairs;
} piece;

/* A growing list. */
typedef struct pieces {
    piece *items;
    int count, capacity, values;
} pieces;

/* The parts of one movement. */
typedef struct movement {
    pieces within, *in, *out; /* per rank */
    double **in_buffer, **out_buffer;
    MPI_Request *requests;
    MPI_Status *statuses;
} movement;

typedef struct solver {
    bench_amr app;
    movement halo[2], edges;
} solver;

static void add(pieces *list, piece p)
{
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 16;
        list->items = realloc(list->items, (size_t)list->capacity * sizeof *list->items);
        if (!list->items)
            exit(1);
    }
    list->items[list->count++] = p;
    list->values += p.count;
}

static void movement_init(movement *m, int ranks)
{
    const size_t count = (size_t)ranks;
    *m = (movement){.in = bench_memory(count, sizeof *m->in),
                    .out = bench_memory(count, sizeof *m->out)};
    m->in_buffer = bench_memory(count, sizeof *m->in_buffer);
    m->out_buffer = bench_memory(count, sizeof *m->out_buffer);
    m->requests = bench_memory(2 * count, sizeof *m->requests);
    m->statuses = bench_memory(2 * count, sizeof *m->statuses);
}

static void movement_clear(movement *m, int ranks)
{
    m->within.count = m->within.values = 0;
    for (int r = 0; r < ranks; r++) {
        m->in[r].count = m->in[r].values = m->out[r].count = m->out[r].values = 0;
        free(m->in_buffer[r]);
        free(m->out_buffer[r]);
        m->in_buffer[r] = m->out_buffer[r] = NULL;
    }
}

/* When all pieces are listed. */
static void movement_ready(movement *m, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        m->in_buffer[r] = bench_memory((size_t)m->in[r].values, sizeof(double));
        m->out_buffer[r] = bench_memory((size_t)m->out[r].values, sizeof(double));
    }
}

static void movement_fini(movement *m, int ranks)
{
    movement_clear(m, ranks);
    free(m->within.items);
    for (int r = 0; r < ranks; r++) {
        free(m->in[r].items);
        free(m->out[r].items);
    }
    free(m->in);
    free(m->out);
    free(m->in_buffer);
    free(m->out_buffer);
    free(m->requests);
    free(m->statuses);
}

/* Lists a piece from rank `from` to rank `to`, one of which may be another. */
static void list(const bench_amr *a, movement *m, int to, int from, piece p)
{
    if (to == a->rank && from == a->rank)
        add(&m->within, p);
    else if (to == a->rank)
        add(&m->in[from], p);
    else if (from == a->rank)
        add(&m->out[to], p);
}

static void copy(const piece *p, double *restrict to, int to_stride, const double *restrict from,
                 int from_stride)
{
    if (p->pairs)
        for (int k = 0; k < p->count; k++)
            to[k * to_stride] = from[2 * k * from_stride] + from[(2 * k + 1) * from_stride];
    else if (to_stride == 1 && from_stride == 1)
        memcpy(to, from, (size_t)p->count * sizeof *to);
    else
        for (int k = 0; k < p->count; k++)
            to[k * to_stride] = from[k * from_stride];
}

static void pack(const pieces *out, double *buffer)
{
    for (int i = 0; i < out->count; i++) {
        const piece *p = &out->items[i];
        copy(p, buffer, 1, p->from, p->from_stride);
        buffer += p->count;
    }
}

static void unpack(const pieces *in, const double *buffer)
{
    for (int i = 0; i < in->count; i++) {
        piece p = in->items[i];
        p.pairs = false;
        copy(&p, p.to, p.to_stride, buffer, 1);
        buffer += p.count;
    }
}

static void move(const movement *m, int ranks, int tag)
{
    int count = 0;
    for (int r = 0; r < ranks; r++)
        if (m->in[r].count)
            MPI_Irecv(m->in_buffer[r], m->in[r].values, MPI_DOUBLE, r, tag, MPI_COMM_WORLD,
                      &m->requests[count++]);
    for (int r = 0; r < ranks; r++)
        if (m->out[r].count) {
            pack(&m->out[r], m->out_buffer[r]);
            MPI_Isend(m->out_buffer[r], m->out[r].values, MPI_DOUBLE, r, tag, MPI_COMM_WORLD,
                      &m->requests[count++]);
        }
    for (int i = 0; i < m->within.count; i++) {
        const piece *p = &m->within.items[i];
        copy(p, p->to, p->to_stride, p->from, p->from_stride);
    }
    MPI_Waitall(count, m->requests, m->statuses);
    for (int r = 0; r < ranks; r++)
        unpack(&m->in[r], m->in_buffer[r]);
}

static void halo(void *arg, bool fine)
{
    const solver *s = arg;
    move(&s->halo[fine], s->app.ranks, 1 + fine);
}

static void edges(void *arg)
{
    const solver *s = arg;
    move(&s->edges, s->app.ranks, 3);
}

static void most(void *arg, int64_t *values, int count)
{
    (void)arg;
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
}

static double sum(void *arg, double value)
{
    (void)arg;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

/* An element of a block, which may be elsewhere. */
static double *at(double *block, ptrdiff_t offset)
{
    return block ? block + offset : NULL;
}

/* Faces of all blocks of a level; every rank lists them in one order. */
static void list_halo(solver *s, bool fine)
{
    bench_amr *a = &s->app;
    movement *m = &s->halo[fine];
    const int wide = fine ? FINE_WIDE : WIDE, cells = wide - 2;
    double **blocks = fine ? a->blocks : a->coarse;
    movement_clear(m, a->ranks);
    for (int t = 0; t < a->n * a->n; t++)
        for (int side = 0; side < 4; side++) {
            const int d = side / 2, across = d == 0 ? wide : 1, along = d == 0 ? 1 : wide;
            const int from = bench_amr_beside(a, t, d, side % 2 ? 1 : -1);
            if (fine && !(a->fine[t] && a->fine[from]))
                continue;
            piece p = {.count = cells, .to_stride = along, .from_stride = along};
            p.to = at(blocks[t], along + (side % 2 ? cells + 1 : 0) * across);
            p.from = at(blocks[from], along + (side % 2 ? 1 : cells) * across);
            list(a, m, a->owner[t], a->owner[from], p);
        }
    movement_ready(m, a->ranks);
}

static void list_edges(solver *s)
{
    bench_amr *a = &s->app;
    movement_clear(&s->edges, a->ranks);
    for (int t = 0; t < a->n * a->n; t++)
        for (int d = 0; d < 2; d++) {
            const int across = d == 0 ? FINE_WIDE : 1, along = d == 0 ? 1 : FINE_WIDE;
            const int from = bench_amr_beside(a, t, d, -1);
            if (a->fine[t] || !a->fine[from])
                continue;
            piece p = {.to = a->edge[d][t], .count = TILE, .to_stride = 1, .from_stride = along};
            p.from = at(a->blocks[from], along + BENCH_AMR_FINE * across);
            p.pairs = true;
            list(a, &s->edges, a->owner[t], a->owner[from], p);
        }
    movement_ready(&s->edges, a->ranks);
}

/* Brings a level's blocks that there were and shall be to their new owners, each in a message. */
static void move_blocks(const bench_amr *a, double **blocks, size_t size, const int *owner,
                        const char *had, const char *has)
{
    const int count = a->n * a->n;
    MPI_Request *requests = bench_memory((size_t)count, sizeof *requests);
    MPI_Status *statuses = bench_memory((size_t)count, sizeof *statuses);
    double **old = bench_memory((size_t)count, sizeof *old);
    int under_way = 0;
    for (int t = 0; t < count; t++) {
        const bool here = owner[t] == a->rank && (!has || has[t]);
        old[t] = blocks[t];
        if (here && old[t])
            continue;
        blocks[t] = here ? bench_memory(size, sizeof(double)) : NULL;
        if (had && !(had[t] && has[t]))
            continue;
        if (here && a->owner[t] != a->rank)
            MPI_Irecv(blocks[t], (int)size, MPI_DOUBLE, a->owner[t], 4 + t, MPI_COMM_WORLD,
                      &requests[under_way++]);
        else if (old[t] && owner[t] != a->rank)
            MPI_Isend(old[t], (int)size, MPI_DOUBLE, owner[t], 4 + t, MPI_COMM_WORLD,
                      &requests[under_way++]);
    }
    MPI_Waitall(under_way, requests, statuses);
    for (int t = 0; t < count; t++)
        if (old[t] != blocks[t])
            free(old[t]);
    free(old);
    free(requests);
    free(statuses);
}

static void place_edges(bench_amr *a)
{
    for (int d = 0; d < 2; d++)
        for (int t = 0; t < a->n * a->n; t++) {
            if (a->owner[t] == a->rank && !a->edge[d][t])
                a->edge[d][t] = bench_memory(TILE, sizeof(double));
            if (a->owner[t] != a->rank && a->edge[d][t]) {
                free(a->edge[d][t]);
                a->edge[d][t] = NULL;
            }
        }
}

static void change(void *arg, const int *owner, const char *fine)
{
    solver *s = arg;
    bench_amr *a = &s->app;
    const size_t count = (size_t)(a->n * a->n);
    const bool moved = memcmp(owner, a->owner, count * sizeof *owner) != 0;
    if (moved)
        move_blocks(a, a->coarse, TILE_SIZE, owner, NULL, NULL);
    move_blocks(a, a->blocks, FINE_SIZE, owner, a->fine, fine);
    memmove(a->owner, owner, count * sizeof *owner);
    memcpy(a->fine, fine, count);
    place_edges(a);
    list_halo(s, false);
    list_halo(s, true);
    list_edges(s);
}

static void solver_init(solver *s, int n)
{
    bench_amr *a = &s->app;
    bench_amr_init(a, n);
    for (int t = 0; t < n * n; t++)
        if (a->owner[t] == a->rank)
            a->coarse[t] = bench_memory(TILE_SIZE, sizeof(double));
    movement_init(&s->halo[0], a->ranks);
    movement_init(&s->halo[1], a->ranks);
    movement_init(&s->edges, a->ranks);
}

static void solver_fini(solver *s)
{
    bench_amr *a = &s->app;
    for (int t = 0; t < a->n * a->n; t++) {
        free(a->coarse[t]);
        free(a->blocks[t]);
        free(a->edge[0][t]);
        free(a->edge[1][t]);
    }
    movement_fini(&s->halo[0], a->ranks);
    movement_fini(&s->halo[1], a->ranks);
    movement_fini(&s->edges, a->ranks);
    bench_amr_fini(a);
}

double bench_mpi_amr(void *context, const bench_job *job)
{
    const bench_mpi_state *state = context;
    solver s = {.app = {.rank = state->rank,
                        .ranks = state->ranks,
                        .halo = halo,
                        .edges = edges,
                        .most = most,
                        .sum = sum,
                        .change = change}};
    s.app.arg = &s;
    solver_init(&s, (int)job->size_bytes);
    double ns = bench_amr_run(&s.app, job);
    solver_fini(&s);
    return ns;
}
