/* Collectives that move pieces: each piece goes directly from the rank that has it to the rank that
 * gets it.
 *
 * All receives are posted first, so that each piece finds its place. Then each rank sends, first to
 * the rank above it, so that not all send to the same rank. A piece that is larger than SMALL_BYTES
 * is only announced, with its size. It is sent when the receiver has said that its buffer is ready.
 * Otherwise it could wait in the memory of a rank that has not called yet. */
#include "core/collective.h"
#include "core/rank.h"

enum { SMALL_BYTES = 64 * 1024, PIECE_BYTES = 32 * 1024 };
enum { TAG_DATA = 1, TAG_READY = 2, TAG_BARRIER = 80 };

/* The pieces of `in` or `out`, and the present one among them. */
typedef struct pieces {
    unsigned char *base;
    const size_t *counts, *offsets; /* NULL: all have `count` values; one after the other */
    size_t count, value_bytes;
    bool single; /* one piece, for every place */
    int places, place;
    size_t at; /* values before it */
} pieces;

static size_t count_of(const pieces *p)
{
    return p->counts != NULL && !p->single ? p->counts[p->place] : p->count;
}

static size_t pieces_bytes(const pieces *p)
{
    return count_of(p) * p->value_bytes;
}

static unsigned char *data_of(const pieces *p)
{
    size_t at = p->single ? 0 : p->offsets != NULL ? p->offsets[p->place] : p->at;
    return pieces_bytes(p) == 0 ? NULL : p->base + at * p->value_bytes;
}

/* Goes to the next place, in a circle. */
static void exchange_next(pieces *p)
{
    p->at += count_of(p);
    if (++p->place == p->places)
        p->place = 0, p->at = 0;
}

/* Those of `in` or of `out`, from this rank's place on. */
static void pieces_start(pieces *p, const fy_collective *c, bool in, bool single)
{
    const ferry_collective *what = &c->what;
    p->base = in ? (unsigned char *)(uintptr_t)what->in : what->out;
    p->counts = in ? what->in_counts : what->out_counts;
    p->offsets = in ? what->in_offsets : what->out_offsets;
    p->count = what->count;
    p->value_bytes = c->value_bytes;
    p->single = single;
    p->places = c->ranks;
    p->place = p->counts == NULL || single ? c->self : 0;
    p->at = (size_t)p->place * p->count;
    while (p->place != c->self)
        exchange_next(p);
}

static void receive_all(fy_collective *c, pieces *out, int partners)
{
    for (int i = 0; i < partners; i++) {
        exchange_next(out);
        (void)fy_plan_receive(c, out->place, TAG_DATA, data_of(out), pieces_bytes(out));
        if (pieces_bytes(out) > SMALL_BYTES)
            fy_plan_send(c, out->place, TAG_READY, NULL, 0);
    }
}

/* Sends the small pieces, or the large ones. `in` stays at its place. */
static void exchange_send_all(fy_collective *c, pieces *in, int partners, bool large)
{
    int place = in->place;
    size_t at = in->at;
    for (int i = 0; i < partners; i++) {
        exchange_next(in);
        size_t bytes = pieces_bytes(in);
        if ((bytes > SMALL_BYTES) != large)
            continue;
        if (large) {
            uint32_t ready = fy_plan_receive(c, in->place, TAG_READY, NULL, 0);
            fy_plan_announce(c, in->place, TAG_DATA, bytes);
            fy_plan_await(c, ready);
        }
        fy_plan_send(c, in->place, TAG_DATA, data_of(in), bytes);
    }
    in->place = place;
    in->at = at;
}

/* With many ranks small pieces go all together along a tree, and each rank keeps its own. */
enum { DIRECT_RANKS_MAX = 8, TREE_BYTES = 4 * 1024 };

static bool goes_by_tree(const fy_collective *c, size_t all_bytes)
{
    return c->ranks > DIRECT_RANKS_MAX && all_bytes <= TREE_BYTES && all_bytes > 0;
}

/* A broadcast of all pieces. */
static void scatter_all(fy_collective *c, size_t all_bytes)
{
    unsigned char *out = c->what.out;
    size_t piece = c->size_bytes;
    bool root = c->self == c->root;
    if (!root && !fy_plan_scratch(c, all_bytes))
        return;
    c->what.out = root ? (unsigned char *)(uintptr_t)c->what.in : c->scratch;
    c->size_bytes = all_bytes;
    fy_plan_broadcast(c);
    fy_plan_copy(c, out, (unsigned char *)c->what.out + (size_t)c->self * piece, piece);
}

/* All ranks send to all; or a root receives from all, or sends to all, and the others are leaves,
 * whose one partner is the root. The counts that only the root reads may be missing at a leaf. */
