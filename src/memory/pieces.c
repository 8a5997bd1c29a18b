/* Puts and gets of many pieces, given one by one or by strides.
 *
 * Pieces that this rank can access itself are copied in the call; frames carry the others, small
 * ones together. All frames of a put belong to the caller's operation: the first refusal ends it as
 * failed, otherwise an empty put after the last piece ends it. Each piece of a get that frames
 * carry, or the small ones of one frame, is an operation of its own, and a record counts them.
 *
 * A call that may be refused for lack of room must not have copied anything before. So if there is
 * no room, it first looks at all pieces, and copies only if none needs a frame. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "core/parts.h"
#include "memory/state.h"

/* With more gets than this in flight, one call waits for some of them before it goes on. */
enum { GETS_MAX = 256 };

/* Pieces up to this size travel together. */
enum { SMALL_BYTES = 2048 };

typedef struct fy_gets {
    fy_parts parts; /* the gets */
    uint32_t op;    /* the caller's */
} fy_gets;

/* The state of a call. */
typedef struct progress {
    const char *name;
    int rank;
    bool put;
    bool by_frames;  /* frames carry at least one piece */
    int room;        /* not 0: no frame may be sent, for this error, and this walk copies nothing */
    ferry_piece far; /* the last piece that frames carry */
    fy_gets *gets;   /* of a call that gets */
    /* The small pieces that the next frame will carry. */
    unsigned char *bundle; /* their heads, of a put with their bytes; NULL: none yet */
    size_t used;           /* of it */
    fy_get_list list;      /* of a get */
    uint32_t op;
    ferry_op wait; /* the operation, when the caller has not given one */
} progress;

void fy_gets_pool_init(fy_pool *pool)
{
    fy_pool_init(pool, sizeof(fy_gets), 8);
}

static void gets_ended(ferry *f, fy_parts *parts)
{
    fy_gets *gets = (fy_gets *)parts;
    fy_op_end(f, gets->op, parts->error);
    fy_pool_put(&fy_memory_of(f)->gets_of_pieces, gets);
}

static inline bool may_copy(ferry *f, const progress *p, const void *remote, size_t size_bytes)
{
    return p->rank == ferry_rank(f) ? fy_memory_is_open(f, remote, size_bytes)
                                    : fy_memory_is_direct(f, p->rank, remote, size_bytes);
}

/* Starts a get of one piece, or of the list of small ones if `piece` is NULL. */
static int get_part(ferry *f, progress *p, const ferry_piece *piece)
{
    uint32_t op;
    size_t size_bytes = piece != NULL ? piece->size_bytes : p->list.size_bytes;
    int error = fy_part_start(f, &p->gets->parts, p->rank, 0, size_bytes, &op);
    if (error != 0)
        return error;
    const fy_get_how how = {.op = op, .guard = p->op, .tag = FY_NO_TAG};
    error = piece != NULL ? fy_get_pieces(f, p->rank, piece, &how)
                          : fy_get_small(f, p->rank, &p->list, p->bundle, &how);
    if (error != 0) {
        fy_part_drop(f, &p->gets->parts, op);
        return error;
    }
    if (piece == NULL)
        p->list = (fy_get_list){0};
    while (p->gets->parts.count > GETS_MAX && !fy_in_handler(f))
        if (ferry_wait(f, FERRY_FOREVER) < 0)
            break;
    return 0;
}

static int put_part(ferry *f, const progress *p, const ferry_piece *piece, fy_put_part part)
{
    const fy_put_how how = {.op = p->op, .part = part, .tag = FY_NO_TAG};
    return fy_put_pieces(f, p->rank, piece, &how);
}

/* Sends the small pieces that wait for the next frame. */
static int send_small(ferry *f, progress *p)
{
    int error = p->used == 0 ? 0
                : p->put     ? fy_put_small(f, p->rank, p->op, p->bundle, p->used)
                             : get_part(f, p, NULL);
    p->used = 0;
    return error;
}

/* Whether there is memory to collect small pieces; otherwise they travel alone. */
static bool may_collect(progress *p, size_t bytes)
{
    if (p->bundle == NULL)
        p->bundle = fy_malloc(bytes);
    if (p->list.pieces == NULL && !p->put)
        p->list.pieces = fy_malloc(bytes / sizeof(fy_piece_head) * sizeof(*p->list.pieces));
    return p->bundle != NULL && (p->put || p->list.pieces != NULL);
}

