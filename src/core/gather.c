/* Gathering. Small data go along trees; a rank holds a growing run of blocks in scratch memory.
 * Large data go directly to their place, once the receiver has said that its buffer is ready. */
#include "core/collective.h"
#include "core/rank.h"

enum { SMALL_BYTES = 64 * 1024, BLOCK_BYTES = 4 * 1024 };
enum { TAG_READY = 40, TAG_DATA = 41, TAG_BARRIER = 80 }; /* rounds are below; a ring's are above */
enum { TAG_RING = 1024 };

static bool is_small(const fy_collective *c)
{
    return c->size_bytes <= SMALL_BYTES / (size_t)c->ranks;
}

static int rank_at(const fy_collective *c, int root, int position)
{
    return (int)(((int64_t)root + position) % c->ranks);
}

/* Copies `count` blocks from the order of positions, which start at rank `root`, to the order of
 * ranks. */
static void turn(fy_collective *c, const unsigned char *blocks, int root)
{
    unsigned char *out = c->what.out;
    size_t first = (size_t)(c->ranks - root) * c->size_bytes;
    if (c->size_bytes == 0)
        return;
    fy_plan_copy(c, out + (size_t)root * c->size_bytes, blocks, first);
    fy_plan_copy(c, out, blocks + first, (size_t)root * c->size_bytes);
}

/* A binomial tree: a rank takes the runs of its children, then gives all to its parent. */
static void gather_small(fy_collective *c)
{
    int root = c->root, self = (c->self - root + c->ranks) % c->ranks;
    size_t size = c->size_bytes;
    if (!fy_plan_scratch(c, (size_t)c->ranks * size))
        return;
    fy_plan_copy(c, c->scratch, c->what.in, size);
    size_t held = 1;
    for (int bit = 1, round = 0; bit < c->ranks; bit *= 2, round++) {
        if (self & bit) {
            fy_plan_send(c, rank_at(c, root, self - bit), round, c->scratch, held * size);
            return;
        }
        int left = c->ranks - self - bit;
        if (left <= 0)
            continue;
        size_t count = (size_t)(left < bit ? left : bit);
        fy_plan_take(c, rank_at(c, root, self + bit), round, c->scratch + held * size,
                     count * size);
        held += count;
    }
    turn(c, c->scratch, root);
}

static void gather_large(fy_collective *c)
{
    unsigned char *out = c->what.out;
    int root = c->root;
    if (c->self != root) {
        fy_plan_take(c, root, TAG_READY, NULL, 0);
        fy_plan_send(c, root, TAG_DATA, c->what.in, c->size_bytes);
        return;
    }
    for (int i = 1; i < c->ranks; i++) {
        int source = rank_at(c, root, i);
        (void)fy_plan_receive(c, source, TAG_DATA, out + (size_t)source * c->size_bytes,
                              c->size_bytes);
        fy_plan_send(c, source, TAG_READY, NULL, 0);
    }
    fy_plan_copy(c, out + (size_t)root * c->size_bytes, c->what.in, c->size_bytes);
    for (uint32_t post = 0; post < c->post_count; post++)
        fy_plan_await(c, post);
}

void fy_plan_gather(fy_collective *c)
{
    c->last = true;
    fy_plan_add_barrier_sometimes(c, TAG_BARRIER);
    if (is_small(c))
        gather_small(c);
    else
        gather_large(c);
}

/* Bruck's algorithm: a rank holds its own block and those of the ranks above it. In each round it
 * doubles them with the blocks of the rank at the end of its run. */
static void allgather_small(fy_collective *c)
{
    size_t size = c->size_bytes;
    if (!fy_plan_scratch(c, (size_t)c->ranks * size))
        return;
    fy_plan_copy(c, c->scratch, c->what.in, size);
    for (int held = 1, round = 0; held < c->ranks; held *= 2, round++) {
        size_t count = (size_t)(c->ranks - held < held ? c->ranks - held : held);
        uint32_t post = fy_plan_receive(c, rank_at(c, c->self, held), round,
                                        c->scratch + (size_t)held * size, count * size);
        fy_plan_send(c, rank_at(c, c->self, c->ranks - held), round, c->scratch, count * size);
        fy_plan_await(c, post);
    }
    turn(c, c->scratch, c->self);
}

/* A ring: each block travels from rank to rank, to its place in `out`. */
static void allgather_large(fy_collective *c)
{
    unsigned char *out = c->what.out;
    int right = rank_at(c, c->self, 1), left = rank_at(c, c->self, c->ranks - 1);
    size_t size = c->size_bytes;
    fy_plan_copy(c, out + (size_t)c->self * size, c->what.in, size);
    uint32_t ready = fy_plan_receive(c, right, TAG_READY, NULL, 0);
    for (int i = 1; i < c->ranks; i++) {
        int owner = rank_at(c, c->self, c->ranks - i);
        (void)fy_plan_receive(c, left, TAG_RING + i, out + (size_t)owner * size, size);
    }
    fy_plan_send(c, left, TAG_READY, NULL, 0);
    fy_plan_await(c, ready);
    for (int i = 1; i < c->ranks; i++) {
        int owner = rank_at(c, c->self, c->ranks - i + 1);
        fy_plan_send(c, right, TAG_RING + i, out + (size_t)owner * size, size);
        fy_plan_await(c, ready + (uint32_t)i);
    }
}

void fy_plan_allgather(fy_collective *c)
{
    /* A ring has a round for each rank, so small blocks go by doubling, even if they are many. */
    bool doubles = c->size_bytes <= 16 * SMALL_BYTES / (size_t)c->ranks;
    c->last = true;
    if (is_small(c) || (doubles && c->size_bytes <= BLOCK_BYTES))
        allgather_small(c);
    else
        allgather_large(c);
}
