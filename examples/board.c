/* Board: put, get and atomic operations on the memory of another rank.
 *
 * Rank 0 makes a board. Each rank draws a ticket, which is its line on the board, and writes there
 * without any help of rank 0. Then each rank reads the whole board.
 *
 *     cc board.c $(pkg-config --cflags --libs ferry) -o board
 *     ferry run -n 4 ./board */
#include <stdio.h>

#include <ferry/ferry.h>

enum { LINES_MAX = 1024 };

typedef struct board {
    uint64_t tickets;
    int64_t lines[LINES_MAX];
} board;

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

/* Rank 0 allocates the board. The address is a name for puts and gets of all ranks. */
static board *share(ferry *f)
{
    void *memory = NULL;
    if (ferry_rank(f) == 0) {
        check(f, ferry_alloc(f, sizeof(board), &memory));
        *(board *)memory = (board){.tickets = 0}; /* ferry_alloc does not clear it */
    }
    check(f, ferry_broadcast(f, 0, &memory, sizeof memory));
    return memory;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    board *b = share(f);

    uint64_t line;
    const ferry_atomic draw = {.verb = FERRY_FETCH_ADD, .target = &b->tickets, .operand = 1};
    check(f, ferry_atomic_update(f, 0, &draw, &line, NULL));

    int64_t mine = 100 + ferry_rank(f);
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    check(f, ferry_put(f, 0, &b->lines[line], &mine, sizeof mine, &track));
    check(f, ferry_op_wait(f, &op)); /* the line is on the board */
    check(f, ferry_barrier(f));      /* and so are those of the others */

    int64_t lines[LINES_MAX], sum = 0;
    size_t count = (size_t)ferry_ranks(f);
    check(f, ferry_get(f, 0, lines, b->lines, count * sizeof *lines, NULL));
    for (size_t i = 0; i < count; i++)
        sum += lines[i];
    printf("rank %d: %zu lines, sum %d\n", ferry_rank(f), count, (int)sum);

    check(f, ferry_barrier(f)); /* nobody reads the board any more */
    if (ferry_rank(f) == 0)
        check(f, ferry_free(f, b));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
