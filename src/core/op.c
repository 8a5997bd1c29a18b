#include "core/op.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/rank.h"

enum {
    CHUNK_RECORDS = 1 << FY_OP_CHUNK_BITS,
    INDEX_MASK = (1 << FY_OP_INDEX_BITS) - 1,
    WIRE_GENERATIONS = 1 << (31 - FY_OP_INDEX_BITS),
};

/* An operation in a frame: the index and the low bits of the generation, which are never 0, so that
 * no operation is called 0; and FY_OP_ON_ARRIVAL. */
static uint32_t wire_name(const fy_op_record *record)
{
    return record->generation % WIRE_GENERATIONS << FY_OP_INDEX_BITS | record->index |
           (record->on_arrival ? FY_OP_ON_ARRIVAL : 0);
}

static fy_op_record *record_at(const fy_ops *ops, uint32_t index)
{
    if (index >> FY_OP_CHUNK_BITS >= ops->chunk_count)
        return NULL;
    return &ops->chunks[index >> FY_OP_CHUNK_BITS][index % CHUNK_RECORDS];
}

/* A record in use. */
__attribute__((noinline)) fy_op_record *fy_op_find(const ferry *f, uint32_t op)
{
    fy_op_record *record = record_at(&f->ops_table, op & INDEX_MASK);
    bool found = record != NULL && record->state != FY_OP_FREE && wire_name(record) == op;
    return found ? record : NULL;
}

fy_op_record *fy_op_find_open(const ferry *f, uint32_t op)
{
    fy_op_record *record = fy_op_find(f, op);
    return record != NULL && record->open ? record : NULL;
}

static __attribute__((noinline)) fy_op_record *find_pending(const ferry *f, uint32_t op)
{
    fy_op_record *record = fy_op_find_open(f, op);
    return record != NULL && record->state == FY_OP_PENDING ? record : NULL;
}

fy_op_record *fy_op_find_handle(const ferry *f, ferry_op op)
{
    fy_op_record *record = record_at(&f->ops_table, (uint32_t)op.word);
    bool found = record != NULL && record->state != FY_OP_FREE && record->has_handle &&
                 record->generation == op.word >> 32;
    return found ? record : NULL;
}

static __attribute__((cold, noinline)) bool ops_grow(fy_ops *ops)
{
    uint32_t count = ops->chunk_count;
    if (count == FY_OP_CHUNKS_MAX)
        return false;
    /* The table doubles whenever its count reaches a power of two. */
    if ((count & (count - 1)) == 0) {
        size_t capacity = count == 0 ? 1 : (size_t)count * 2;
        fy_op_record **chunks = fy_realloc(ops->chunks, capacity * sizeof(*chunks));
        if (chunks == NULL)
            return false;
        ops->chunks = chunks;
    }
    fy_op_record *chunk = fy_calloc(CHUNK_RECORDS, sizeof(*chunk));
    if (chunk == NULL)
        return false;
    for (uint32_t i = CHUNK_RECORDS; i-- > 0;) {
        chunk[i].index = ops->chunk_count * CHUNK_RECORDS + i;
        chunk[i].next = ops->free_records;
        ops->free_records = &chunk[i];
    }
    ops->chunks[ops->chunk_count++] = chunk;
    return true;
}

static void op_release(fy_ops *ops, fy_op_record *record)
{
    record->state = FY_OP_FREE;
    record->next = ops->free_records;
    ops->free_records = record;
}

static void start_timer(ferry *f, fy_op_record *record, uint64_t timeout_ns)
{
    fy_ops *ops = &f->ops_table;
    uint64_t now = f->head.ops->host.now(f->head.port);
    if (timeout_ns > UINT64_MAX / 2 - now)
        return; /* it never times out */
    record->timeout_ns = timeout_ns;
    fy_wheel_add(ops->wheel, &record->timer, now + timeout_ns);
    if (ops->timers++ == 0)
        ops->polls_left = 0;
}

static void stop_timer(fy_ops *ops, fy_op_record *record)
{
    if (record->timer.tick == 0)
        return;
    fy_wheel_remove(ops->wheel, &record->timer);
    ops->timers--;
}

