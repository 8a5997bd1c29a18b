/* The operations of a window. Some are done in the call, some wait in a queue, some are sent to the
 * target.
 *
 * If memory is shared, gets, fetches and swaps are done in the call. Else the target is asked. Puts
 * and accumulates wait in the queue of the window until their epoch ends, unless the window is
 * direct. Those of 8 bytes without a track wait as words (words.c). An operation in the queue has a
 * record. The record ends once: by the answer, by the death of the target, or when the window gives
 * it up. If the operation is cancelled or times out, it keeps its record, but uses no memory of the
 * program any more. */
#include <string.h>

#include "core/fail.h"
#include "core/operation.h"
#include "core/reduce.h"
#include "window/state.h"

int fy_window_check(ferry_window *w, const char *call)
{
    return fy_in_handler(w->f) ? fy_fail(w->f, FERRY_ESTATE,
                                         "%s: it may wait, which is not allowed in a handler", call)
                               : 0;
}

int fy_window_check_rank(const ferry_window *w, const char *call, int rank)
{
    bool known = rank >= 0 && rank < w->ranks;
    if (known && !fy_window_is_alive(w->f, rank))
        return fy_fail(w->f, FERRY_EPEER, "%s: rank %d is gone", call, rank);
    if (!known || w->peers[rank].id == 0)
        return fy_fail(w->f, FERRY_EINVAL, "%s: rank %d is not in the group of this window", call,
                       rank);
    return 0;
}

int fy_window_check_epoch(const ferry_window *w, const char *call, int rank)
{
    int error = fy_window_check_rank(w, call, rank);
    if (error != 0)
        return error;
    const fy_window_peer *peer = &w->peers[rank];
    if (!w->fenced && !peer->started && peer->locked == FY_HELD_NOT)
        return fy_fail(w->f, FERRY_ESTATE,
                       "%s: no epoch is open towards rank %d; call fence, start or lock first",
                       call, rank);
    return 0;
}

static int window_explain(ferry_window *w, const char *call, int rank, const fy_action *what,
                          int error)
{
    switch (error) {
    case 0:
        return 0;
    case FERRY_ETOOLONG:
        return fy_fail(w->f, error, "%s: element %lld of rank %d has more than the %zu bytes given",
                       call, (long long)what->index, rank, what->room_bytes);
    case FERRY_EINVAL:
        return fy_fail(w->f, error, "%s: element %lld of rank %d has a size other than %zu bytes",
                       call, (long long)what->index, rank, what->size_bytes);
    case FERRY_EPEER:
        return fy_fail(w->f, error, "%s: a rank died while it changed element %lld of rank %d",
                       call, (long long)what->index, rank);
    default:
        return fy_fail(w->f, error, "%s: element %lld of rank %d: %s", call, (long long)what->index,
                       rank,
                       error == FERRY_ERANGE ? "the index lies before the array" : "no memory");
    }
}

/* Ends a tracked operation. If its target has said what is wrong, its receipt names the element. */
static void end_tracked(const fy_window_op *op, uint32_t tracked, int error)
{
    static const char *const calls[] = {"window_put", "window_accumulate", "window_fetch",
                                        "window_compare_swap", "window_get"};
    ferry *f = op->window->f;
    bool known = op->action.verb < sizeof(calls) / sizeof(calls[0]) &&
                 (error == FERRY_ETOOLONG || error == FERRY_EINVAL || error == FERRY_ERANGE);
    if (known) {
        (void)window_explain(op->window, calls[op->action.verb], op->rank, &op->action, error);
        fy_op_end_explained(f, tracked, error);
    } else {
        fy_op_end(f, tracked, error);
    }
}

void fy_window_op_end(fy_window_op *op, int error)
{
    ferry_window *w = op->window;
    uint32_t tracked = op->op;
    fy_window_group *group = op->group;
    if (op->action.verb == FY_WINDOW_NOTHING)
        error = 0;
    else if (tracked == 0 && group == NULL && op->action.verb != FY_WINDOW_LOCK)
        fy_window_note(w, op->rank, op->action.index, error);
    if (op->serial == 0)
        w->peers[op->rank].queued--;
    if (group != NULL)
        group->parts[op->part] = NULL;
    fy_list_remove(&op->link);
    if (tracked != 0)
        end_tracked(op, tracked, error);
    fy_pool_put(&fy_windows_of(w->f)->ops, op);
    if (group != NULL)
        fy_window_group_end(group, error);
}

void fy_window_op_silence(fy_window_op *op)
{
    op->action.target = NULL;
    op->action.size_out = NULL;
    op->action.value = NULL;
    op->action.verb = FY_WINDOW_NOTHING;
}

