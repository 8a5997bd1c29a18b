/* Pairs of moves that access the same cache lines.
 *
 * Ghost cells at the ends of rows are the costly ones: each is in a cache line of its own, and so
 * is its source. Next to the ghost cell that a block gets from a neighbour is the cell that it
 * gives to this neighbour. So the copy in the opposite direction accesses the same lines. If the
 * two copies of a large block run one after the other, each line is fetched twice. If they run unit
 * by unit in turn, the second finds the lines in the cache. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mover/kernels/move.h"

enum { LINE_BYTES = 64 };

typedef struct sorted_move {
    uintptr_t target;
    size_t index;
} sorted_move;

static int by_address(const void *a, const void *b)
{
    const sorted_move *x = a, *y = b;
    return (x->target > y->target) - (x->target < y->target);
}

static bool is_near(uintptr_t a, uintptr_t b)
{
    return (a > b ? a - b : b - a) < LINE_BYTES;
}

/* Whether two moves access the same cache lines, element by element. */
static bool go_together(const fy_move *a, const fy_move *b)
{
    return is_near((uintptr_t)b->target, (uintptr_t)a->source) &&
           is_near((uintptr_t)b->source, (uintptr_t)a->target) && b->kind == FY_MOVE_ROWS &&
           a->unit == b->unit && a->axis == b->axis; /* equal lists of axes are one (axes.h) */
}

/* The first move of `sorted` whose target is at `address` or above. */
static size_t place_of(const sorted_move *sorted, size_t count, uintptr_t address)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (sorted[middle].target < address)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* The partner of move `index`, or `index` itself. */
static size_t partner_of(const fy_move *moves, const sorted_move *sorted, size_t count,
                         const bool *done, size_t index)
{
    const fy_move *move = &moves[index];
    if (move->kind != FY_MOVE_ROWS || move->unit >= LINE_BYTES)
        return index;
    const uintptr_t near = (uintptr_t)move->source - LINE_BYTES;
    for (size_t i = place_of(sorted, count, near);
         i < count && sorted[i].target < near + 2 * LINE_BYTES; i++)
        if (!done[sorted[i].index] && sorted[i].index != index &&
            go_together(move, &moves[sorted[i].index]))
            return sorted[i].index;
    return index;
}

int fy_moves_pair(fy_move *moves, size_t count)
{
    sorted_move *sorted = fy_malloc((count + 1) * sizeof *sorted);
    fy_move *ordered = fy_malloc((count + 1) * sizeof *ordered);
    bool *done = fy_calloc(count + 1, sizeof *done);
    int error = sorted == NULL || ordered == NULL || done == NULL ? FERRY_ENOMEM : 0;
    for (size_t i = 0; i < count && error == 0; i++)
        sorted[i] = (sorted_move){.target = (uintptr_t)moves[i].target, .index = i};
    if (error == 0)
        qsort(sorted, count, sizeof *sorted, by_address);
    for (size_t i = 0, next = 0; i < count && error == 0; i++) {
        if (done[i])
            continue;
        done[i] = true;
        size_t partner = partner_of(moves, sorted, count, done, i);
        ordered[next] = moves[i];
        ordered[next++].paired = partner != i;
        if (partner != i)
            ordered[next++] = moves[partner];
        done[partner] = true;
    }
    if (error == 0)
        memcpy(moves, ordered, count * sizeof *moves);
    free(sorted);
    free(ordered);
    free(done);
    return error;
}
