/* Windows over frames: a rank whose memory is not shared carries out the operations of other ranks.
 *
 * A request has a serial number of the asking rank, and the number of the window at the target. The
 * answer has the same serial number. If the window has gone, the answer is FERRY_EPEER: its creator
 * has freed it after a death. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/operation.h"
#include "core/outgoing.h"
#include "window/state.h"

/* Words of a request: serial, index, how (below), room. Words of an answer: serial, error, the size
 * or the number before. Other frames have none but the serial of FY_WINDOW_LOCK, and its kind. */
enum { WORDS = 4, TYPE_SHIFT = 8, VALUE_BIT = 16, COUNT_SHIFT = 17 };

static ferry_window *window_find(const fy_windows *all, uint32_t id)
{
    for (fy_link *link = all->windows.next; link != &all->windows; link = link->next) {
        ferry_window *w = (ferry_window *)(void *)link;
        if (w->id == id)
            return w;
    }
    return NULL;
}

static fy_frame question(const fy_window_op *op, unsigned char pair[2 * sizeof(uint64_t)])
{
    const fy_action *what = &op->action;
    bool has_value = what->value != NULL;
    fy_frame frame = {.kind = FY_KIND_WINDOW,
                      .word_count = WORDS,
                      .handler = (uint16_t)what->verb,
                      .aux = op->window->peers[op->rank].id,
                      .words = {op->serial, (uint64_t)what->index,
                                what->reduction | (uint64_t)what->type << TYPE_SHIFT |
                                    (uint64_t)has_value << VALUE_BIT |
                                    (uint64_t)what->count << COUNT_SHIFT,
                                what->room_bytes},
                      .data = what->size_bytes == 0 ? NULL : what->value,
                      .size_bytes = has_value ? what->size_bytes : 0};
    if (what->verb == FY_WINDOW_SWAP) {
        memcpy(pair, what->expected, what->size_bytes);
        memcpy(pair + what->size_bytes, what->value, what->size_bytes);
        frame.data = pair;
        frame.size_bytes = 2 * what->size_bytes;
    }
    return frame;
}

int fy_window_ask_send(fy_window_op *op)
{
    ferry_window *w = op->window;
    fy_windows *all = fy_windows_of(w->f);
    void *slot;
    uint64_t serial = ++all->serial;
    if (fy_table_insert(&all->asked, serial, &slot) != 0)
        return fy_fail(w->f, FERRY_ENOMEM, "window: no memory for another operation");
    ((fy_window_ask *)slot)->op = op;
    bool queued = !fy_list_empty(&op->link);
    op->serial = serial;
    unsigned char pair[2 * sizeof(uint64_t)];
    const fy_frame frame = question(op, pair);
    int error = fy_send(w->f, FY_DATA, op->rank, &frame);
    if (error != 0) {
        op->serial = 0;
        fy_table_remove(&all->asked, fy_table_find(&all->asked, serial));
        return error;
    }
    if (queued)
        w->peers[op->rank].queued--;
    fy_list_remove(&op->link);
    w->asked++;
    w->peers[op->rank].asked++;
    return 0;
}

/* Removes a request from `asked`, and ends its operation. */
static void answered(fy_windows *all, fy_window_ask *ask, int error)
{
    fy_window_op *op = ask->op;
    op->window->asked--;
    op->window->peers[op->rank].asked--;
    fy_table_remove(&all->asked, ask);
    fy_window_op_end(op, error);
}

static void take_answer(ferry *f, int source, const fy_frame *frame)
{
    fy_windows *all = fy_windows_of(f);
    fy_window_ask *ask = frame->words[0] == 0 ? NULL : fy_table_find(&all->asked, frame->words[0]);
    if (ask == NULL || ask->op->rank != source) {
        fy_bad_frame(f, source, frame, "the answer to no window operation");
        return;
    }
    const fy_action *what = &ask->op->action;
    if (what->verb == FY_WINDOW_LOCK && frame->words[1] == 0)
        ask->op->window->peers[source].locked = (uint8_t)what->index;
    int64_t error = (int64_t)frame->words[1];
    if (what->verb == FY_WINDOW_GET) {
        if (what->size_out != NULL)
            *what->size_out = (size_t)frame->words[2];
        if (error == 0 && frame->size_bytes <= what->room_bytes && frame->size_bytes > 0)
            memcpy(what->target, frame->data, frame->size_bytes);
    } else if (error == 0 && what->target != NULL) {
        memcpy(what->target, &frame->words[2], what->size_bytes);
    }
    answered(all, ask, error > 0 || error < INT16_MIN ? FERRY_EINVAL : (int)error);
}