/* A free record, and a wheel when the track needs one; NULL without memory. */
static fy_op_record *take_record(ferry *f, uint64_t timeout_ns)
{
    fy_ops *ops = &f->ops_table;
    if (timeout_ns != 0 && ops->wheel == NULL &&
        (ops->wheel = fy_wheel_create(f->head.ops->host.now(f->head.port))) == NULL)
        return NULL;
    if (ops->free_records == NULL && !ops_grow(ops))
        return NULL;
    fy_op_record *record = ops->free_records;
    ops->free_records = record->next;
    return record;
}

/* Sets all fields one by one, as op_fill does too. The compiler would make a whole struct elsewhere
 * and copy it, and the message cannot leave before this is done. */
static void fill_receipt(ferry_receipt *receipt, int local_rank)
{
    receipt->error = 0;
    receipt->event = FERRY_SUBMITTED;
    receipt->local_rank = local_rank;
    receipt->handler.index = 0;
    receipt->object.word = 0;
    receipt->local_address = NULL;
    receipt->remote_address = 0;
    receipt->size_max = 0;
    receipt->reason = "";
}

static void op_fill(const ferry *f, fy_op_record *record, const ferry_track *track)
{
    uint32_t generation = record->generation + 1;
    if (generation % WIRE_GENERATIONS == 0)
        generation++;
    record->timer.tick = 0;
    record->callbacks[FERRY_SUBMITTED] = track->submitted;
    record->args[FERRY_SUBMITTED] = track->submitted_arg;
    record->callbacks[FERRY_COMPLETED] = track->completed;
    record->args[FERRY_COMPLETED] = track->completed_arg;
    record->callbacks[FERRY_TIMED_OUT] = track->timed_out;
    record->args[FERRY_TIMED_OUT] = track->timed_out_arg;
    record->callbacks[FERRY_FAILED] = track->failed;
    record->args[FERRY_FAILED] = track->failed_arg;
    record->handle = track->op;
    fill_receipt(&record->receipt, f->head.rank);
    record->gone = NULL;
    record->gone_arg = NULL;
    record->timeout_ns = 0;
    record->next = NULL;
    record->generation = generation;
    record->movement = 0;
    record->state = FY_OP_PENDING;
    record->open = true;
    record->on_arrival = track->arrival;
    record->lazy = record->aside = record->submitted_due = record->queued = record->held =
        record->lent = false;
    record->has_handle = track->op != NULL;
    if (track->op != NULL)
        track->op->word = (uint64_t)generation << 32 | record->index;
}

int fy_op_start(ferry *f, const ferry_track *track, int rank, int tag, size_t size_bytes,
                uint32_t *op)
{
    *op = 0;
    if (track == NULL)
        return 0;
    ferry_track copy;
    if (track->size != sizeof(*track)) {
        int error = fy_read_sized(f, "ferry_track", track, &copy, sizeof copy);
        if (error != 0)
            return error;
        track = &copy;
    }
    const uint64_t timeout_ns = track->timeout_ns;
    fy_op_record *record = take_record(f, timeout_ns);
    if (record == NULL)
        return fy_fail(f, FERRY_ENOMEM, "track: no memory for another operation; %u are pending",
                       f->ops_table.pending);
    op_fill(f, record, track);
    record->receipt.rank = record->giver = rank;
    record->receipt.tag = tag;
    record->receipt.size_bytes = size_bytes;
    if (timeout_ns != 0)
        start_timer(f, record, timeout_ns);
    f->ops_table.pending++;
    *op = wire_name(record);
    return 0;
}

void fy_op_describe(ferry *f, uint32_t op, const fy_op_about *about)
{
    fy_op_record *record = fy_op_find(f, op);
    if (record == NULL)
        return;
    record->receipt.handler = about->handler;
    record->receipt.object = about->object;
    record->receipt.local_address = about->local_address;
    record->receipt.remote_address = about->remote_address;
}

__attribute__((cold)) void fy_op_own(ferry *f, uint32_t op, fy_op_gone_fn *gone, void *arg)
{
    fy_op_record *record = find_pending(f, op);
    record->gone = gone;
    record->gone_arg = arg;
}

