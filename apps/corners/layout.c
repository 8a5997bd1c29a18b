#include "corners/corners.h"

box overlap(box a, const box *b)
{
    for (int d = 0; d < 2; d++) {
        a.low[d] = most(a.low[d], b->low[d]);
        a.high[d] = most(a.low[d], least(a.high[d], b->high[d]));
    }
    return a;
}

long extent(const state *s, int64_t level)
{
    return level == 0 ? s->points : (s->patch - 1) * finer(s) + 1;
}

long origin(const state *s, int64_t level, int d)
{
    const bool far = d == 1 ? level == 2 || level == 4 : level == 2 || level == 3;
    return far ? s->points - s->patch : 0;
}

box own_points(const state *s, ferry_index index)
{
    box b;
    for (int d = 0; d < 2; d++) {
        b.low[d] = index.at[1 + d] * extent(s, index.at[0]) / s->tiles;
        b.high[d] = (index.at[1 + d] + 1) * extent(s, index.at[0]) / s->tiles;
    }
    return b;
}

box below(const state *s, ferry_index index)
{
    box b = own_points(s, index);
    for (int d = 0; d < 2; d++) {
        long first = origin(s, index.at[0], d);
        b.low[d] = first + b.low[d] / finer(s);
        b.high[d] = least(first + (b.high[d] - 1) / finer(s) + 2, first + s->patch);
    }
    return b;
}

size_t tile_bytes(const box *b)
{
    return sizeof(tile) + (field_count(b) + (size_t)(rows(b) * columns(b))) * sizeof(double);
}

bool beside(const state *s, ferry_index index, int side, ferry_index *out)
{
    int64_t *at = &index.at[1 + side / 2];
    *at += side % 2 == 0 ? -1 : 1;
    *out = index;
    return *at >= 0 && *at < s->tiles;
}

long updates_from(const state *s, long begin)
{
    return most(0, least(s->duration, s->steps - begin)) * s->sub;
}

long patch_step(const state *s, long turn)
{
    return turn * (1 + s->duration * s->sub);
}

long patch_begins(const state *s, int64_t level, long turn)
{
    return (CORNERS * turn + level - 1) * s->period;
}