/* Handles an operation that the program has given up, or whose target has died. */
static void op_gone(ferry *f, void *arg, uint32_t name, int error)
{
    (void)f, (void)name, (void)error;
    fy_window_op *op = arg;
    op->op = 0;
    fy_window_op_silence(op);
}

/* Makes the record of an operation, with its track if it has one. */
static int op_create(ferry_window *w, int rank, const fy_action *what, const ferry_track *track,
                     fy_window_op **out)
{
    fy_windows *all = fy_windows_of(w->f);
    fy_window_op *op = fy_pool_get(&all->ops);
    if (op == NULL)
        return fy_fail(w->f, FERRY_ENOMEM, "window: no memory for another operation");
    *op = (fy_window_op){.window = w, .action = *what, .rank = rank};
    fy_list_init(&op->link);
    int error = fy_op_start(w->f, track, rank, 0, what->size_bytes, &op->op);
    if (error != 0) {
        fy_pool_put(&all->ops, op);
        return error;
    }
    if (op->op != 0)
        fy_op_own(w->f, op->op, op_gone, op);
    fy_op_aside(w->f, op->op);
    *out = op;
    return 0;
}

static int queue(ferry_window *w, int rank, const fy_action *what, const ferry_track *track)
{
    fy_window_op *op;
    int error = op_create(w, rank, what, track, &op);
    if (error != 0)
        return error;
    fy_list_insert(&w->queue, &op->link);
    w->peers[rank].queued++;
    return 0;
}

/* Does the action now, or asks the target to do it. */
static int do_now(ferry_window *w, const char *call, int rank, const fy_action *what,
                  const ferry_track *track)
{
    fy_array *array = w->peers[rank].array;
    if (array == NULL) {
        fy_window_op *op;
        int error = op_create(w, rank, what, track, &op);
        if (error == 0)
            error = fy_window_ask_send(op);
        else
            return error;
        if (error != 0) {
            fy_op_drop(w->f, op->op);
            fy_pool_put(&fy_windows_of(w->f)->ops, op);
        }
        return error;
    }
    uint32_t op;
    int error = fy_op_start(w->f, track, rank, 0, what->size_bytes, &op);
    if (error != 0)
        return error;
    error = window_explain(w, call, rank, what, fy_array_apply(w->f, array, rank, what));
    if (error != 0)
        fy_op_drop(w->f, op);
    else
        fy_op_end(w->f, op, 0);
    return error;
}

static inline bool waits(const ferry_window *w, const fy_action *what)
{
    return !w->direct && (what->verb == FY_WINDOW_PUT || what->verb == FY_WINDOW_ACCUMULATE);
}

int fy_window_part(ferry_window *w, const char *call, int rank, const fy_action *what,
                   fy_window_group *group)
{
    fy_array *array = w->peers[rank].array;
    fy_window_op *op;
    if (!waits(w, what) && array != NULL)
        return window_explain(w, call, rank, what, fy_array_apply(w->f, array, rank, what));
    int error = op_create(w, rank, what, NULL, &op);
    if (error == 0 && waits(w, what)) {
        fy_list_insert(&w->queue, &op->link);
        w->peers[rank].queued++;
    } else if (error == 0 && (error = fy_window_ask_send(op)) != 0) {
        fy_pool_put(&fy_windows_of(w->f)->ops, op);
    }
    if (error != 0 || group == NULL)
        return error;
    op->group = group;
    op->part = group->count;
    group->parts[group->count++] = op;
    group->waiting++;
    return 0;
}

/* The word of an element, if its memory is shared and an epoch is open; else NULL. */
static inline _Atomic uint64_t *word_find(const ferry_window *w, int rank, int64_t index)
{
    if ((unsigned)rank >= (unsigned)w->ranks || !w->peers[rank].open)
        return NULL;
    return fy_array_word(w->peers[rank].array, index);
}

/* Keeps a put or a sum for the end of the epoch. Returns false without memory. */
static inline bool word_keep(ferry_window *w, int rank, int64_t index, const void *value, bool adds)
{
    fy_window_peer *peer = &w->peers[rank];
    if (peer->word_count == peer->word_room && !fy_window_words_grow(peer))
        return false;
    fy_window_word *word = &peer->words[peer->word_count++];
    word->index = index;
    memcpy(&word->value, value, sizeof(word->value));
    word->adds = adds;
    w->words++;
    return true;
}

/* Puts 8 bytes into the word of an element, or keeps them until the epoch ends. Returns false if
 * neither is possible. */
static inline bool put_word(ferry_window *w, int rank, int64_t index, const void *value)
{
    _Atomic uint64_t *number = word_find(w, rank, index);
    if (number == NULL)
        return false;
    if (!w->direct)
        return word_keep(w, rank, index, value, false);
    uint64_t word;
    memcpy(&word, value, sizeof(word));
    /* release: pairs with the acquire of a rank that reads it */
    atomic_store_explicit(number, word, memory_order_release);
    return true;
}

