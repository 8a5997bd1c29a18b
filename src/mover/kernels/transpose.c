/* Transposition, tile by tile. A tile is a cache line of the source by a cache line of the target,
 * so that each line is used whole while it is in the cache.
 *
 * The cost is that of fetching lines: each row of a tile is on a page of its own, so the hardware
 * does not prefetch. Small moves have source and target in a cache. They go along the target and
 * prefetch the lines of the next tile. Large moves go along some rows of the source at a time, from
 * beginning to end, which hardware prefetches. They stream the target's lines, which would
 * otherwise be fetched only to be overwritten. */
#include "mover/kernels/transpose.h"

#include <string.h>

#include "base/stream.h"

/* If the units divide a cache line, a whole tile has as many rows as units. */
enum { LINE_BYTES = FY_STREAM_BYTES, UNIT_MIN = 4, LINE_UNITS_MAX = LINE_BYTES / UNIT_MIN };

/* Moves of more bytes are large: source and target together do not fit a second-level cache. */
enum { STREAMED_BYTES = 1024 * 1024 };

/* Copies `rows` rows of the target, of `count` contiguous units each. The source is contiguous
 * along the rows. */
#define TILE(bytes)                                                                                \
    case bytes:                                                                                    \
        for (size_t k = 0; k < rows; k++)                                                          \
            for (size_t j = 0; j < count; j++)                                                     \
                memcpy(target + (ptrdiff_t)k * d + (ptrdiff_t)(j * bytes),                         \
                       source + (ptrdiff_t)(k * bytes) + (ptrdiff_t)j * s, bytes);                 \
        return

static void tile(size_t unit, char *target, ptrdiff_t d, const char *source, ptrdiff_t s,
                 size_t rows, size_t count)
{
    switch (unit) {
        TILE(4);
        TILE(8);
        TILE(16);
    default:
        for (size_t k = 0; k < rows; k++)
            for (size_t j = 0; j < count; j++)
                memcpy(target + (ptrdiff_t)k * d + (ptrdiff_t)(j * unit),
                       source + (ptrdiff_t)(k * unit) + (ptrdiff_t)j * s, unit);
    }
}

typedef uint64_t word_pair __attribute__((vector_size(16)));

/* Copies a whole tile of words, two by two: a pair of registers exchanges two of them. */
static void tile_8_words(char *target, ptrdiff_t d, const char *source, ptrdiff_t s)
{
    for (int k = 0; k < 8; k += 2)
        for (int j = 0; j < 8; j += 2) {
            word_pair a, b;
            memcpy(&a, source + k * 8 + j * s, sizeof a);
            memcpy(&b, source + k * 8 + (j + 1) * s, sizeof b);
            const word_pair low = {a[0], b[0]}, high = {a[1], b[1]};
            memcpy(target + k * d + j * 8, &low, sizeof low);
            memcpy(target + (k + 1) * d + j * 8, &high, sizeof high);
        }
}

static void whole_tile(size_t unit, size_t side, char *target, ptrdiff_t d, const char *source,
                       ptrdiff_t s)
{
    if (unit == 8)
        tile_8_words(target, d, source, s);
    else
        tile(unit, target, d, source, s, side, side);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Units along a side of a tile. */
static size_t side_of(const fy_move *move)
{
    return move->unit < LINE_BYTES / 4 ? LINE_BYTES / move->unit : 4;
}

/* Runs the last two axes of a small move, along the target. */
static void near_plane(const fy_move *move, char *target, const char *source)
{
    const fy_axis *rows = &move->axis[move->dims - 2], *along = &move->axis[move->dims - 1];
    const size_t unit = move->unit, side = side_of(move);
    for (size_t k = 0; k < rows->count; k += side) {
        const size_t some = least(rows->count - k, side);
        for (size_t j = 0; j < along->count; j += side) {
            const size_t count = least(along->count - j, side);
            char *to = target + (ptrdiff_t)k * rows->d + (ptrdiff_t)(j * unit);
            const char *from = source + (ptrdiff_t)(k * unit) + (ptrdiff_t)j * along->s;
            for (size_t i = 0; i < count && j + side < along->count; i++)
                __builtin_prefetch(from + (ptrdiff_t)(i + side) * along->s);
            for (size_t i = 0; i < some && j + side < along->count; i++)
                __builtin_prefetch(to + (ptrdiff_t)i * rows->d + (ptrdiff_t)(side * unit), 1);
            if (some == side && count == side)
                whole_tile(unit, side, to, rows->d, from, along->s);
            else
                tile(unit, to, rows->d, from, along->s, some, count);
        }
    }
}

static void near_planes(const fy_move *move, int depth, char *target, const char *source)
{
    const fy_axis *axis = &move->axis[depth];
    if (depth == move->dims - 2) {
        near_plane(move, target, source);
        return;
    }
    for (size_t i = 0; i < axis->count; i++, target += axis->d, source += axis->s)
        near_planes(move, depth + 1, target, source);
}

/* Copies some rows of the source along the axes from `depth` on: one cache line of each target
 * row. */
static void stream_rows(const fy_move *move, int depth, char *target, const char *source)
{
    const fy_axis *axis = &move->axis[depth];
    const ptrdiff_t s = move->axis[move->dims - 1].s;
    const size_t unit = move->unit, side = side_of(move);
    if (depth < move->dims - 2) {
        for (size_t i = 0; i < axis->count; i++, target += axis->d, source += axis->s)
            stream_rows(move, depth + 1, target, source);
        return;
    }
    size_t k = 0;
    for (; k + side <= axis->count; k += side) {
        _Alignas(LINE_BYTES) char lines[LINE_UNITS_MAX][LINE_BYTES];
        whole_tile(unit, side, lines[0], LINE_BYTES, source + k * unit, s);
        for (size_t i = 0; i < side; i++)
            fy_stream_line(target + (ptrdiff_t)(k + i) * axis->d, lines[i]);
    }
    tile(unit, target + (ptrdiff_t)k * axis->d, axis->d, source + k * unit, s, axis->count - k,
         side);
}

static void far_planes(const fy_move *move, char *target, const char *source)
{
    const fy_axis *along = &move->axis[move->dims - 1];
    const size_t side = side_of(move);
    size_t j = 0;
    for (; j + side <= along->count; j += side)
        stream_rows(move, 0, target + j * move->unit, source + (ptrdiff_t)j * along->s);
    fy_stream_end();
    if (j == along->count)
        return;
    fy_axis axes[FERRY_DIMS_MAX + 1];
    fy_move rest = *move;
    memcpy(axes, move->axis, move->dims * sizeof *axes);
    axes[move->dims - 1].count -= j;
    rest.axis = axes;
    near_planes(&rest, 0, target + j * move->unit, source + (ptrdiff_t)j * along->s);
}

/* Whether the move is large, and the rows of its tiles are whole cache lines of the target. */
static bool is_streamed(const fy_move *move, const char *target)
{
    size_t places = (uintptr_t)target;
    for (int i = 0; i < move->dims - 1; i++)
        places |= (size_t)move->axis[i].d;
    return fy_move_bytes(move) >= STREAMED_BYTES && places % LINE_BYTES == 0 &&
           move->unit >= UNIT_MIN && side_of(move) * move->unit == LINE_BYTES;
}

void fy_transpose(const fy_move *move, char *target, const char *source)
{
    if (is_streamed(move, target))
        far_planes(move, target, source);
    else
        near_planes(move, 0, target, source);
}