/* Adds a small piece to the next frame. */
static void add_small(progress *p, const ferry_piece *piece)
{
    unsigned char *at = p->bundle + p->used;
    const fy_piece_head head = {(uintptr_t)(p->put ? piece->target : piece->source),
                                piece->size_bytes};
    memcpy(at, &head, sizeof(head));
    p->used += sizeof(head);
    if (!p->put) {
        p->list.pieces[p->list.count++] = *piece;
        p->list.size_bytes += piece->size_bytes;
    } else {
        fy_memory_copy(at + sizeof(head), piece->source, piece->size_bytes);
        p->used += piece->size_bytes;
    }
}

/* Starts a piece that frames carry. Those before it leave first. */
static int start_piece(ferry *f, progress *p, const ferry_piece *piece)
{
    const size_t bytes = fy_memory_of(f)->bundle_bytes;
    size_t size = piece->size_bytes, used = p->used + sizeof(fy_piece_head);
    bool small = size <= SMALL_BYTES && sizeof(fy_piece_head) + size <= bytes;
    if (!small || (p->put ? used : p->list.size_bytes) + size > bytes || used > bytes) {
        int error = send_small(f, p);
        if (error != 0)
            return error;
    }
    if (!small || !may_collect(p, bytes))
        return p->put ? put_part(f, p, piece, FY_PUT_PART) : get_part(f, p, piece);
    add_small(p, piece);
    return 0;
}

/* Copies one piece, or starts its frames. */
static int move(ferry *f, progress *p, const ferry_piece *piece)
{
    const void *remote = p->put ? piece->target : piece->source;
    if (may_copy(f, p, remote, piece->size_bytes)) {
        if (p->room == 0)
            fy_memory_copy_counted(f, piece, p->put ? FY_PROFILE_PUT : FY_PROFILE_GET);
        return 0;
    }
    if (p->rank == ferry_rank(f))
        return fy_memory_refused(f, p->name, p->rank, (uintptr_t)remote, piece->size_bytes);
    if (p->room != 0)
        return p->room;
    int error = p->wait.word == 0 ? 0 : fy_memory_check_wait(f, p->name, p->rank);
    p->by_frames = true;
    p->far = *piece;
    return error == 0 ? start_piece(f, p, piece) : error;
}

/* After a walk over all pieces: whether it copied nothing, so that a second walk must copy. */
static bool only_looked(progress *p)
{
    bool looked = p->room != 0;
    p->room = 0;
    return looked;
}

/* `first` is the piece whose addresses the receipt names. */
static int pieces_begin(ferry *f, progress *p, const ferry_piece *first, size_t size_bytes,
                        const ferry_track *track)
{
    const fy_op_about about = p->put ? fy_memory_about(first->source, first->target)
                                     : fy_memory_about(first->target, first->source);
    /* A get without a track waits if frames carry one of its pieces. Whether one needs frames is
     * not known yet. */
    const ferry_track own = {.size = sizeof(own), .op = &p->wait};
    bool waits = track == NULL && !p->put;
    p->room = waits ? 0 : fy_check_room(f, p->name);
    int error = fy_memory_start(f, p->rank, &about, size_bytes, waits ? &own : track, &p->op);
    (void)fy_op_hold(f, p->op, true);
    if (error != 0 || p->put)
        return error;
    p->gets = fy_pool_get(&fy_memory_of(f)->gets_of_pieces);
    if (p->gets == NULL) {
        fy_op_drop(f, p->op);
        return fy_fail(f, FERRY_ENOMEM, "%s: no memory for another one", p->name);
    }
    *p->gets = (fy_gets){.parts = {.count = 1, .ended = gets_ended}, .op = p->op};
    return 0;
}

/* Ends a call that puts. `error`: why not all pieces were started, or 0. */
static int end_put(ferry *f, progress *p, int error)
{
    if (error == 0)
        error = send_small(f, p);
    free(p->bundle);
    if (error == 0 && p->by_frames) {
        const ferry_piece last = {.target = p->far.target, .source = p->far.source};
        error = put_part(f, p, &last, FY_PUT_END);
    }
    (void)fy_op_hold(f, p->op, false);
    if (error != 0) {
        fy_op_drop(f, p->op);
        return error;
    }
    fy_op_submitted(f, p->op);
    if (!p->by_frames)
        fy_op_end(f, p->op, 0);
    return 0;
}

/* Ends a call that gets. Parts in flight still write to the target. So even after an error the
 * operation ends with the last of them. */