static fy_frame answer_to(const fy_frame *frame, int error, uint64_t word)
{
    return (fy_frame){.kind = FY_KIND_WINDOW,
                      .word_count = WORDS,
                      .handler = FY_WINDOW_ANSWER,
                      .words = {frame->words[0], (uint64_t)(int64_t)error, word, 0}};
}

/* Carries out a get: reads the value into memory of this call, and sends it with the answer. */
static fy_verdict serve_get(ferry *f, ferry_window *w, int source, const fy_frame *frame)
{
    unsigned char few[256];
    size_t size_bytes = 0;
    fy_action what = {.verb = FY_WINDOW_GET,
                      .index = (int64_t)frame->words[1],
                      .target = few,
                      .room_bytes = sizeof(few),
                      .size_out = &size_bytes};
    int rank = ferry_rank(f);
    int error = w == NULL ? FERRY_EPEER : fy_array_apply(f, w->array, rank, &what);
    void *much = NULL;
    /* Another rank of the node may make the value longer meanwhile. */
    while (error == FERRY_ETOOLONG && size_bytes <= frame->words[3]) {
        free(much);
        much = fy_malloc(size_bytes);
        if (much == NULL)
            return FY_LEAVE;
        what.target = much;
        what.room_bytes = size_bytes;
        error = fy_array_apply(f, w->array, rank, &what);
    }
    if (error == 0 && size_bytes > frame->words[3])
        error = FERRY_ETOOLONG;
    fy_frame answer = answer_to(frame, error, size_bytes);
    answer.data = error == 0 && size_bytes > 0 ? what.target : NULL;
    answer.size_bytes = error == 0 ? size_bytes : 0;
    error = fy_send(f, FY_DATA, source, &answer);
    free(much);
    return error == FERRY_ENOMEM ? FY_LEAVE : FY_TAKEN;
}

/* Whether the frame makes sense. */
static bool read_change(const fy_frame *frame, fy_action *what, uint64_t *before)
{
    bool swap = frame->handler == FY_WINDOW_SWAP;
    size_t size_bytes = swap ? frame->size_bytes / 2 : frame->size_bytes;
    *what = (fy_action){.verb = (fy_window_verb)frame->handler,
                        .type = (uint8_t)(frame->words[2] >> TYPE_SHIFT),
                        .reduction = (uint8_t)frame->words[2],
                        .index = (int64_t)frame->words[1],
                        .value = (frame->words[2] >> VALUE_BIT & 1) == 0 ? NULL
                                 : frame->data == NULL                   ? (const void *)""
                                                                         : frame->data,
                        .count = (size_t)(frame->words[2] >> COUNT_SHIFT),
                        .size_bytes = size_bytes};
    if (frame->handler == FY_WINDOW_PUT)
        return true;
    if (swap || frame->handler == FY_WINDOW_FETCH)
        what->target = before;
    if (frame->size_bytes == 0 || (what->target != NULL && size_bytes > sizeof(*before)))
        return false;
    if (swap) {
        what->expected = frame->data;
        what->value = (const unsigned char *)frame->data + size_bytes;
        return frame->size_bytes % 2 == 0;
    }
    return fy_action_is_right(what) && what->count > 0 && size_bytes % what->count == 0 &&
           fy_action_bytes(what) == size_bytes;
}

static fy_verdict serve_change(ferry *f, ferry_window *w, int source, const fy_frame *frame)
{
    /* The change must not be made twice. So memory for the answer is reserved first. */
    if (!fy_op_end_reserve(f))
        return FY_LEAVE;
    uint64_t before = 0;
    fy_action what;
    if (!read_change(frame, &what, &before)) {
        fy_bad_frame(f, source, frame, "a window operation");
        return FY_TAKEN;
    }
    int error = w == NULL ? FERRY_EPEER : fy_array_apply(f, w->array, ferry_rank(f), &what);
    const fy_frame answer = answer_to(frame, error, before);
    fy_op_tell(f, source, &answer);
    return FY_TAKEN;
}

