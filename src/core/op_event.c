/* Tells the owner of an operation its events: by callbacks, which only this file runs, or from its
 * ferry_op. */
#include <inttypes.h>
#include <stdio.h>

#include "core/fail.h"
#include "core/op.h"
#include "core/rank.h"

enum { REASON_BYTES = FY_REASON_BYTES, NAME_BYTES = 24 };

/* A receive from any rank that has matched no message has no other rank yet. */
static const char *name_rank(int rank, char *text)
{
    if (rank == FERRY_ANY_RANK)
        return "any rank";
    snprintf(text, NAME_BYTES, "rank %d", rank);
    return text;
}

static uint64_t word_of(const fy_op_record *record)
{
    return (uint64_t)record->generation << 32 | record->index;
}

void fy_op_end_explained(ferry *f, uint32_t op, int error)
{
    const fy_op_record *record = fy_op_find(f, op);
    if (record != NULL && error != 0) {
        f->ops_table.explained = word_of(record);
        (void)snprintf(f->ops_table.reason, FY_REASON_BYTES, "%.*s", FY_REASON_BYTES - 1,
                       f->error_text);
    }
    fy_op_end(f, op, error);
}

/* The reason of a receipt's error, with its values. */
static void op_explain(const ferry *f, const fy_op_record *record, char *text)
{
    const ferry_receipt *r = &record->receipt;
    char name[NAME_BYTES];
    if (f->ops_table.explained == word_of(record)) {
        snprintf(text, REASON_BYTES, "%s", f->ops_table.reason);
        return;
    }
    switch (r->error) {
    case FERRY_EPEER:
        snprintf(text, REASON_BYTES, "%s %s", name_rank(r->rank, name),
                 r->rank < 0 || f->head.ops->members.peer(f->head.port, r->rank) == FY_PEER_ALIVE
                     ? "needs a rank that is gone"
                     : fy_peer_outcome(f, r->rank));
        break;
    case FERRY_ENOENT:
        snprintf(text, REASON_BYTES, "rank %d knows no such %s", r->rank,
                 r->object.word != 0                                 ? "object"
                 : r->handler.index != 0 && r->rank != r->local_rank ? "handler"
                                                                     : "element");
        break;
    case FERRY_ETIMEDOUT:
        snprintf(text, REASON_BYTES, "no end %s %s within %.3f ms",
                 r->rank == f->head.rank ? "on" : "from", name_rank(r->rank, name),
                 (double)record->timeout_ns / 1e6);
        break;
    case FERRY_ETOOLONG:
        snprintf(text, REASON_BYTES, "a message of %zu bytes met a receive of at most %zu",
                 r->size_bytes, r->size_max);
        break;
    case FERRY_ECANCELED:
        snprintf(text, REASON_BYTES, "cancelled, or the rank was closed");
        break;
    case FERRY_ERANGE:
        if ((r->remote_address | (uintptr_t)r->local_address) != 0) {
            snprintf(text, REASON_BYTES, "%zu bytes at 0x%" PRIx64 " on rank %d are not registered",
                     r->size_bytes, r->remote_address, r->rank);
            break;
        }
        __attribute__((fallthrough)); /* an index in a window */
    default:
        snprintf(text, REASON_BYTES, "%s at rank %d", ferry_strerror(r->error), r->rank);
    }
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

static void call_back(ferry *f, const fy_op_record *record, ferry_event event,
                      ferry_receipt *receipt)
{
    receipt->event = event;
    callback c = {record->callbacks[event], record->args[event], receipt};
    fy_run(f, FY_DOING_HANDLER, 0, run_callback, &c);
}

/* Runs the callbacks that are due for one record. The record may be used again as soon as it is
 * finished, so its end is copied first. */
static void event_deliver(ferry *f, fy_op_record *record)
{
    if (record->submitted_due) {
        record->submitted_due = false;
        ferry_receipt receipt = record->receipt;
        receipt.error = 0;
        call_back(f, record, FERRY_SUBMITTED, &receipt);
    }
    if (record->state == FY_OP_SILENT)
        fy_op_forget(&f->ops_table, record);
    if (record->state != FY_OP_ENDED)
        return;
    ferry_event event = fy_op_event_of(record);
    if (record->callbacks[event] == NULL) {
        fy_op_finish(f, record);
        return;
    }
    fy_op_record copy = *record;
    fy_op_finish(f, record);
    char reason[REASON_BYTES] = "";
    if (copy.receipt.error != 0)
        op_explain(f, &copy, reason);
    copy.receipt.reason = reason;
    call_back(f, &copy, event, &copy.receipt);
}

int fy_ops_deliver(ferry *f)
{
    fy_ops *ops = &f->ops_table;
    int count = 0;
    /* Events that callbacks add wait for the next poll, so that a chain of operations cannot hold
     * this one. */
    fy_op_record *last = ops->events_tail;
    for (bool more = ops->events != NULL; more;) {
        fy_op_record *record = ops->events;
        more = record != last;
        ops->events = record->next;
        record->queued = false;
        if (record->held) {
            fy_op_queue_event(f, record);
            continue;
        }
        event_deliver(f, record);
        count++;
    }
    return count;
}

static int no_operation(ferry *f, const char *call, ferry_op op)
{
    return fy_fail(f, FERRY_EINVAL, "%s: 0x%llx names no operation that is still open", call,
                   (unsigned long long)op.word);
}

int ferry_op_state(ferry *f, ferry_op op)
{
    const fy_op_record *record = fy_op_find_handle(f, op);
    if (op.word == 0)
        return FERRY_OP_NONE;
    if (record == NULL)
        return no_operation(f, "op_state", op);
    return record->state == FY_OP_DONE ? FERRY_OP_ENDED : FERRY_OP_PENDING;
}

static __attribute__((cold)) int none_given(ferry *f, const char *call)
{
    return fy_fail(f, FERRY_EINVAL, "%s: no operation given", call);
}

/* As ferry_op_test, for the call with that name. */
static int op_take(ferry *f, ferry_op *op, const char *call)
{
    if (op == NULL)
        return none_given(f, call);
    if (op->word == 0)
        return 0;
    fy_op_record *record = fy_op_find_handle(f, *op);
    if (record == NULL)
        return no_operation(f, call, *op);
    if (record->state != FY_OP_DONE)
        return FERRY_EAGAIN;
    int error = record->receipt.error;
    op->word = 0;
    record->has_handle = false;
    char reason[REASON_BYTES], name[NAME_BYTES];
    if (error != 0) {
        op_explain(f, record, reason);
        (void)fy_fail(f, error, "operation with %s, %zu bytes, tag %d: %s: %s",
                      name_rank(record->receipt.rank, name), record->receipt.size_bytes,
                      record->receipt.tag, ferry_strerror(error), reason);
    }
    fy_op_forget(&f->ops_table, record);
    return error;
}

int ferry_op_test(ferry *f, ferry_op *op)
{
    return op_take(f, op, "op_test");
}

int ferry_op_wait(ferry *f, ferry_op *op)
{
    static const char call[] = "op_wait";
    int error = fy_check_outside(f, call);
    if (error != 0)
        return error;
    error = op_take(f, op, call);
    if (error != FERRY_EAGAIN)
        return error;
    fy_doing before = fy_account_enter(f, FY_DOING_IDLE);
    fy_patience patience = {0};
    f->ops_table.awaited = fy_op_find_handle(f, *op);
    while ((error = op_take(f, op, call)) == FERRY_EAGAIN)
        fy_progress_wait(f, FERRY_FOREVER, &patience);
    f->ops_table.awaited = NULL;
    fy_account_leave(f, before);
    return error;
}

int ferry_op_cancel(ferry *f, ferry_op *op)
{
    if (op == NULL)
        return none_given(f, "op_cancel");
    if (op->word == 0)
        return 0;
    fy_op_record *record = fy_op_find_handle(f, *op);
    if (record == NULL)
        return no_operation(f, "op_cancel", *op);
    op->word = 0;
    record->has_handle = false;
    if (record->state == FY_OP_PENDING)
        fy_op_give_up(f, record, FERRY_ECANCELED, false);
    else if (record->state == FY_OP_DONE)
        fy_op_forget(&f->ops_table, record);
    return 0;
}