static int queue_or_do(ferry_window *w, const char *call, int rank, const fy_action *what,
                       const ferry_track *track)
{
    return waits(w, what) ? queue(w, rank, what, track) : do_now(w, call, rank, what, track);
}

int ferry_window_put(ferry_window *w, int rank, int64_t index, const ferry_window_value *value,
                     const ferry_track *track)
{
    if (track == NULL && value != NULL && value->data != NULL &&
        value->size_bytes == sizeof(uint64_t) && put_word(w, rank, index, value->data))
        return 0;
    int error = fy_window_check_epoch(w, "window_put", rank);
    if (error != 0)
        return error;
    const fy_action what = {.verb = FY_WINDOW_PUT,
                            .index = index,
                            .value = value == NULL ? NULL : value->data,
                            .size_bytes =
                                value == NULL || value->data == NULL ? 0 : value->size_bytes};
    return queue_or_do(w, "window_put", rank, &what, track);
}

int ferry_window_get(ferry_window *w, int rank, int64_t index, const ferry_window_target *target,
                     const ferry_track *track)
{
    _Atomic uint64_t *number;
    if (track == NULL && target != NULL && target->data != NULL &&
        target->room_bytes >= sizeof(uint64_t) && (number = word_find(w, rank, index)) != NULL) {
        /* acquire: pairs with the release of the rank that wrote it */
        const uint64_t word = atomic_load_explicit(number, memory_order_acquire);
        memcpy(target->data, &word, sizeof(word));
        if (target->size_bytes != NULL)
            *target->size_bytes = sizeof(word);
        return 0;
    }
    int error = fy_window_check_epoch(w, "window_get", rank);
    if (error != 0)
        return error;
    if (target == NULL || (target->data == NULL && target->room_bytes > 0))
        return fy_fail(w->f, FERRY_EINVAL, "window_get: no place for the value");
    const fy_action what = {.verb = FY_WINDOW_GET,
                            .index = index,
                            .target = target->data,
                            .room_bytes = target->room_bytes,
                            .size_out = target->size_bytes};
    return do_now(w, "window_get", rank, &what, track);
}

int ferry_window_read(ferry_window *w, int64_t index, void *target, size_t room_bytes,
                      size_t *size_bytes)
{
    const int rank = ferry_rank(w->f);
    const fy_action what = {.verb = FY_WINDOW_GET,
                            .index = index,
                            .target = target,
                            .room_bytes = room_bytes,
                            .size_out = size_bytes};
    if (target == NULL && room_bytes > 0)
        return fy_fail(w->f, FERRY_EINVAL, "window_read: no place for the value");
    return window_explain(w, "window_read", rank, &what,
                          fy_array_apply(w->f, w->array, rank, &what));
}

static const char *type_name(ferry_type type)
{
    static const char *const names[] = {"double", "float", "int32", "int64", "uint64",
                                        "byte",   "int16", "long",  "ulong", "struct"};
    return (unsigned)type < sizeof(names) / sizeof(names[0]) ? names[type] : "no type";
}

static const char *reduction_name(ferry_reduction reduction)
{
    static const char *const names[] = {"replace", "sum", "min", "max", "product",
                                        "and",     "or",  "xor", "user"};
    return (unsigned)reduction < sizeof(names) / sizeof(names[0]) ? names[reduction]
                                                                  : "no reduction";
}

/* Makes an action of a change. */
static int read_change(ferry_window *w, const char *call, const ferry_window_change *change,
                       fy_action *what)
{
    if (change == NULL || change->value == NULL || change->count == 0)
        return fy_fail(w->f, FERRY_EINVAL, "%s: no value given", call);
    what->type = (uint8_t)change->type;
    what->reduction = (uint8_t)change->reduction;
    what->count = change->count;
    what->value = change->value;
    if ((unsigned)change->type > UINT8_MAX || (unsigned)change->reduction > UINT8_MAX ||
        !fy_action_is_right(what))
        return fy_fail(w->f, FERRY_EINVAL,
                       "%s: %zu numbers of type %d (%s) cannot be combined by reduction %d (%s)",
                       call, change->count, (int)change->type, type_name(change->type),
                       (int)change->reduction, reduction_name(change->reduction));
    what->size_bytes = change->count * fy_type_bytes(change->type);
    return 0;
}

/* Whether the change adds one 64-bit number. */
static inline bool adds_word(const ferry_window_change *change)
{
    return change != NULL && change->value != NULL && change->count == 1 &&
           change->reduction == FERRY_SUM &&
           (change->type == FERRY_INT64 || change->type == FERRY_UINT64);
}

