/* Cells of other nodes: their rank does the operation, and a parcel travels as its bytes.
 *
 * A request has a number of the asking rank, and the answer has the same number. A request that has
 * to wait stays with the cell's rank until it can be done, or until it is cancelled. Then too an
 * answer comes. It says whether the operation was done or cancelled. If it was done and brings a
 * parcel, the asking rank alone decides: the program gets the parcel, or it goes back to the cell
 * because the operation was given up.
 *
 * A rank keeps a copy of the parcel that it read last from such a cell. A request to take or read
 * names the content of that copy. If the parcel still has that content, the answer says so and
 * carries no bytes. The request pins the copy until its answer has come. */
#include <stdlib.h>
#include <string.h>

#include "cell/state.h"
#include "core/fail.h"
#include "core/operation.h"
#include "core/outgoing.h"

/* The handler field of a frame is a fy_cell_kind, for a request, or one of these values. Words:
 *
 * - request: number, cell, WAITS or RETURNS or 0, content of the copy that the asking rank has
 * - answer: number, error, content or count, whether the content is that of the copy
 * - cancel: number
 * - format: the format */
enum {
    FRAME_ANSWER = FY_CELL_KINDS,
    FRAME_CANCEL,
    FRAME_FORMAT_ASKED,
    FRAME_FORMAT,
    WAITS = 1,
    RETURNS = 2, /* the parcel was in the cell before: no limit holds it up */
    WORDS = 4,
};

static uint64_t cache_key(ferry_cell cell)
{
    return ((uint64_t)(uint32_t)cell.rank << 32 | (uint32_t)cell.number) + 1;
}

static int cell_send_frame(fy_cells *c, int rank, const fy_frame *frame)
{
    return fy_send(c->f, FY_DATA, rank, frame);
}

static void drop_cached(fy_cells *c, fy_cached *cached)
{
    fy_parcel *p = fy_parcel_find(c, cached->parcel.word);
    fy_table_remove(&c->cached, cached);
    if (p != NULL)
        fy_parcel_pin(c, p, false);
}

/* Drops the copy of the parcel read last from a cell, if there is one. */
static void remote_forget(fy_cells *c, ferry_cell cell)
{
    fy_cached *cached = fy_table_find(&c->cached, cache_key(cell));
    if (cached != NULL)
        drop_cached(c, cached);
}

/* Pins the copy of the parcel read last from the cell, if there is one, for an operation on it. */
static void pin_copy(fy_cells *c, fy_pending *p)
{
    const fy_cached *cached = p->kind == FY_CELL_READ || p->kind == FY_CELL_DEQ
                                  ? fy_table_find(&c->cached, cache_key(p->cell))
                                  : NULL;
    fy_parcel *copy = cached == NULL ? NULL : fy_parcel_find(c, cached->parcel.word);
    if (copy == NULL)
        return;
    p->known = cached->content;
    p->parcel = cached->parcel;
    fy_parcel_pin(c, copy, true);
}

static int remote_ask(fy_cells *c, const fy_pending *p, fy_parcel *parcel)
{
    const fy_frame frame = {
        .kind = FY_KIND_CELL,
        .word_count = WORDS,
        .handler = (uint16_t)p->kind,
        .words = {p->number, (uint64_t)p->cell.number, p->waits ? WAITS : 0, p->known},
        .data = parcel == NULL ? NULL : fy_parcel_data(c, parcel),
        .size_bytes = parcel == NULL ? 0 : parcel->size_bytes,
    };
    return cell_send_frame(c, p->cell.rank, &frame);
}

/* Whether an operation may wait at the cell. The others are done when they arrive, before
 * operations that wait. */
static bool can_wait(fy_cell_kind kind)
{
    return kind == FY_CELL_ENQ || kind == FY_CELL_DEQ || kind == FY_CELL_READ;
}

/* Makes the record of an operation on a cell of another node, and sends the request. */
static int remote_begin(fy_cells *c, const fy_cell_request *request, bool waits, uint32_t op,
                        fy_pending **out)
{
    fy_pending *p = fy_pending_add(c, request->kind, request->cell, NULL, -1);
    if (p == NULL)
        return fy_fail(c->f, FERRY_ENOMEM, "cell: no memory for another operation");
    p->number = ++c->next_number;
    p->waits = waits && can_wait(request->kind);
    p->out = request->out;
    p->count = request->count;
    pin_copy(c, p);
    int error = remote_ask(c, p, request->parcel);
    if (error != 0) {
        fy_pending_end(c, p, error);
        return error;
    }
    fy_pending_name(c, p, op);
    *out = p;
    return 0;
}

