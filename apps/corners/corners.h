/* Corners: the tiles of the grid and of its patches, and when patches appear. */
#ifndef CORNERS_H
#define CORNERS_H

#include <ferry/ferry.h>

enum { RADIUS = 2, CORNERS = 4, SIDES = 4, TILES_MAX = 64, NEEDS_MAX = TILES_MAX * TILES_MAX };

/* Rows and columns of points: from `low` to before `high`. */
typedef struct box {
    long low[2], high[2];
} box;

/* One block of memory: the tile, its field with RADIUS points around, and its sums. */
typedef struct tile {
    box own;
    long done;   /* updates since the values came */
    long begun;  /* the iteration in which they came */
    long summed; /* updates since the beginning */
    double values[];
} tile;

typedef struct state {
    long points, patch, level, period, duration, sub, steps, tiles;
    double point_ns;
    bool spread, no_balance;
    double weight[2 * RADIUS + 1]; /* of the grid */
    double *edge;                  /* scratch */
    uint64_t work_ns;
} state;

static inline long least(long a, long b)
{
    return a < b ? a : b;
}

static inline long most(long a, long b)
{
    return a > b ? a : b;
}

static inline long rows(const box *b)
{
    return b->high[0] - b->low[0];
}

static inline long columns(const box *b)
{
    return b->high[1] - b->low[1];
}

/* Points of a patch for each of the grid, along an edge. */
static inline long finer(const state *s)
{
    return 1L << s->level;
}

static inline double *field_at(tile *t, long row, long column)
{
    long stride = columns(&t->own) + 2 * RADIUS;
    return t->values + (row - t->own.low[0] + RADIUS) * stride + column - t->own.low[1] + RADIUS;
}

static inline size_t field_count(const box *b)
{
    return (size_t)((rows(b) + 2 * RADIUS) * (columns(b) + 2 * RADIUS));
}

static inline double *sum_at(tile *t, long row, long column)
{
    double *sums = t->values + field_count(&t->own);
    return sums + (row - t->own.low[0]) * columns(&t->own) + column - t->own.low[1];
}

box overlap(box a, const box *b);

/* Points along an edge of a level. */
long extent(const state *s, int64_t level);

/* Where the patch of a level begins in the grid. The corners take turns across the grid. */
long origin(const state *s, int64_t level, int d);

box own_points(const state *s, ferry_index index);

/* The points of the grid that a tile of a patch takes its first values from. */
box below(const state *s, ferry_index index);

size_t tile_bytes(const box *b);

/* The tile beside `index`: its row or column is the next or the last one. */
bool beside(const state *s, ferry_index index, int side, ferry_index *out);

/* Updates of a patch that appears in iteration `begin`. */
long updates_from(const state *s, long begin);

/* The step in which a patch appears for the `turn`th time. Each appearance has a step for the first
 * values, and one for each update. */
long patch_step(const state *s, long turn);

long patch_begins(const state *s, int64_t level, long turn);

#endif
