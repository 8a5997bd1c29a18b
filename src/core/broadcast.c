/* Broadcast along a binomial tree, in pieces that are passed on as they come.
 *
 * A root could run ahead of ranks that have not called yet, and what it sends waits in their
 * memory. Two things bound that: large data is sent only after the child has said that its buffer
 * is there, and every so many broadcasts all ranks meet first. */
#include <string.h>

#include "core/collective.h"
#include "core/rank.h"

enum { STEP_READY = 64, STEP_DATA = 65, STEP_MEET = 0 };
enum { PIECE_BYTES = 64 * 1024, MEET_INTERVAL = 16 };

typedef struct tree {
    int self; /* distance from the root, around the ring of ranks */
    int mask; /* children are self + mask/2, self + mask/4, ..., self + 1 */
    int root;
} tree;

static int rank_of(const ferry *f, const tree *t, int position)
{
    return (int)(((int64_t)position + t->root) % f->ranks);
}

static tree plan(const ferry *f, int root)
{
    tree t = {.self = (f->rank - root + f->ranks) % f->ranks, .mask = 1, .root = root};
    while (t.self == 0 ? t.mask < f->ranks : (t.self & t.mask) == 0)
        t.mask *= 2;
    return t;
}

/* Waits until every child's buffer is there. */
static int await_children(ferry *f, const tree *t)
{
    int error = 0;
    for (int bit = t->mask / 2; bit > 0 && error == 0; bit /= 2) {
        if (t->self + bit >= f->ranks)
            continue;
        fy_collective_want(f, rank_of(f, t, t->self + bit), STEP_READY, NULL, 0);
        error = fy_collective_await(f, 0);
    }
    return error;
}

static int send_children(ferry *f, const tree *t, const unsigned char *data, size_t size_bytes)
{
    int error = 0;
    for (int bit = t->mask / 2; bit > 0 && error == 0; bit /= 2)
        if (t->self + bit < f->ranks)
            error =
                fy_collective_send(f, rank_of(f, t, t->self + bit), STEP_DATA, data, size_bytes);
    return error;
}

static int pass_on(ferry *f, const tree *t, unsigned char *data, size_t size_bytes)
{
    int error = 0;
    bool large = size_bytes > PIECE_BYTES;
    int parent = rank_of(f, t, t->self - t->mask);
    if (large)
        error = await_children(f, t);
    if (error == 0 && t->self != 0) {
        fy_collective_want(f, parent, STEP_DATA, data, size_bytes);
        if (large)
            error = fy_collective_send(f, parent, STEP_READY, NULL, 0);
    }
    size_t sent = 0;
    do {
        size_t piece = size_bytes - sent < PIECE_BYTES ? size_bytes - sent : PIECE_BYTES;
        if (error == 0 && t->self != 0)
            error = fy_collective_await(f, sent + piece);
        if (error == 0)
            error = send_children(f, t, data + sent, piece);
        sent += piece;
    } while (error == 0 && sent < size_bytes);
    return error;
}

int ferry_broadcast(ferry *f, int root, void *data, size_t size_bytes)
{
    int error = fy_check_outside(f, "broadcast");
    if (error == 0)
        error = fy_check_rank(f, "broadcast", root);
    if (error != 0)
        return error;
    if (size_bytes > 0 && data == NULL)
        return fy_fail(f, FERRY_EINVAL, "broadcast: %zu bytes at NULL", size_bytes);
    if (f->ranks == 1)
        return 0;
    unsigned char nothing = 0;
    fy_doing before = fy_account_enter(f, FY_DOING_COLLECTIVE);
    const fy_collective_call call = {.what = fy_collective_what(FY_BROADCAST, 0, 0, root),
                                     .size_bytes = size_bytes};
    fy_collective_begin(f, &call);
    if (f->collectives.number % MEET_INTERVAL == 0)
        error = fy_collective_disseminate(f, STEP_MEET);
    tree t = plan(f, root);
    if (error == 0)
        error = pass_on(f, &t, data == NULL ? &nothing : data, size_bytes);
    error = fy_collective_end(f, error);
    fy_account_leave(f, before);
    return error;
}