void fy_remote_cancel(fy_cells *c, const fy_pending *p)
{
    const fy_frame frame = {
        .kind = FY_KIND_CELL, .word_count = 1, .handler = FRAME_CANCEL, .words = {p->number}};
    (void)cell_send_frame(c, p->cell.rank,
                          &frame); /* if the peer has gone, that ends the operation */
}

static void wait_done(fy_cells *c, fy_pending *p, uint64_t timeout_ns)
{
    bool cancelled = timeout_ns == FERRY_FOREVER || !p->waits;
    uint64_t now = cancelled ? 0 : ferry_now(c->f);
    uint64_t deadline =
        cancelled || timeout_ns > FERRY_FOREVER - now ? FERRY_FOREVER : now + timeout_ns;
    while (!p->done) {
        now = cancelled ? 0 : ferry_now(c->f);
        if (!cancelled && now >= deadline) {
            fy_remote_cancel(c, p);
            cancelled = true;
        }
        (void)ferry_wait(c->f, cancelled ? FERRY_FOREVER : deadline - now);
    }
}

int fy_remote_call(fy_cells *c, const fy_cell_request *request, uint64_t timeout_ns)
{
    if (fy_in_handler(c->f))
        return fy_fail(c->f, FERRY_ESTATE,
                       "cell: rank %d is on another node: its cells are waited for, which is not "
                       "allowed inside a handler",
                       request->cell.rank);
    fy_pending *p;
    int error = remote_begin(c, request, timeout_ns > 0, 0, &p);
    if (error != 0)
        return error;
    p->awaited = true;
    wait_done(c, p, timeout_ns);
    error = p->error == FERRY_ECANCELED ? FERRY_EAGAIN : p->error;
    free(p);
    bool held = request->parcel != NULL && fy_parcel_held(c, request->name) != NULL;
    if (error == 0 && held && request->hold == FERRY_GIVE)
        fy_parcel_drop(c, request->parcel, c->place, 1);
    if (error != 0 && error != FERRY_EAGAIN)
        return fy_fail(c->f, error, "cell %d of rank %d: %s", request->cell.number,
                       request->cell.rank, ferry_strerror(error));
    return error;
}

int fy_remote_start(fy_cells *c, const fy_cell_request *request, const ferry_track *track)
{
    uint32_t op;
    fy_pending *p;
    int error = fy_op_start(c->f, track, request->cell.rank, 0, 0, &op);
    if (error != 0)
        return error;
    error = remote_begin(c, request, true, op, &p);
    if (error != 0) {
        fy_op_drop(c->f, op);
        return error;
    }
    if (request->parcel != NULL && request->hold == FERRY_GIVE)
        fy_parcel_drop(c, request->parcel, c->place, 1);
    return 0;
}

/* At the cell's rank. */

/* Answers, and ends the operation. Without memory for that the operation stays, and the next poll
 * answers. */
static bool remote_answer(fy_cells *c, fy_pending *p)
{
    bool takes = p->kind == FY_CELL_DEQ || p->kind == FY_CELL_READ;
    bool known = takes && p->error == 0 && p->word != 0 && p->word == p->known;
    fy_parcel *parcel = takes && !known ? fy_parcel_find(c, p->parcel.word) : NULL;
    if (takes && !known && p->error == 0 && parcel == NULL)
        p->error = FERRY_EINVAL; /* the program has overwritten its header */
    const fy_frame frame = {
        .kind = FY_KIND_CELL,
        .word_count = WORDS,
        .handler = FRAME_ANSWER,
        .words = {p->number, (uint64_t)(int64_t)p->error, p->word, known},
        .data = parcel == NULL ? NULL : fy_parcel_data(c, parcel),
        .size_bytes = parcel == NULL ? 0 : parcel->size_bytes,
    };
    if (cell_send_frame(c, p->source, &frame) == FERRY_ENOMEM) {
        fy_pending_owe(c, p);
        return false;
    }
    fy_pending_end(c, p, 0);
    return true;
}

static void refuse(fy_cells *c, fy_pending *p, int error)
{
    p->error = error;
    (void)remote_answer(c, p);
}

static uint64_t parcel_content(const fy_cells *c, uint64_t name)
{
    const fy_parcel *p = fy_parcel_find(c, name);
    return p == NULL ? 0 : p->content;
}