static int end_get(ferry *f, progress *p, int error)
{
    if (error == 0)
        error = send_small(f, p);
    free(p->bundle);
    free(p->list.pieces);
    (void)fy_op_hold(f, p->op, false);
    if (error != 0 && p->gets->parts.count == 1) {
        fy_op_drop(f, p->op);
        fy_pool_put(&fy_memory_of(f)->gets_of_pieces, p->gets);
        return error;
    }
    fy_part_end(f, &p->gets->parts, error);
    if (p->wait.word == 0)
        return 0;
    return fy_in_handler(f) ? ferry_op_test(f, &p->wait) : ferry_op_wait(f, &p->wait);
}

static int check_piece(ferry *f, const progress *p, const ferry_piece *piece)
{
    return fy_memory_check(f, p->name, p->rank, p->put ? piece->target : piece->source,
                           p->put ? piece->source : piece->target, piece->size_bytes);
}

static int move_vector(ferry *f, progress *p, const ferry_piece *pieces, size_t count,
                       const ferry_track *track)
{
    size_t size_bytes = 0;
    const ferry_piece none = {.size_bytes = 0};
    int error = check_piece(f, p, &none);
    if (error == 0 && count > 0 && pieces == NULL)
        error = fy_fail(f, FERRY_EINVAL, "%s: %zu pieces at NULL", p->name, count);
    for (size_t i = 0; i < count && error == 0; i++) {
        error = check_piece(f, p, &pieces[i]);
        size_bytes += pieces[i].size_bytes;
    }
    if (error == 0)
        error = pieces_begin(f, p, count > 0 ? pieces : &none, size_bytes, track);
    if (error != 0)
        return error;
    do {
        for (size_t i = 0; i < count && error == 0; i++)
            error = move(f, p, &pieces[i]);
    } while (error == 0 && only_looked(p));
    return p->put ? end_put(f, p, error) : end_get(f, p, error);
}

int ferry_put_vector(ferry *f, int rank, const ferry_piece *pieces, size_t count,
                     const ferry_track *track)
{
    progress p = {.name = "put_vector", .rank = rank, .put = true};
    return move_vector(f, &p, pieces, count, track);
}

int ferry_get_vector(ferry *f, int rank, const ferry_piece *pieces, size_t count,
                     const ferry_track *track)
{
    progress p = {.name = "get_vector", .rank = rank};
    return move_vector(f, &p, pieces, count, track);
}

/* The smallest range that contains all blocks of one side. Returns false if they leave the address
 * space. */
static bool find_extent(const ferry_strided *s, const void *base, bool target, uintptr_t *low,
                        size_t *size_bytes)
{
    uintptr_t from = (uintptr_t)base, to;
    bool outside = __builtin_add_overflow(from, s->block_bytes, &to);
    for (int i = 0; i < s->levels; i++) {
        ptrdiff_t step = target ? s->stride[i].target_bytes : s->stride[i].source_bytes, far;
        outside = outside || __builtin_mul_overflow(s->stride[i].count - 1, step, &far);
        if (outside)
            return false;
        if (far < 0)
            outside = __builtin_sub_overflow(from, (uintptr_t)0 - (uintptr_t)far, &from);
        else
            outside = __builtin_add_overflow(to, (uintptr_t)far, &to);
    }
    *low = from;
    *size_bytes = to - from;
    return !outside;
}

static bool strided_is_empty(const ferry_strided *s)
{
    bool empty = s->block_bytes == 0;
    for (int i = 0; i < s->levels; i++)
        empty = empty || s->stride[i].count == 0;
    return empty;
}

/* A walk over the blocks. */
typedef struct walk {
    size_t index[FERRY_LEVELS_MAX]; /* of the block, in each level */
    ferry_piece piece;              /* the block */
} walk;

/* Goes to the next block. After the last block it returns false and is at the first again. */
static inline bool step(const ferry_strided *s, walk *w)
{
    for (int i = 0; i < s->levels; i++) {
        const ferry_stride *level = &s->stride[i];
        char *target = w->piece.target;
        const char *source = w->piece.source;
        if (++w->index[i] < level->count) {
            w->piece.target = target + level->target_bytes;
            w->piece.source = source + level->source_bytes;
            return true;
        }
        w->index[i] = 0;
        ptrdiff_t back = (ptrdiff_t)(level->count - 1);
        w->piece.target = target - back * level->target_bytes;
        w->piece.source = source - back * level->source_bytes;
    }
    return false;
}

