#include "core/op.h"

#include <stdlib.h>

#include "core/rank.h"

enum {
    CHUNK_RECORDS = 1 << FY_OP_CHUNK_BITS,
    INDEX_MASK = (1 << FY_OP_INDEX_BITS) - 1,
    WIRE_GENERATIONS = 1 << (32 - FY_OP_INDEX_BITS),
};

/* What a frame carries: the index and the low bits of the generation, which are never 0, so that no
 * operation is called 0. */
static uint32_t wire_name(const fy_op_record *record)
{
    return record->generation % WIRE_GENERATIONS << FY_OP_INDEX_BITS | record->index;
}

static fy_op_record *record_at(const fy_ops *ops, uint32_t index)
{
    if (index >> FY_OP_CHUNK_BITS >= ops->chunk_count)
        return NULL;
    return &ops->chunks[index >> FY_OP_CHUNK_BITS][index % CHUNK_RECORDS];
}

static fy_op_record *find_pending(const ferry *f, uint32_t op)
{
    fy_op_record *record = record_at(&f->ops_table, op & INDEX_MASK);
    bool found = record != NULL && record->state == FY_OP_PENDING && wire_name(record) == op;
    return found ? record : NULL;
}

static fy_op_record *find_handle(const ferry *f, ferry_op op)
{
    fy_op_record *record = record_at(&f->ops_table, (uint32_t)op.word);
    bool found = record != NULL && record->state != FY_OP_FREE && record->has_handle &&
                 record->generation == op.word >> 32;
    return found ? record : NULL;
}

