/* Reductions piece by piece, in the order of ranks.
 *
 * At each step two ranks hold the results of neighbouring runs of ranks, and combine the lower with
 * the higher. So operands keep the order of ranks, and the result is one expression, the same on
 * each rank that computes it. If the number of ranks is no power of two, the first ranks pair up
 * before. Allreduce exchanges results, and the upper rank of each pair gets the result afterwards.
 * If a piece is large, two ranks exchange halves of it. Each combines one, and the next two ranks
 * exchange halves of that. In the end the ranks, or the root alone, collect the shares. The
 * expression is the same. Reduce folds small pieces from upper into lower halves, down to rank 0,
 * which sends the result to the root. */
#include "core/collective.h"
#include "core/rank.h"

enum { PIECE_BYTES = 32 * 1024, HALVES_MIN_BYTES = 16 * 1024, TAGS_PER_PART = 128 };
enum { ROUNDS_MAX = 20 }; /* of two ranks each, with as many ranks as there may be */
enum { TAG_PAIR = 40, TAG_RESULT = 41, TAG_READY = 42, TAG_BARRIER = 80 }; /* above the rounds */

/* The piece on which a part works: in place in `out`, or in scratch if `out` is not wanted. */
typedef struct part {
    unsigned char *piece, *other;
    size_t bytes;
    int32_t tag;
    bool large;
} part;

/* The size of a piece that goes by halves: between nodes each round takes long. */
static size_t halved_bytes(const fy_collective *c)
{
    return c->spread ? 8 * PIECE_BYTES : 2 * PIECE_BYTES;
}

static bool allreduce_begin(fy_collective *c, part *p, bool in_place, size_t most)
{
    size_t left = c->size_bytes - c->done;
    size_t room = c->size_bytes < most ? c->size_bytes : most;
    room -= room % c->value_bytes;
    if (room == 0)
        room = c->size_bytes < c->value_bytes ? c->size_bytes : c->value_bytes;
    if (c->scratch == NULL && !fy_plan_scratch(c, in_place ? room : room * 2))
        return false;
    p->bytes = left < room ? left : room;
    p->piece =
        in_place && c->size_bytes > 0 ? (unsigned char *)c->what.out + c->done : c->scratch + room;
    p->other = c->scratch;
    p->tag = (int32_t)(c->part % 0x100000 * TAGS_PER_PART);
    p->large = c->size_bytes > PIECE_BYTES;
    if (c->size_bytes > 0)
        fy_plan_copy(c, p->piece, (const unsigned char *)c->what.in + c->done, p->bytes);
    c->done += p->bytes;
    c->last = c->done == c->size_bytes;
    return true;
}

static int rank_of(const fy_pairing *p, int position)
{
    return position < p->rest ? position * 2 : position + p->rest;
}

static int position_of(const fy_pairing *p, int rank)
{
    return rank < 2 * p->rest ? rank / 2 : rank - p->rest;
}

/* All ranks collect the shares. */
enum { ALL_COLLECT = -1 };

/* Rounds among ranks that hold a run of ranks each: two exchange what they have, and combine it.
 * `halves`: each combines one half of it, and in the end `collector` collects these shares. */
static void double_up(fy_collective *c, const part *p, const fy_pairing *pairs, bool halves,
                      int collector)
{
    unsigned char *wholes[ROUNDS_MAX], *own = p->piece;
    size_t sizes[ROUNDS_MAX], size = p->bytes;
    int position = position_of(pairs, c->self), round = 0;
    for (; 1 << round < pairs->power; round++) {
        int rank = rank_of(pairs, position ^ 1 << round);
        bool upper = (position >> round & 1) != 0;
        unsigned char *sent = own;
        size_t sent_bytes = size;
        wholes[round] = own;
        sizes[round] = size;
        if (halves) {
            size_t low = size / c->value_bytes / 2 * c->value_bytes;
            sent_bytes = upper ? low : size - low;
            sent = upper ? own : own + low;
            own += upper ? low : 0;
            size -= sent_bytes;
        }
        fy_plan_send(c, rank, p->tag + round, sent, sent_bytes);
        fy_plan_take(c, rank, p->tag + round, p->other, size);
        fy_plan_combine(c, own, upper ? p->other : own, upper ? own : p->other, size);
    }
    while (halves && round-- > 0) {
        int rank = rank_of(pairs, position ^ 1 << round);
        unsigned char *theirs = own == wholes[round] ? own + size : wholes[round];
        bool other_collects =
            collector != ALL_COLLECT && ((position ^ collector) >> round & 1) != 0;
        if (collector == ALL_COLLECT || other_collects)
            fy_plan_send(c, rank, p->tag + ROUNDS_MAX + round, own, size);
        if (other_collects)
            return;
        fy_plan_take(c, rank, p->tag + ROUNDS_MAX + round, theirs, sizes[round] - size);
        own = wholes[round];
        size = sizes[round];
    }
}

static bool goes_by_halves(const fy_collective *c, const part *p, const fy_pairing *pairs)
{
    return p->bytes >= HALVES_MIN_BYTES && p->bytes / c->value_bytes >= (size_t)pairs->power;
}