static fy_verdict serve_lock(ferry *f, ferry_window *w, int source, const fy_frame *frame)
{
    fy_windows *all = fy_windows_of(f);
    if (!fy_op_end_reserve(f))
        return FY_LEAVE;
    fy_lock_part kind = frame->words[1] == FY_HELD_EXCLUSIVE ? FY_HELD_EXCLUSIVE : FY_HELD_SHARED;
    int error = w == NULL ? FERRY_EPEER : 0;
    if (w != NULL && !fy_array_lock(f, w->array, source, kind)) {
        fy_lock_wait *wait = fy_calloc(1, sizeof(*wait));
        if (wait == NULL)
            return FY_LEAVE;
        *wait = (fy_lock_wait){
            .window = w, .serial = frame->words[0], .rank = source, .kind = (uint8_t)kind};
        fy_list_insert(&all->lock_waits, &wait->link);
        return FY_TAKEN;
    }
    const fy_frame answer = answer_to(frame, error, 0);
    fy_op_tell(f, source, &answer);
    return FY_TAKEN;
}

int fy_window_locks_serve(fy_windows *all)
{
    int count = 0;
    for (fy_link *link = all->lock_waits.next, *next; link != &all->lock_waits; link = next) {
        fy_lock_wait *wait = (fy_lock_wait *)(void *)link;
        next = link->next;
        bool alive = fy_window_is_alive(all->f, wait->rank);
        if (alive && (!fy_op_end_reserve(all->f) ||
                      !fy_array_lock(all->f, wait->window->array, wait->rank, wait->kind)))
            continue;
        const fy_frame frame = {.words = {wait->serial}};
        const fy_frame answer = answer_to(&frame, 0, 0);
        if (alive)
            fy_op_tell(all->f, wait->rank, &answer);
        fy_list_remove(&wait->link);
        free(wait);
        count++;
    }
    return count;
}

int fy_window_tell(ferry_window *w, int rank, fy_window_verb verb)
{
    if (rank == ferry_rank(w->f)) {
        fy_window_told(w, rank, verb);
        return 0;
    }
    const fy_frame frame = {.kind = FY_KIND_WINDOW,
                            .word_count = WORDS,
                            .handler = (uint16_t)verb,
                            .aux = w->peers[rank].id};
    return fy_send(w->f, FY_DATA, rank, &frame);
}

fy_verdict fy_window_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_windows *all = fy_windows_of(f);
    if (all == NULL || frame->word_count != WORDS || frame->handler >= FY_WINDOW_VERBS) {
        fy_bad_frame(f, source, frame, "a window operation");
        return FY_TAKEN;
    }
    if (frame->handler == FY_WINDOW_ANSWER) {
        take_answer(f, source, frame);
        return FY_TAKEN;
    }
    ferry_window *w = window_find(all, frame->aux);
    if (frame->handler == FY_WINDOW_GET)
        return serve_get(f, w, source, frame);
    if (frame->handler < FY_WINDOW_GET)
        return serve_change(f, w, source, frame);
    if (frame->handler == FY_WINDOW_LOCK)
        return serve_lock(f, w, source, frame);
    if (w == NULL)
        return FY_TAKEN;
    if (frame->handler == FY_WINDOW_UNLOCK) {
        fy_array_unlock(f, w->array, source);
        (void)fy_window_locks_serve(all);
    } else {
        fy_window_told(w, source, (fy_window_verb)frame->handler);
    }
    return FY_TAKEN;
}

void fy_window_lost(ferry_window *w, int rank)
{
    fy_windows *all = fy_windows_of(w->f);
    size_t index = 0;
    fy_window_ask *ask;
    while ((ask = fy_table_next(&all->asked, &index)) != NULL)
        if (ask->op->window == w && ask->op->rank == rank) {
            answered(all, ask, FERRY_EPEER);
            index = 0; /* the slots have moved: begin again */
        }
}