static bool grow(fy_ops *ops)
{
    uint32_t count = ops->chunk_count;
    if (count == FY_OP_CHUNKS_MAX)
        return false;
    /* The table doubles whenever its count reaches a power of two. */
    if ((count & (count - 1)) == 0) {
        size_t capacity = count == 0 ? 1 : (size_t)count * 2;
        fy_op_record **chunks = realloc(ops->chunks, capacity * sizeof(*chunks));
        if (chunks == NULL)
            return false;
        ops->chunks = chunks;
    }
    fy_op_record *chunk = calloc(CHUNK_RECORDS, sizeof(*chunk));
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

static void release(fy_ops *ops, fy_op_record *record)
{
    record->state = FY_OP_FREE;
    record->next = ops->free_records;
    ops->free_records = record;
}

int fy_op_start(ferry *f, const ferry_track *track, int rank, int tag, size_t size_bytes,
                uint32_t *op)
{
    *op = 0;
    if (track == NULL)
        return 0;
    if (track->size != sizeof(*track))
        return fy_fail(f, FERRY_EINVAL, "track: size is %zu, expected %zu (FERRY_TRACK_DEFAULTS)",
                       track->size, sizeof(*track));
    fy_ops *ops = &f->ops_table;
    if (ops->free_records == NULL && !grow(ops))
        return fy_fail(f, FERRY_ENOMEM, "track: no memory for another operation; %u are pending",
                       ops->pending);
    fy_op_record *record = ops->free_records;
    ops->free_records = record->next;
    uint32_t generation = record->generation + 1;
    if (generation % WIRE_GENERATIONS == 0)
        generation++;
    *record = (fy_op_record){.submitted = track->submitted,
                             .submitted_arg = track->submitted_arg,
                             .completed = track->completed,
                             .completed_arg = track->completed_arg,
                             .failed = track->failed,
                             .failed_arg = track->failed_arg,
                             .handle = track->op,
                             .receipt = {.rank = rank, .tag = tag, .size_bytes = size_bytes},
                             .index = record->index,
                             .generation = generation,
                             .state = FY_OP_PENDING,
                             .has_handle = track->op != NULL};
    if (track->op != NULL)
        track->op->word = (uint64_t)generation << 32 | record->index;
    ops->pending++;
    *op = wire_name(record);
    return 0;
}

static void queue_event(fy_ops *ops, fy_op_record *record)
{
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
    fy_op_record *record = find_pending(f, op);
    if (record == NULL || record->submitted == NULL)
        return;
    record->submitted_due = true;
    queue_event(&f->ops_table, record);
}

/* The owner has nothing more to learn by callback. */
static void finish(ferry *f, fy_op_record *record)
{
    if (record->has_handle)
        record->state = FY_OP_DONE;
    else
        release(&f->ops_table, record);
}

static ferry_track_fn *end_callback(const fy_op_record *record)
{
    return record->receipt.error == 0 ? record->completed : record->failed;
}

static void end_record(ferry *f, fy_op_record *record, int error)
{
    record->receipt.error = error;
    record->state = FY_OP_ENDED;
    f->ops_table.pending--;
    f->done++;
    if (record->queued || end_callback(record) != NULL)
        queue_event(&f->ops_table, record);
    else
        finish(f, record);
}

void fy_op_end(ferry *f, uint32_t op, int error)
{
    fy_op_record *record = find_pending(f, op);
    if (record != NULL)
        end_record(f, record, error);
}

bool fy_op_is_pending(const ferry *f, uint32_t op)
{
    return find_pending(f, op) != NULL;
}

void fy_op_drop(ferry *f, uint32_t op)
{
    fy_op_record *record = find_pending(f, op);
    if (record == NULL)
        return;
    if (record->handle != NULL)
        record->handle->word = 0;
    f->ops_table.pending--;
    release(&f->ops_table, record);
}

bool fy_op_end_reserve(ferry *f)
{
    return f->packets.free_items != NULL || fy_pool_grow(&f->packets);
}

void fy_op_end_remote(ferry *f, int rank, uint32_t op, int error)
{
    if (op == 0)
        return;
    fy_packet *packet = fy_packet_create(&f->packets, 0);
    if (packet == NULL) {
        fy_log(f, "no memory to tell rank %d the end of its operation", rank);
        return;
    }
    const fy_frame frame = {
        .kind = FY_KIND_END, .word_count = 2, .words = {op, (uint64_t)(int64_t)error}};
    fy_packet_fill(packet, rank, FY_DATA, &frame);
    (void)fy_send_packet(f, packet); /* a peer that is gone waits for no end */
}

fy_verdict fy_op_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->word_count != 2) {
        fy_bad_frame(f, source, frame, "the end of an operation");
        return FY_TAKEN;
    }
    int64_t error = (int64_t)frame->words[1];
    fy_op_end(f, (uint32_t)frame->words[0],
              error > 0 || error < INT16_MIN ? FERRY_EINVAL : (int)error);
    return FY_TAKEN;
}

typedef struct callback {
    ferry_track_fn *fn;
    void *arg;
    const ferry_receipt *receipt;
} callback;

static void run_callback(ferry *f, void *arg)
{
    const callback *c = arg;
    c->fn(f, c->arg, c->receipt);
}

/* Runs what is due for one record. The record may be used again as soon as it is finished, so its
 * end is copied first. */
static void deliver(ferry *f, fy_op_record *record)
{
    ferry_receipt receipt = record->receipt;
    if (record->submitted_due) {
        record->submitted_due = false;
        ferry_receipt submitted = receipt;
        submitted.error = 0;
        callback c = {record->submitted, record->submitted_arg, &submitted};
        fy_run(f, FY_DOING_HANDLER, 0, run_callback, &c);
        if (record->state == FY_OP_PENDING)
            return;
        receipt = record->receipt;
    }
    if (record->state != FY_OP_ENDED)
        return;
    callback c = {end_callback(record), NULL, &receipt};
    c.arg = receipt.error == 0 ? record->completed_arg : record->failed_arg;
    finish(f, record);
    if (c.fn != NULL)
        fy_run(f, FY_DOING_HANDLER, 0, run_callback, &c);
}