static int do_here(fy_cells *c, fy_pending *p, uint64_t *word)
{
    fy_parcel *parcel = p->parcel.word == 0 ? NULL : fy_parcel_find(c, p->parcel.word);
    bool takes = p->kind == FY_CELL_DEQ || p->kind == FY_CELL_READ;
    int error = 0;
    if (p->parcel.word != 0 && parcel == NULL)
        error = FERRY_EINVAL; /* the program has overwritten its header */
    else if (p->kind == FY_CELL_ENQ)
        error = p->returns ? fy_queue_return(c, p->queue, parcel)
                           : fy_queue_enq(c, p->queue, parcel, FERRY_GIVE);
    else if (p->kind == FY_CELL_WRITE)
        fy_queue_write(c, p->queue, parcel, FERRY_GIVE);
    else if (p->kind == FY_CELL_CLEAR)
        fy_queue_clear(c, p->queue);
    else if (p->kind == FY_CELL_COUNT)
        *word = fy_queue_count(c, p->queue);
    else if (parcel == NULL)
        error = fy_queue_first(c, p->queue, p->kind == FY_CELL_DEQ, &p->parcel);
    if (error == 0 && !takes)
        p->parcel.word = 0;
    else if (error == 0)
        *word = parcel_content(c, p->parcel.word);
    return error;
}

bool fy_remote_serve(fy_cells *c, fy_pending *p)
{
    if (!p->owes)
        p->error = do_here(c, p, &p->word);
    if (p->error == FERRY_EAGAIN && p->waits)
        return false;
    return remote_answer(c, p);
}

static fy_verdict take_request(fy_cells *c, int source, const fy_frame *frame)
{
    ferry_cell cell = {.rank = ferry_rank(c->f), .number = (int32_t)frame->words[1]};
    if (frame->word_count != WORDS || frame->words[1] >= FERRY_CELLS) {
        fy_bad_frame(c->f, source, frame, "an operation on a cell");
        return FY_TAKEN;
    }
    bool behind = fy_pending_has(c, (fy_cell_kind)frame->handler, cell);
    fy_cell *queue = &c->board->cells[cell.number];
    fy_pending *p = fy_pending_add(c, (fy_cell_kind)frame->handler, cell, queue, source);
    if (p == NULL)
        return FY_LEAVE;
    p->number = (uint32_t)frame->words[0];
    p->waits = (frame->words[2] & WAITS) != 0 && can_wait(p->kind);
    p->returns = (frame->words[2] & RETURNS) != 0;
    p->known = frame->words[3];
    if (p->kind == FY_CELL_ENQ || p->kind == FY_CELL_WRITE) {
        fy_parcel *parcel = fy_parcel_make(c, frame->size_bytes);
        if (parcel == NULL) {
            refuse(c, p, FERRY_ENOMEM);
            return FY_TAKEN;
        }
        if (frame->size_bytes > 0)
            memcpy(fy_parcel_data(c, parcel), frame->data, frame->size_bytes);
        p->parcel.word = atomic_load_explicit(&parcel->name, memory_order_relaxed);
    }
    if (!behind || !p->waits)
        (void)fy_remote_serve(c, p);
    return FY_TAKEN;
}

static void take_cancel(fy_cells *c, int source, const fy_frame *frame)
{
    for (fy_link *link = c->pending.next; link != &c->pending; link = link->next) {
        fy_pending *p = (fy_pending *)(void *)link;
        if (p->source != source || p->number != frame->words[0] || p->owes)
            continue;
        refuse(c, p, FERRY_ECANCELED);
        return;
    }
}

/* At the rank that asked. */

/* Keeps the parcel that was read as the copy for its cell. The pin makes it shared, so
 * ferry_parcel_modify copies it. */
static void remember(fy_cells *c, ferry_cell cell, uint64_t content, fy_parcel *parcel)
{
    void *slot;
    remote_forget(c, cell);
    if (fy_table_insert(&c->cached, cache_key(cell), &slot) != 0)
        return;
    fy_cached *cached = slot;
    cached->content = content;
    cached->parcel.word = atomic_load_explicit(&parcel->name, memory_order_relaxed);
    fy_parcel_pin(c, parcel, true);
}

/* The parcel that an answer brings. */
typedef struct brought {
    fy_parcel *copy; /* NULL: the bytes came with the answer */
    const void *data;
    size_t size_bytes;
} brought;

static brought find_brought(const fy_cells *c, const fy_pending *p, const fy_frame *frame)
{
    if (frame->words[3] == 0)
        return (brought){.data = frame->data, .size_bytes = frame->size_bytes};
    fy_parcel *copy = fy_parcel_find(c, p->parcel.word);
    return (brought){.copy = copy, .data = fy_parcel_data(c, copy), .size_bytes = copy->size_bytes};
}

/* Gives the program a hold of the parcel that an answer brings. */
static int receive(fy_cells *c, const fy_pending *p, const brought *b, uint64_t content)
{
    fy_parcel *parcel = b->copy;
    if (parcel != NULL) {
        if (!fy_parcel_keep(c, parcel))
            return FERRY_ENOMEM;
    } else {
        parcel = fy_parcel_make(c, b->size_bytes);
        if (parcel == NULL)
            return FERRY_ENOMEM;
        if (b->size_bytes > 0)
            memcpy(fy_parcel_data(c, parcel), b->data, b->size_bytes);
        if (p->kind == FY_CELL_READ)
            remember(c, p->cell, content, parcel);
    }
    p->out->word = atomic_load_explicit(&parcel->name, memory_order_relaxed);
    return 0;
}

