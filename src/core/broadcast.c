/* Broadcast along a tree, in pieces that are passed on as they come.
 *
 * Positions count from the root, around the ring of ranks. Small data go along a binomial tree,
 * which is the fastest for one piece. Its root would send many pieces to each of its many children.
 * So large data go along a binary tree, or between nodes along a chain, if there are no more ranks
 * than pieces. In both subtrees are runs of neighbours, and few edges leave a node.
 *
 * A root could run ahead of ranks that have not called yet, and its data would wait in their
 * memory. Two rules bound that. Large data are sent only after the child has said that its buffer
 * is ready. And in one of 16 broadcasts all ranks make a barrier first. */
#include "core/collective.h"
#include "core/rank.h"

enum { TAG_BARRIER = 0, TAG_READY = 64, TAG_DATA = 65 };
enum { PIECE_BYTES = 64 * 1024, CHILDREN_MAX = 31 };

typedef struct tree {
    bool large;
    int parent; /* -1: this rank is the root */
    int count, children[CHILDREN_MAX];
} tree;

static void add_child(const fy_collective *c, tree *t, int position, int end)
{
    if (position < end)
        t->children[t->count++] = (int)(((int64_t)position + c->root) % c->ranks);
}

/* The subtree of the present position is that run of positions, which begins with it. Its children
 * have the halves of the rest; in a chain one has all of it. */
static void find_place(const fy_collective *c, tree *t, int self, bool chain)
{
    int at = 0, end = c->ranks;
    for (;;) {
        int second = chain ? end : at + 1 + (end - at) / 2;
        if (self == at) {
            add_child(c, t, at + 1, end);
            add_child(c, t, second, end);
            return;
        }
        t->parent = at;
        if (self < second)
            end = second;
        at = self < second ? at + 1 : second;
    }
}

static void tree_of(const fy_collective *c, tree *t)
{
    int self = (c->self - c->root + c->ranks) % c->ranks, mask = 1;
    t->large = c->size_bytes > PIECE_BYTES;
    t->parent = -1;
    t->count = 0;
    if (t->large) {
        find_place(c, t, self, c->spread && (size_t)c->ranks <= c->size_bytes / PIECE_BYTES);
    } else {
        while (self == 0 ? mask < c->ranks : (self & mask) == 0)
            mask *= 2;
        if (self != 0)
            t->parent = self - mask;
        while ((mask /= 2) > 0)
            add_child(c, t, self + mask, c->ranks);
    }
    if (t->parent >= 0)
        t->parent = (int)(((int64_t)t->parent + c->root) % c->ranks);
}

/* The post of the data is the last one. A rank says that it is ready before its children have said
 * so: its data come meanwhile. */
static void broadcast_begin(fy_collective *c, const tree *t)
{
    fy_plan_add_barrier_sometimes(c, TAG_BARRIER);
    uint32_t ready = c->post_count;
    for (int i = 0; i < t->count && t->large; i++)
        (void)fy_plan_receive(c, t->children[i], TAG_READY, NULL, 0);
    if (t->parent >= 0) {
        (void)fy_plan_receive(c, t->parent, TAG_DATA, c->what.out, c->size_bytes);
        if (t->large)
            fy_plan_send(c, t->parent, TAG_READY, NULL, 0);
    }
    for (int i = 0; i < t->count && t->large; i++)
        fy_plan_await(c, ready++);
}

void fy_plan_broadcast(fy_collective *c)
{
    tree t;
    tree_of(c, &t);
    unsigned char *data = c->what.out;
    if (c->part == 0)
        broadcast_begin(c, &t);
    size_t left = c->size_bytes - c->done;
    size_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
    /* The post of the data is the last one made, and is kept while it is not complete. */
    if (t.parent >= 0 && c->post_count > 0)
        fy_plan_await_bytes(c, c->post_count - 1, c->done + piece);
    for (int i = 0; i < t.count; i++)
        fy_plan_send(c, t.children[i], TAG_DATA, piece == 0 ? NULL : data + c->done, piece);
    c->done += piece;
    c->last = c->done == c->size_bytes;
}