/* Adds to the word of an element, if that can be done here. */
static inline bool add_word(const ferry_window *w, int rank, int64_t index,
                            const ferry_window_change *change, void *old)
{
    _Atomic uint64_t *number = word_find(w, rank, index);
    if (number == NULL)
        return false;
    uint64_t word;
    memcpy(&word, change->value, sizeof(word));
    /* acq_rel: the rank that adds next sees what this one wrote before */
    word = atomic_fetch_add_explicit(number, word, memory_order_acq_rel);
    if (old != NULL)
        memcpy(old, &word, sizeof(word));
    return true;
}

int ferry_window_accumulate(ferry_window *w, int rank, int64_t index,
                            const ferry_window_change *change, const ferry_track *track)
{
    static const char call[] = "window_accumulate";
    if (track == NULL && adds_word(change) &&
        (w->direct
             ? add_word(w, rank, index, change, NULL)
             : word_find(w, rank, index) != NULL && word_keep(w, rank, index, change->value, true)))
        return 0;
    fy_action what = {.verb = FY_WINDOW_ACCUMULATE, .index = index};
    int error = fy_window_check_epoch(w, call, rank);
    if (error == 0)
        error = read_change(w, call, change, &what);
    return error == 0 ? queue_or_do(w, call, rank, &what, track) : error;
}

int ferry_window_fetch(ferry_window *w, int rank, int64_t index, const ferry_window_change *change,
                       void *old, const ferry_track *track)
{
    if (track == NULL && adds_word(change) && add_word(w, rank, index, change, old))
        return 0;
    static const char call[] = "window_fetch";
    fy_action what = {.verb = FY_WINDOW_FETCH, .index = index, .target = old};
    int error = fy_window_check_epoch(w, call, rank);
    if (error == 0)
        error = read_change(w, call, change, &what);
    if (error == 0 && what.count != 1)
        error = fy_fail(w->f, FERRY_EINVAL, "%s: %zu numbers; expected 1", call, what.count);
    return error == 0 ? do_now(w, call, rank, &what, track) : error;
}

int ferry_window_compare_swap(ferry_window *w, int rank, int64_t index,
                              const ferry_window_swap *swap, void *old, const ferry_track *track)
{
    static const char call[] = "window_compare_swap";
    int error = fy_window_check_epoch(w, call, rank);
    if (error != 0)
        return error;
    if (swap == NULL || swap->expected == NULL || swap->value == NULL)
        return fy_fail(w->f, FERRY_EINVAL, "%s: no value given", call);
    if (swap->size_bytes < 1 || swap->size_bytes > sizeof(uint64_t))
        return fy_fail(w->f, FERRY_EINVAL, "%s: %zu bytes; expected 1 to 8", call,
                       swap->size_bytes);
    const fy_action what = {.verb = FY_WINDOW_SWAP,
                            .index = index,
                            .value = swap->value,
                            .expected = swap->expected,
                            .size_bytes = swap->size_bytes,
                            .target = old};
    return do_now(w, call, rank, &what, track);
}

int fy_window_ask_lock(ferry_window *w, int rank, fy_lock_part kind)
{
    const fy_action what = {.verb = FY_WINDOW_LOCK, .index = kind};
    return do_now(w, "window_lock", rank, &what, NULL);
}

/* Carries out a queued operation at the end of its epoch. */
static void carry_out(fy_window_op *op)
{
    ferry_window *w = op->window;
    fy_array *array = w->peers[op->rank].array;
    int error = 0;
    if (op->action.verb == FY_WINDOW_NOTHING)
        fy_window_op_end(op, 0);
    else if (!fy_window_is_alive(w->f, op->rank))
        fy_window_op_end(op, FERRY_EPEER);
    else if (array != NULL)
        fy_window_op_end(op, fy_array_apply(w->f, array, op->rank, &op->action));
    else if ((error = fy_window_ask_send(op)) != 0)
        fy_window_op_end(op, error);
}

void fy_window_carry_out(ferry_window *w, int rank)
{
    fy_window_words_end(w, rank, 0);
    if (rank >= 0 && w->peers[rank].queued == 0)
        return;
    for (fy_link *link = w->queue.next, *next; link != &w->queue; link = next) {
        fy_window_op *op = (fy_window_op *)(void *)link;
        next = link->next;
        if (rank < 0 || op->rank == rank)
            carry_out(op);
    }
}

void fy_window_give_up(ferry_window *w, int rank, int error)
{
    fy_window_words_end(w, rank, error);
    for (fy_link *link = w->queue.next, *next; link != &w->queue; link = next) {
        fy_window_op *op = (fy_window_op *)(void *)link;
        next = link->next;
        if (rank < 0 || op->rank == rank)
            fy_window_op_end(op, error);
    }
}