/* Adds a parcel to the end of its cell again: the operation that took it was given up meanwhile. */
static fy_verdict remote_give_back(fy_cells *c, ferry_cell cell, const brought *b)
{
    fy_pending *p = fy_pending_add(c, FY_CELL_ENQ, cell, NULL, -1);
    if (p == NULL)
        return FY_LEAVE;
    p->number = ++c->next_number;
    fy_pending_count(c, p);
    const fy_frame frame = {.kind = FY_KIND_CELL,
                            .word_count = WORDS,
                            .handler = FY_CELL_ENQ,
                            .words = {p->number, (uint64_t)cell.number, RETURNS, 0},
                            .data = b->data,
                            .size_bytes = b->size_bytes};
    int error = cell_send_frame(c, cell.rank, &frame);
    if (error != 0)
        fy_pending_end(c, p, error);
    return error == FERRY_ENOMEM ? FY_LEAVE : FY_TAKEN;
}

static fy_pending *find_asked(fy_cells *c, int rank, uint64_t number)
{
    for (fy_link *link = c->pending.next; link != &c->pending; link = link->next) {
        fy_pending *p = (fy_pending *)(void *)link;
        if (p->source < 0 && p->queue == NULL && p->cell.rank == rank && p->number == number)
            return p;
    }
    return NULL;
}

/* Takes in the parcel of an answer. It was removed from its cell, so it must not be lost: without
 * memory the answer stays in the port. */
static fy_verdict take_parcel(fy_cells *c, fy_pending *p, const fy_frame *frame, int *error)
{
    const brought b = find_brought(c, p, frame);
    bool removed = p->kind == FY_CELL_DEQ;
    if (removed)
        remote_forget(c, p->cell); /* it is no longer in the cell */
    if (p->out == NULL)
        return removed ? remote_give_back(c, p->cell, &b) : FY_TAKEN;
    *error = receive(c, p, &b, frame->words[2]);
    return *error == FERRY_ENOMEM && removed ? FY_LEAVE : FY_TAKEN;
}

static fy_verdict take_answer(fy_cells *c, int source, const fy_frame *frame)
{
    fy_pending *p = frame->word_count == WORDS ? find_asked(c, source, frame->words[0]) : NULL;
    int64_t word = (int64_t)frame->words[1];
    bool known = p != NULL && frame->words[3] != 0;
    if (p == NULL || word > 0 || word < INT16_MIN || (known && p->parcel.word == 0)) {
        fy_bad_frame(c->f, source, frame, "the answer to no operation on a cell");
        return FY_TAKEN;
    }
    int error = (int)word;
    if (error == 0 && (p->kind == FY_CELL_DEQ || p->kind == FY_CELL_READ) &&
        take_parcel(c, p, frame, &error) == FY_LEAVE)
        return FY_LEAVE;
    if (error == 0 && p->kind == FY_CELL_COUNT)
        *p->count = frame->words[2];
    fy_pending_end(c, p, error);
    return FY_TAKEN;
}

static void tell_format(fy_cells *c, int rank, uint16_t what)
{
    const fy_frame frame = {
        .kind = FY_KIND_CELL, .word_count = 1, .handler = what, .words = {c->board->format}};
    (void)cell_send_frame(c, rank, &frame); /* if the peer has gone, it needs no format */
}

void fy_remote_ask_format(fy_cells *c, int rank)
{
    tell_format(c, rank, FRAME_FORMAT_ASKED);
}

fy_verdict fy_cell_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_cells *c = fy_cells_of(f);
    if (frame->handler < FY_CELL_KINDS)
        return take_request(c, source, frame);
    if (frame->handler == FRAME_ANSWER)
        return take_answer(c, source, frame);
    if (frame->word_count != 1 || frame->handler > FRAME_FORMAT) {
        fy_bad_frame(f, source, frame, "a word about cells");
        return FY_TAKEN;
    }
    if (frame->handler == FRAME_CANCEL) {
        take_cancel(c, source, frame);
        return FY_TAKEN;
    }
    c->formats[source] = (uint8_t)(frame->words[0] | FY_FORMAT_KNOWN);
    if (frame->handler == FRAME_FORMAT_ASKED)
        tell_format(c, source, FRAME_FORMAT);
    return FY_TAKEN;
}

void fy_remote_fini(fy_cells *c)
{
    if (c->cached.slots == NULL)
        return;
    size_t index = 0;
    for (fy_cached *cached; (cached = fy_table_next(&c->cached, &index)) != NULL; index = 0)
        drop_cached(c, cached);
}