__attribute__((cold)) void *fy_op_owned(const ferry *f, uint32_t op, fy_op_gone_fn *gone)
{
    const fy_op_record *record = find_pending(f, op);
    return record != NULL && record->gone == gone ? record->gone_arg : NULL;
}

__attribute__((cold)) void fy_op_aside(ferry *f, uint32_t op)
{
    fy_op_record *record = find_pending(f, op);
    if (record == NULL || record->aside)
        return;
    record->aside = true;
    f->ops_table.aside++;
}

__attribute__((cold)) void fy_op_lazy(ferry *f, uint32_t op)
{
    fy_op_record *record = find_pending(f, op);
    if (record == NULL || record->lazy)
        return;
    record->lazy = true;
    f->ops_table.lazy++;
    fy_op_aside(f, op);
}

__attribute__((cold)) void fy_op_matched(ferry *f, uint32_t op, int rank, int tag,
                                         size_t size_bytes)
{
    fy_op_record *record = find_pending(f, op);
    if (record == NULL)
        return;
    record->receipt.rank = record->giver = rank;
    record->receipt.tag = tag;
    record->receipt.size_bytes = size_bytes;
}

void fy_op_queue_event(ferry *f, fy_op_record *record)
{
    fy_ops *ops = &f->ops_table;
    fy_rest_due(f);
    if (record->queued)
        return;
    record->queued = true;
    record->next = NULL;
    if (ops->events == NULL)
        ops->events = record;
    else
        ops->events_tail->next = record;
    ops->events_tail = record;
}

void fy_op_submitted(ferry *f, uint32_t op)
{
    /* If the call had to wait for room, the timeout may have passed meanwhile. */
    fy_op_record *record = fy_op_find(f, op);
    if (record == NULL || record->callbacks[FERRY_SUBMITTED] == NULL)
        return;
    record->submitted_due = true;
    fy_op_queue_event(f, record);
}

__attribute__((cold)) void fy_op_lent(ferry *f, uint32_t op)
{
    find_pending(f, op)->lent = true;
}

/* No rank reads the data of an operation any more: reports submitted, unless that was done. */
static void op_give_back(ferry *f, fy_op_record *record)
{
    if (!record->lent)
        return;
    record->lent = false;
    if (record->callbacks[FERRY_SUBMITTED] == NULL)
        return;
    record->submitted_due = true;
    fy_op_queue_event(f, record);
}

void fy_op_forget(fy_ops *ops, fy_op_record *record)
{
    /* A record on the list of events is released when it is taken from there. */
    if (record->open || record->queued)
        record->state = FY_OP_SILENT;
    else
        op_release(ops, record);
}

void fy_op_finish(ferry *f, fy_op_record *record)
{
    if (record->has_handle)
        record->state = FY_OP_DONE;
    else
        fy_op_forget(&f->ops_table, record);
}

ferry_event fy_op_event_of(const fy_op_record *record)
{
    int error = record->receipt.error;
    if (error == 0)
        return FERRY_COMPLETED;
    bool tells = error == FERRY_ETIMEDOUT && record->callbacks[FERRY_TIMED_OUT] != NULL;
    return tells ? FERRY_TIMED_OUT : FERRY_FAILED;
}

static void end_record(ferry *f, fy_op_record *record, int error)
{
    fy_ops *ops = &f->ops_table;
    stop_timer(ops, record);
    record->receipt.error = error;
    record->state = FY_OP_ENDED;
    ops->pending--;
    ops->lazy -= record->lazy;
    ops->aside -= record->aside;
    f->head.done++;
    if (record->queued || record->callbacks[fy_op_event_of(record)] != NULL)
        fy_op_queue_event(f, record);
    else
        fy_op_finish(f, record);
}

__attribute__((cold)) void fy_op_give_up(ferry *f, fy_op_record *record, int error, bool alone)
{
    if (record->gone != NULL) {
        fy_op_gone_fn *gone = record->gone;
        record->gone = NULL;
        gone(f, record->gone_arg, wire_name(record), error);
        alone = true;
    }
    record->open = !alone;
    if (alone)
        op_give_back(f, record);
    end_record(f, record, error);
}

/* A send found that its peer is going, before the event that tells so. The operation fails after
 * that event, in fy_ops_fail_peer. */
