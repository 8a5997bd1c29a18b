/* Broadcast along a binomial tree, in pieces that are passed on as they come.
 *
 * A root could run ahead of ranks that have not called yet, and its data would wait in their
 * memory. Two rules bound that. Large data are sent only after the child has said that its buffer
 * is ready. And in one of 16 broadcasts all ranks make a barrier first. */
#include "core/collective.h"
#include "core/rank.h"

enum { TAG_BARRIER = 0, TAG_READY = 64, TAG_DATA = 65 };
enum { PIECE_BYTES = 64 * 1024 };

typedef struct tree {
    int self; /* distance from the root, around the ring of ranks */
    int mask; /* children are self + mask/2, self + mask/4, ..., self + 1 */
    int root;
} tree;

static int rank_of(const fy_collective *c, const tree *t, int position)
{
    return (int)(((int64_t)position + t->root) % c->ranks);
}

static tree tree_of(const fy_collective *c)
{
    tree t = {.self = (c->self - c->root + c->ranks) % c->ranks, .mask = 1, .root = c->root};
    while (t.self == 0 ? t.mask < c->ranks : (t.self & t.mask) == 0)
        t.mask *= 2;
    return t;
}

/* The post of the data is the first one after those of the barrier. */
static void broadcast_begin(fy_collective *c, const tree *t, bool large)
{
    fy_plan_add_barrier_sometimes(c, TAG_BARRIER);
    for (int bit = t->mask / 2; bit > 0 && large; bit /= 2)
        if (bit < c->ranks - t->self)
            fy_plan_take(c, rank_of(c, t, t->self + bit), TAG_READY, NULL, 0);
    if (t->self == 0)
        return;
    int parent = rank_of(c, t, t->self - t->mask);
    (void)fy_plan_receive(c, parent, TAG_DATA, c->what.out, c->size_bytes);
    if (large)
        fy_plan_send(c, parent, TAG_READY, NULL, 0);
}

void fy_plan_broadcast(fy_collective *c)
{
    tree t = tree_of(c);
    unsigned char *data = c->what.out;
    if (c->part == 0)
        broadcast_begin(c, &t, c->size_bytes > PIECE_BYTES);
    size_t left = c->size_bytes - c->done;
    size_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
    /* The post of the data is the last one made, and is kept while it is not complete. */
    if (t.self != 0 && c->post_count > 0)
        fy_plan_await_bytes(c, c->post_count - 1, c->done + piece);
    for (int bit = t.mask / 2; bit > 0; bit /= 2)
        if (bit < c->ranks - t.self)
            fy_plan_send(c, rank_of(c, &t, t.self + bit), TAG_DATA,
                         piece == 0 ? NULL : data + c->done, piece);
    c->done += piece;
    c->last = c->done == c->size_bytes;
}