void fy_plan_exchange(fy_collective *c)
{
    ferry_collective_kind kind = c->what.kind;
    bool gathers = kind == FERRY_GATHERV;
    bool scatters = kind == FERRY_SCATTER || kind == FERRY_SCATTERV;
    bool leaf = (gathers || scatters) && c->self != c->root;
    int partners = leaf ? 1 : c->ranks - 1;
    if (kind == FERRY_SCATTER && goes_by_tree(c, c->size_bytes * (size_t)c->ranks)) {
        scatter_all(c, c->size_bytes * (size_t)c->ranks);
        return;
    }
    pieces in, out;
    pieces_start(&in, c, true, leaf || gathers || kind == FERRY_ALLGATHERV);
    pieces_start(&out, c, false, leaf || scatters);
    void *own = data_of(&out);
    c->last = true;
    if (gathers || scatters)
        fy_plan_add_barrier_sometimes(c, TAG_BARRIER);
    if (leaf) /* the root comes next */
        in.place = out.place = (c->root == 0 ? c->ranks : c->root) - 1;
    uint32_t first = c->post_count;
    receive_all(c, &out, scatters != leaf ? 0 : partners);
    uint32_t end = c->post_count;
    int sends = gathers != leaf ? 0 : partners;
    /* Ranks that wait for large pieces can work on small ones meanwhile. */
    exchange_send_all(c, &in, sends, false);
    if (!leaf)
        fy_plan_copy(c, own, data_of(&in), pieces_bytes(&in));
    exchange_send_all(c, &in, sends, true);
    for (uint32_t post = first; post < end; post++)
        fy_plan_await(c, post);
}

/* An allreduce of all pieces, whose first value is at `c->what.in`. */
static void reduce_scatter_all(fy_collective *c, const pieces *own, size_t all_bytes)
{
    unsigned char *out = c->what.out;
    if (!fy_plan_scratch(c, 2 * all_bytes))
        return;
    c->what.out = c->scratch + all_bytes;
    c->size_bytes = all_bytes;
    fy_plan_allreduce(c);
    fy_plan_copy(c, out, c->scratch + all_bytes + own->at * c->value_bytes, pieces_bytes(own));
}

/* Each rank receives its piece from all ranks, a part at a time, and combines the parts in the
 * order of places. */
void fy_plan_reduce_scatter(fy_collective *c)
{
    size_t room =
        PIECE_BYTES < c->value_bytes ? c->value_bytes : PIECE_BYTES - PIECE_BYTES % c->value_bytes;
    pieces in;
    pieces_start(&in, c, true, false);
    size_t all = in.counts != NULL ? c->call.size_bytes : c->size_bytes * (size_t)c->ranks;
    if (in.offsets == NULL && goes_by_tree(c, all)) {
        reduce_scatter_all(c, &in, all);
        return;
    }
    size_t left = pieces_bytes(&in) > c->done ? pieces_bytes(&in) - c->done : 0;
    size_t own = left < room ? left : room;
    unsigned char *out = own == 0 ? NULL : (unsigned char *)c->what.out + c->done;
    const unsigned char *mine = own == 0 ? NULL : data_of(&in) + c->done;
    int32_t tag = TAG_DATA + (int32_t)(c->part % 2);
    size_t scratch = (size_t)c->ranks * (pieces_bytes(&in) < room ? pieces_bytes(&in) : room);
    if (c->scratch == NULL && !fy_plan_scratch(c, scratch))
        return;
    if (c->part == 0) /* a rank that gets nothing waits for no other */
        fy_plan_add_barrier_sometimes(c, TAG_BARRIER);
    uint32_t post = c->post_count;
    for (int place = 0; place < c->ranks && own > 0; place++)
        if (place != c->self)
            (void)fy_plan_receive(c, place, tag, c->scratch + (size_t)place * own, own);
    c->last = left <= room;
    for (int i = 1; i < c->ranks; i++) {
        exchange_next(&in);
        size_t more = pieces_bytes(&in) > c->done ? pieces_bytes(&in) - c->done : 0;
        c->last = c->last && more <= room;
        if (more > 0)
            fy_plan_send(c, in.place, tag, data_of(&in) + c->done, more < room ? more : room);
    }
    for (int place = 0; place < c->ranks && own > 0; place++) {
        const unsigned char *from = place == c->self ? mine : c->scratch + (size_t)place * own;
        if (place != c->self)
            fy_plan_await(c, post++);
        if (place == 0)
            fy_plan_copy(c, out, from, own);
        else
            fy_plan_combine(c, out, out, from, own);
    }
    c->done += room;
}