static bool fails_later(const ferry *f, const fy_op_record *record, int error)
{
    int rank = record->receipt.rank;
    return error == FERRY_EPEER && record->state == FY_OP_PENDING && rank != f->head.rank &&
           rank >= 0 && !fy_peer_is_gone(f, rank) &&
           f->head.ops->members.peer(f->head.port, rank) != FY_PEER_ALIVE;
}

static void end_open(ferry *f, fy_op_record *record, int error)
{
    record->gone = NULL; /* the layer has finished with it */
    if (fails_later(f, record, error))
        return;
    record->open = false;
    op_give_back(f, record);
    if (record->state == FY_OP_PENDING)
        end_record(f, record, error);
    else if (record->state == FY_OP_SILENT)
        fy_op_forget(&f->ops_table, record);
}

void fy_op_end(ferry *f, uint32_t op, int error)
{
    fy_op_record *record = fy_op_find_open(f, op);
    if (record != NULL)
        end_open(f, record, error);
}

static bool may_end(const fy_op_record *record, int source)
{
    return record->receipt.rank == source || record->receipt.object.word != 0;
}

bool fy_op_end_from(ferry *f, int source, uint32_t op, int error)
{
    fy_op_record *record = fy_op_find_open(f, op);
    if (record == NULL)
        return true;
    if (!may_end(record, source))
        return false;
    end_open(f, record, error);
    return true;
}

__attribute__((cold)) bool fy_op_is_pending(const ferry *f, uint32_t op)
{
    return find_pending(f, op) != NULL;
}

__attribute__((cold)) bool fy_op_may_end(const ferry *f, int source, uint32_t op)
{
    const fy_op_record *record = fy_op_find_open(f, op);
    return record == NULL || may_end(record, source);
}

__attribute__((cold)) bool fy_op_hold(ferry *f, uint32_t op, bool held)
{
    fy_op_record *record = fy_op_find(f, op);
    if (record == NULL)
        return false;
    bool before = record->held;
    record->held = held;
    return before;
}

__attribute__((cold)) void fy_op_drop(ferry *f, uint32_t op)
{
    fy_ops *ops = &f->ops_table;
    fy_op_record *record = fy_op_find(f, op);
    if (record == NULL)
        return;
    if (record->has_handle && record->handle != NULL)
        record->handle->word = 0;
    if (record->state == FY_OP_PENDING) {
        stop_timer(ops, record);
        ops->pending--;
        ops->lazy -= record->lazy;
        ops->aside -= record->aside;
    }
    record->open = record->has_handle = record->submitted_due = record->lent = false;
    memset(record->callbacks, 0, sizeof(record->callbacks));
    /* If its call polled, the operation may have ended already. Then the record is on the list of
     * events, and leaves it without a callback. */
    record->state = FY_OP_ENDED;
    if (!record->queued)
        op_release(ops, record);
}

__attribute__((cold)) void fy_ops_fail_peer(ferry *f, int rank, bool died)
{
    fy_ops *ops = &f->ops_table;
    for (uint32_t i = 0; i < ops->chunk_count * CHUNK_RECORDS; i++) {
        fy_op_record *record = record_at(ops, i);
        if (!record->open || (record->receipt.rank != rank && (record->giver != rank || !died)))
            continue;
        if (record->state == FY_OP_PENDING)
            fy_op_give_up(f, record, FERRY_EPEER, true);
        else
            fy_op_end(f, wire_name(record), FERRY_EPEER);
    }
}

__attribute__((cold)) void fy_ops_cancel(ferry *f)
{
    fy_ops *ops = &f->ops_table;
    for (uint32_t i = 0; i < ops->chunk_count * CHUNK_RECORDS; i++) {
        fy_op_record *record = record_at(ops, i);
        if (record->state == FY_OP_PENDING)
            fy_op_give_up(f, record, FERRY_ECANCELED, true);
    }
    while (ops->events != NULL)
        fy_ops_deliver(f);
}

__attribute__((cold)) void fy_ops_fini(ferry *f)
{
    fy_ops *ops = &f->ops_table;
    for (uint32_t i = 0; i < ops->chunk_count; i++)
        free(ops->chunks[i]);
    free(ops->chunks);
    free(ops->wheel);
    *ops = (fy_ops){0};
}