static int check_strided(ferry *f, const progress *p, const ferry_strided *s)
{
    if (s == NULL || (s->levels > 0 && s->stride == NULL))
        return fy_fail(f, FERRY_EINVAL, "%s: %s is NULL", p->name, s == NULL ? "what" : "stride");
    if (s->levels < 0 || s->levels > FERRY_LEVELS_MAX)
        return fy_fail(f, FERRY_EINVAL, "%s: %d levels; expected 0..%d", p->name, s->levels,
                       FERRY_LEVELS_MAX);
    const ferry_piece first = {s->target, s->source, strided_is_empty(s) ? 0 : s->block_bytes};
    return check_piece(f, p, &first);
}

/* The size of all blocks. If it is large, the lowest and the highest block must be mapped here.
 * Between them there may be holes. */
static int check_blocks(ferry *f, const progress *p, const ferry_strided *s, size_t *size_bytes)
{
    size_t size = s->block_bytes, extent;
    uintptr_t low;
    bool fits = true;
    for (int i = 0; i < s->levels; i++)
        fits = !__builtin_mul_overflow(size, s->stride[i].count, &size) && fits;
    *size_bytes = size;
    if (!fits)
        return fy_fail(f, FERRY_ERANGE,
                       "%s: blocks of %zu bytes and %d levels of strides make more than %zu bytes",
                       p->name, s->block_bytes, s->levels, SIZE_MAX);
    if (size <= FY_UNCHECKED_BYTES ||
        !find_extent(s, p->put ? s->source : s->target, !p->put, &low, &extent))
        return 0;
    uintptr_t high = low + extent - s->block_bytes;
    return fy_memory_is_mapped((const void *)low, s->block_bytes) &&
                   fy_memory_is_mapped((const void *)high, s->block_bytes)
               ? 0
               : fy_memory_refuse_here(f, p->name, (const void *)low, extent);
}

/* Copies all blocks. A profile counts them as one copy. */
static void copy_blocks(ferry *f, const progress *p, const ferry_strided *s, walk *w)
{
    fy_stretch stretch = {0};
    bool counted = fy_head_of(f)->profile != NULL;
    uint64_t bytes = 0;
    if (counted)
        stretch = fy_profile_begin(f);
    do {
        fy_memory_copy(w->piece.target, w->piece.source, s->block_bytes);
        bytes += s->block_bytes;
    } while (step(s, w));
    if (counted)
        fy_profile_copied(f, &stretch, p->put ? FY_PROFILE_PUT : FY_PROFILE_GET, bytes);
}

/* Moves all blocks. If this rank can access their whole range, it is asked once, not per block. */
static int move_blocks(ferry *f, progress *p, const ferry_strided *s)
{
    uintptr_t low;
    size_t size_bytes, local_bytes;
    uintptr_t local_low;
    if (!find_extent(s, s->target, true, p->put ? &low : &local_low,
                     p->put ? &size_bytes : &local_bytes) ||
        !find_extent(s, s->source, false, p->put ? &local_low : &low,
                     p->put ? &local_bytes : &size_bytes))
        return fy_fail(f, FERRY_EINVAL, "%s: the strides leave the address space", p->name);
    walk w = {.piece = {s->target, s->source, s->block_bytes}};
    int error = 0;
    if (may_copy(f, p, (const void *)low, size_bytes)) {
        copy_blocks(f, p, s, &w);
        return 0;
    }
    do /* `step` is at the first block again after the last one */
        error = move(f, p, &w.piece);
    while (error == 0 && (step(s, &w) || only_looked(p)));
    return error;
}

static int move_strided(ferry *f, progress *p, const ferry_strided *s, const ferry_track *track)
{
    size_t size_bytes = 0;
    int error = check_strided(f, p, s);
    if (error == 0 && !strided_is_empty(s))
        error = check_blocks(f, p, s, &size_bytes);
    if (error == 0)
        error = pieces_begin(f, p, &(ferry_piece){s->target, s->source, 0}, size_bytes, track);
    if (error != 0)
        return error;
    error = strided_is_empty(s) ? 0 : move_blocks(f, p, s);
    return p->put ? end_put(f, p, error) : end_get(f, p, error);
}

int ferry_put_strided(ferry *f, int rank, const ferry_strided *what, const ferry_track *track)
{
    progress p = {.name = "put_strided", .rank = rank, .put = true};
    return move_strided(f, &p, what, track);
}

int ferry_get_strided(ferry *f, int rank, const ferry_strided *what, const ferry_track *track)
{
    progress p = {.name = "get_strided", .rank = rank};
    return move_strided(f, &p, what, track);
}
