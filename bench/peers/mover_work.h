/* Mover work: the problems of the movers benchmark, as the hand-written sides see them.
 *
 * Halo: blocks of n^3 doubles with one ghost layer, `edge` per dimension and rank, ranks in a row
 * along the first dimension, periodic in all. Each movement fills the six faces of every block.
 * Slabs: a cube of n^3 doubles cut along the first dimension, moved to a cube cut along another. */
#ifndef BENCH_MOVER_WORK_H
#define BENCH_MOVER_WORK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A face on its way: `count` rows of `row` doubles, and so on outwards. */
typedef struct face {
    int from_block, to_block; /* here; -1: on another rank */
    int rank;                 /* of the other */
    int place;                /* in the order in which the receiver fills */
    size_t from, to;          /* offsets of the first element */
    size_t count[3], stride[3];
} face;

typedef struct rank_blocks {
    int n, edge, ranks, rank;
    size_t pitch[3], volume; /* of a block with ghosts */
    double *data;
    face *faces; /* to fill, then to send */
    int fill_count, send_count;
} rank_blocks;

static inline double *block_at(const rank_blocks *b, int i)
{
    return b->data + (size_t)i * b->volume;
}

/* Block number by place in the rank, or by global place along the first dimension its rank. */
static inline int number_of(const rank_blocks *b, const int at[3])
{
    return (at[0] % b->edge * b->edge + at[1]) * b->edge + at[2];
}

/* The face on side `side` of block `at`: towards it (fill), or what a neighbour's side gets. */
static inline face face_of(const rank_blocks *b, const int at[3], int side, int send)
{
    int d = side / 2, step = side % 2 ? 1 : -1;
    const int across[3] = {b->edge * b->ranks, b->edge, b->edge};
    int other[3] = {at[0], at[1], at[2]};
    other[d] = (at[d] + step + across[d]) % across[d];
    face f = {.rank = other[0] / b->edge};
    f.place = send ? number_of(b, other) * 6 + (side ^ 1) : number_of(b, at) * 6 + side;
    size_t inner = 0, ghost = 0;
    for (int e = 0; e < 3; e++) {
        f.count[e] = e == d ? 1 : (size_t)b->n;
        f.stride[e] = b->pitch[e];
        inner += (e == d ? (step > 0 ? 1 : (size_t)b->n) : 1) * b->pitch[e];
        ghost += (e == d ? (step > 0 ? (size_t)b->n + 1 : 0) : 1) * b->pitch[e];
    }
    /* Sending mirrors filling: this block's inner layer goes to the other's opposite ghost. */
    if (send) {
        inner = 0;
        for (int e = 0; e < 3; e++)
            inner += (e == d ? (step > 0 ? (size_t)b->n : 1) : 1) * b->pitch[e];
        f.from_block = number_of(b, at);
        f.to_block = -1;
    } else {
        f.to_block = number_of(b, at);
        f.from_block = f.rank == b->rank ? number_of(b, other) : -1;
    }
    f.from = inner;
    f.to = ghost;
    return f;
}

/* All faces: to fill in the order of (block, side); to send in the order in which the other rank
 * fills them. */
static inline int blocks_init(rank_blocks *b, int n, int edge, int rank, int ranks)
{
    *b = (rank_blocks){.n = n, .edge = edge, .rank = rank, .ranks = ranks};
    size_t wide = (size_t)n + 2;
    b->pitch[0] = wide * wide;
    b->pitch[1] = wide;
    b->pitch[2] = 1;
    b->volume = wide * wide * wide;
    int count = edge * edge * edge;
    b->data = calloc((size_t)count * b->volume, sizeof *b->data);
    b->faces = calloc((size_t)count * 12, sizeof *b->faces);
    if (!b->data || !b->faces)
        return -1;
    /* Pages that were never written would all be the same one. */
    for (size_t i = 0; i < (size_t)count * b->volume; i++)
        b->data[i] = 1;
    int at[3];
    for (int send = 0; send < 2; send++)
        for (int i = 0; i < count; i++)
            for (int side = 0; side < 6; side++) {
                at[0] = i / (edge * edge) + rank * edge;
                at[1] = i / edge % edge;
                at[2] = i % edge;
                face f = face_of(b, at, side, send);
                if (send && f.rank == rank)
                    continue;
                int to = b->fill_count + b->send_count;
                for (; to > b->fill_count * send && b->faces[to - 1].place > f.place; to--)
                    b->faces[to] = b->faces[to - 1];
                b->faces[to] = f;
                b->fill_count += !send;
                b->send_count += send;
            }
    return 0;
}

static inline void blocks_fini(rank_blocks *b)
{
    free(b->data);
    free(b->faces);
}

/* Plain loops over a face; the innermost row is contiguous unless the face is across the last
 * dimension. */
static inline void face_copy(const face *f, double *restrict to, const double *restrict from)
{
    for (size_t i = 0; i < f->count[0]; i++)
        for (size_t j = 0; j < f->count[1]; j++) {
            size_t at = i * f->stride[0] + j * f->stride[1];
            if (f->count[2] == 1)
                to[at] = from[at];
            else
                memcpy(to + at, from + at, f->count[2] * sizeof(double));
        }
}

static inline size_t face_size(const face *f)
{
    return f->count[0] * f->count[1] * f->count[2];
}

static inline void face_pack(const face *f, double *restrict to, const double *restrict from)
{
    for (size_t i = 0; i < f->count[0]; i++)
        for (size_t j = 0; j < f->count[1]; j++) {
            const double *row = from + i * f->stride[0] + j * f->stride[1];
            if (f->count[2] == 1)
                *to++ = *row;
            else
                to = (double *)memcpy(to, row, f->count[2] * sizeof(double)) + f->count[2];
        }
}

static inline void face_unpack(const face *f, double *restrict to, const double *restrict from)
{
    for (size_t i = 0; i < f->count[0]; i++)
        for (size_t j = 0; j < f->count[1]; j++) {
            double *row = to + i * f->stride[0] + j * f->stride[1];
            if (f->count[2] == 1) {
                *row = *from++;
            } else {
                memcpy(row, from, f->count[2] * sizeof(double));
                from += f->count[2];
            }
        }
}

/* Edge of a cube of `bytes` of doubles. */
static inline int cube_edge(uint64_t bytes)
{
    int n = 1;
    while ((uint64_t)(n + 1) * (uint64_t)(n + 1) * (uint64_t)(n + 1) * 8 <= bytes)
        n++;
    return n;
}

#endif