int fy_ops_deliver(ferry *f)
{
    fy_ops *ops = &f->ops_table;
    int count = 0;
    /* Events that callbacks add wait for the next poll, so that a chain of operations cannot hold
     * this one. */
    fy_op_record *last = ops->events_tail;
    for (bool more = ops->events != NULL; more; count++) {
        fy_op_record *record = ops->events;
        more = record != last;
        ops->events = record->next;
        record->queued = false;
        deliver(f, record);
    }
    return count;
}

/* Ends what is pending: all of it, or what peers that are not alive were to end. */
static void end_pending(ferry *f, int error, bool all)
{
    const fy_ops *ops = &f->ops_table;
    if (ops->pending == 0)
        return;
    for (uint32_t i = 0; i < ops->chunk_count * CHUNK_RECORDS; i++) {
        fy_op_record *record = record_at(ops, i);
        if (record->state != FY_OP_PENDING)
            continue;
        if (all || f->ops->peer(f->port, record->receipt.rank) == FY_PEER_DEAD)
            end_record(f, record, error);
    }
}

void fy_ops_fail_dead(ferry *f)
{
    fy_collectives_fail_dead(f);
    end_pending(f, FERRY_EPEER, false);
}

void fy_ops_cancel(ferry *f)
{
    end_pending(f, FERRY_ECANCELED, true);
    while (f->ops_table.events != NULL)
        fy_ops_deliver(f);
}

void fy_ops_fini(ferry *f)
{
    fy_ops *ops = &f->ops_table;
    for (uint32_t i = 0; i < ops->chunk_count; i++)
        free(ops->chunks[i]);
    free(ops->chunks);
    *ops = (fy_ops){0};
}

int ferry_op_test(ferry *f, ferry_op *op)
{
    if (op == NULL)
        return fy_fail(f, FERRY_EINVAL, "op_test: no operation given");
    if (op->word == 0)
        return 0;
    fy_op_record *record = find_handle(f, *op);
    if (record == NULL)
        return fy_fail(f, FERRY_EINVAL, "op_test: 0x%llx names no operation that is still open",
                       (unsigned long long)op->word);
    if (record->state != FY_OP_DONE)
        return FERRY_EAGAIN;
    int error = record->receipt.error;
    op->word = 0;
    release(&f->ops_table, record);
    if (error != 0)
        return fy_fail(f, error, "operation to rank %d, %zu bytes, tag %d: %s",
                       record->receipt.rank, record->receipt.size_bytes, record->receipt.tag,
                       ferry_strerror(error));
    return 0;
}

int ferry_op_wait(ferry *f, ferry_op *op)
{
    int error = fy_check_outside(f, "op_wait");
    if (error != 0)
        return error;
    error = ferry_op_test(f, op);
    if (error != FERRY_EAGAIN)
        return error;
    fy_doing before = fy_account_enter(f, FY_DOING_IDLE);
    fy_patience patience = {0};
    while ((error = ferry_op_test(f, op)) == FERRY_EAGAIN)
        if (fy_progress_wait(f, true, FERRY_FOREVER, &patience) == 0)
            fy_ops_fail_dead(f);
    fy_account_leave(f, before);
    return error;
}

int ferry_op_cancel(ferry *f, ferry_op *op)
{
    if (op == NULL)
        return fy_fail(f, FERRY_EINVAL, "op_cancel: no operation given");
    if (op->word == 0)
        return 0;
    fy_op_record *record = find_handle(f, *op);
    if (record == NULL)
        return fy_fail(f, FERRY_EINVAL, "op_cancel: 0x%llx names no operation that is still open",
                       (unsigned long long)op->word);
    op->word = 0;
    record->has_handle = false;
    if (record->state == FY_OP_PENDING)
        end_record(f, record, FERRY_ECANCELED);
    else if (record->state == FY_OP_DONE)
        release(&f->ops_table, record);
    return 0;
}