void fy_plan_allreduce(fy_collective *c)
{
    part p;
    fy_pairing pairs = fy_pairing_of(c->ranks);
    bool paired = c->self < 2 * pairs.rest;
    if (!allreduce_begin(c, &p, true, halved_bytes(c)))
        return;
    if (paired && c->self % 2 == 1) {
        fy_plan_send(c, c->self - 1, p.tag + TAG_PAIR, p.piece, p.bytes);
        fy_plan_take(c, c->self - 1, p.tag + TAG_RESULT, p.piece, p.bytes);
        return;
    }
    if (paired) {
        fy_plan_take(c, c->self + 1, p.tag + TAG_PAIR, p.other, p.bytes);
        fy_plan_combine(c, p.piece, p.piece, p.other, p.bytes);
    }
    double_up(c, &p, &pairs, goes_by_halves(c, &p, &pairs), ALL_COLLECT);
    if (paired)
        fy_plan_send(c, c->self + 1, p.tag + TAG_RESULT, p.piece, p.bytes);
}

/* Sends to `rank`. Large data are sent only when it has said that it takes this piece. */
static void hand_over(fy_collective *c, const part *p, int rank, int32_t tag)
{
    if (p->large)
        fy_plan_take(c, rank, p->tag + TAG_READY, NULL, 0);
    fy_plan_send(c, rank, p->tag + tag, p->piece, p->bytes);
}

static void take_over(fy_collective *c, const part *p, int rank, int32_t tag, void *to)
{
    uint32_t post = fy_plan_receive(c, rank, p->tag + tag, to, p->bytes);
    if (p->large)
        fy_plan_send(c, rank, p->tag + TAG_READY, NULL, 0);
    fy_plan_await(c, post);
}

/* Folds until this rank has passed its run on. Rank 0 folds until it has the results of all. */
static void fold(fy_collective *c, const part *p, const fy_pairing *pairs)
{
    int position = position_of(pairs, c->self);
    for (int mask = 1, round = 0; mask < pairs->power; mask *= 2, round++) {
        if (position & mask) {
            hand_over(c, p, rank_of(pairs, position - mask), round);
            return;
        }
        take_over(c, p, rank_of(pairs, position + mask), round, p->other);
        fy_plan_combine(c, p->piece, p->piece, p->other, p->bytes);
    }
}

void fy_plan_reduce(fy_collective *c)
{
    part p;
    size_t at = c->done;
    fy_pairing pairs = fy_pairing_of(c->ranks);
    bool paired = c->self < 2 * pairs.rest;
    if (c->part == 0)
        fy_plan_add_barrier_sometimes(c, TAG_BARRIER);
    if (!allreduce_begin(c, &p, false, halved_bytes(c)))
        return;
    unsigned char *out = c->what.out;
    bool halves = goes_by_halves(c, &p, &pairs);
    int collector = halves ? position_of(&pairs, c->root) : 0, holder = rank_of(&pairs, collector);
    if (paired && c->self % 2 == 1) {
        hand_over(c, &p, c->self - 1, TAG_PAIR);
    } else {
        if (paired) {
            take_over(c, &p, c->self + 1, TAG_PAIR, p.other);
            fy_plan_combine(c, p.piece, p.piece, p.other, p.bytes);
        }
        if (halves)
            double_up(c, &p, &pairs, true, collector);
        else
            fold(c, &p, &pairs);
    }
    if (c->root != holder && c->self == holder)
        hand_over(c, &p, c->root, TAG_RESULT);
    else if (c->root != holder && c->self == c->root)
        take_over(c, &p, holder, TAG_RESULT, p.bytes == 0 ? NULL : out + at);
    else if (c->self == c->root && p.bytes > 0)
        fy_plan_copy(c, out + at, p.piece, p.bytes);
}

/* Scans: in round r a rank receives from the rank 2^r below it the result of the ranks up to there,
 * and sends its own to the rank 2^r above it. `piece` covers the run that ends at this rank,
 * `result` the run that ends below it. */
void fy_plan_scan(fy_collective *c)
{
    part p;
    bool inclusive = c->what.kind == FERRY_SCAN_INCLUSIVE;
    size_t at = c->done;
    if (c->part == 0)
        fy_plan_add_barrier_sometimes(c, TAG_BARRIER);
    if (!allreduce_begin(c, &p, false, PIECE_BYTES))
        return;
    unsigned char *result = p.bytes == 0 ? NULL : (unsigned char *)c->what.out + at;
    for (int distance = 1, round = 0; distance < c->ranks; distance *= 2, round++) {
        int to = c->ranks - distance > c->self ? c->self + distance : -1;
        int from = c->self - distance;
        /* First up the line: rank 0 waits for no other, so there is no deadlock. */
        if (from >= 0 && p.large)
            fy_plan_send(c, from, p.tag + TAG_READY, NULL, 0);
        if (to >= 0)
            hand_over(c, &p, to, round);
        if (from < 0)
            continue;
        fy_plan_take(c, from, p.tag + round, p.other, p.bytes);
        if (distance == 1 && !inclusive)
            fy_plan_copy(c, result, p.other, p.bytes);
        else if (!inclusive)
            fy_plan_combine(c, result, p.other, result, p.bytes);
        fy_plan_combine(c, p.piece, p.other, p.piece, p.bytes);
    }
    if (inclusive)
        fy_plan_copy(c, result, p.piece, p.bytes);
}
