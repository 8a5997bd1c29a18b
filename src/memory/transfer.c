/* Transfers that run handlers, prema.txt figure B.1.
 *
 * The data go as in any put or get. A frame after them tells the other rank what to run. It names
 * the whole range, so that a refused transfer runs nothing.
 *
 * A transfer with a local handler, and every get, has an inner operation besides the caller's. The
 * end of the inner one runs the local handler. For a get it then sends the frame to the other rank.
 * Last, it ends the caller's operation; if the frame was sent, the other rank does so.
 *
 * The target of a put answers that the data have arrived before it runs its handler or keeps the
 * frame for a later poll. On that answer the local handler runs. If the track says `arrival`, the
 * operation ends then. */
#include <string.h>

#include "core/fail.h"
#include "core/handler.h"
#include "core/outgoing.h"
#include "core/run.h"
#include "core/work.h"
#include "memory/state.h"

/* Words of a frame: address and size of the data at the receiver, argument of the handler, whether
 * the source wants an answer on arrival besides the end of the operation. */
enum { TRANSFER_WORDS = 4 };

/* The record of an inner operation: what it does at its end. */
typedef struct fy_follow {
    ferry_memory_call local, remote;
    bool has_local, has_remote; /* still to be run */
    void *here, *there;         /* the data on this rank and on the other one */
    size_t size_bytes;
    int rank;
    uint32_t op; /* the caller's */
} fy_follow;

void fy_transfer_pool_init(fy_pool *pool)
{
    fy_pool_init(pool, sizeof(fy_follow), 16);
}

int ferry_memory_handler_register(ferry *f, const char *name, ferry_memory_fn *fn,
                                  ferry_handler *out)
{
    return fy_handler_add(f, name, FY_HANDLER_MEMORY, (fy_any_fn *)fn, out);
}

/* A handler for the other rank to run, and the data there. */
typedef struct order {
    const ferry_memory_call *call;
    const void *data;
    size_t size_bytes;
    uint32_t op;
    bool tells; /* the other rank answers on arrival too */
} order;

static int send_call(ferry *f, int rank, const order *o)
{
    const ferry_memory_call *call = o->call;
    fy_frame frame;
    fy_frame_begin(&frame, FY_KIND_TRANSFER, call->handler.index, TRANSFER_WORDS);
    frame.op = o->op;
    frame.aux = fy_handler_signature(f, call->handler.index);
    frame.tag = call->tag;
    frame.words[0] = (uintptr_t)o->data;
    frame.words[1] = o->size_bytes;
    frame.words[2] = call->argument;
    frame.words[3] = o->tells && (o->op & FY_OP_ON_ARRIVAL) == 0;
    int error = fy_send_paced(f, rank, &frame, NULL);
    if (error == 0)
        fy_work_goes(f, rank);
    return error;
}

static void free_follow(ferry *f, fy_follow *follow)
{
    if (follow->has_local)
        fy_work_finished(f, 1);
    fy_owe(f, -(ptrdiff_t)sizeof(*follow));
    fy_pool_put(&fy_memory_of(f)->follows, follow);
}

/* Ends the caller's operation, or leaves that to the other rank, whose handler runs next. */
static void transfer_finish(ferry *f, fy_follow *follow, int error)
{
    fy_follow copy = *follow;
    free_follow(f, follow);
    const order o = {&copy.remote, copy.there, copy.size_bytes, copy.op, false};
    if (error == 0 && copy.has_remote)
        error = send_call(f, copy.rank, &o);
    if (error != 0 && copy.op == 0)
        fy_memory_log(f);
    if (error != 0 || !copy.has_remote)
        fy_op_end(f, copy.op, error);
}

/* Whether the handlers still have to run: not if the caller has cancelled the operation. */
static bool is_wanted(const ferry *f, const fy_follow *follow)
{
    return follow->op == 0 || fy_op_is_pending(f, follow->op);
}

static void run_local(ferry *f, void *arg)
{
    fy_follow *follow = arg;
    if (!follow->has_local || !is_wanted(f, follow))
        return;
    ferry_memory_fn *fn =
        (ferry_memory_fn *)fy_handler_find(f, follow->local.handler.index, FY_HANDLER_MEMORY);
    follow->has_local = false;
    fn(f, follow->rank, follow->here, follow->size_bytes, follow->local.argument);
    fy_work_finished(f, 1);
}

static void on_arrived(ferry *f, void *arg, const ferry_receipt *receipt)
{
    fy_follow *follow = arg;
    (void)receipt;
    follow->has_remote = follow->has_remote && is_wanted(f, follow);
    run_local(f, follow);
    transfer_finish(f, follow, 0);
}

/* Only marks an operation as the inner one of a transfer. The record is freed at its end. */
static void on_gone(ferry *f, void *arg, uint32_t op, int error)
{
    (void)f, (void)arg, (void)op, (void)error;
}

void fy_transfer_arrived(ferry *f, int source, uint32_t op)
{
    fy_follow *follow = fy_op_owned(f, op, on_gone);
    if (follow != NULL && follow->rank == source && follow->has_local)
        fy_run(f, FY_DOING_HANDLER, follow->local.handler.index, run_local, follow);
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    fy_fail(f, receipt->error, "transfer of %zu bytes with rank %d: %s", receipt->size_bytes,
            receipt->rank, ferry_strerror(receipt->error));
    transfer_finish(f, arg, receipt->error);
}

/* Starts the inner operation, whose end does what `follow` says. `arrival`: as in the caller's
 * track. */
static int start_follow(ferry *f, const fy_follow *follow, bool arrival, fy_follow **out,
                        uint32_t *op)
{
    fy_memory *m = fy_memory_of(f);
    fy_follow *record = fy_pool_get(&m->follows);
    if (record == NULL)
        return fy_fail(f, FERRY_ENOMEM, "transfer: no memory for another one with handlers");
    *record = *follow;
    const ferry_track track = {.size = sizeof(track),
                               .completed = on_arrived,
                               .completed_arg = record,
                               .failed = on_failed,
                               .failed_arg = record,
                               .arrival = arrival};
    int error = fy_op_start(f, &track, follow->rank, 0, follow->size_bytes, op);
    if (error != 0) {
        fy_pool_put(&m->follows, record);
        return error;
    }
    fy_op_own(f, *op, on_gone, record);
    if (record->has_local)
        fy_work_created(f, 1);
    *out = record;
    return 0;
}

static void drop_follow(ferry *f, fy_follow *follow, uint32_t op)
{
    if (follow == NULL)
        return;
    fy_op_drop(f, op);
    fy_owe(f, sizeof(*follow)); /* free_follow subtracts it again */
    free_follow(f, follow);
}

/* Counts the record of a transfer that was accepted. Counted before, it alone could pass the limit
 * that the call checks. */
static void count_follow(ferry *f, const fy_follow *follow)
{
    if (follow != NULL)
        fy_owe(f, sizeof(*follow));
}

static int check_tag(ferry *f, const char *name, int32_t tag)
{
    return tag != FERRY_ANY_TAG
               ? 0
               : fy_fail(f, FERRY_EINVAL, "%s: FERRY_ANY_TAG is for polls and receives", name);
}

static int check_call(ferry *f, const char *name, const ferry_memory_call *call)
{
    if (call == NULL)
        return 0;
    return fy_handler_find(f, call->handler.index, FY_HANDLER_MEMORY) != NULL
               ? check_tag(f, name, call->tag)
               : fy_handler_refuse(f, name, call->handler.index, "memory_");
}

static int transfer_check(ferry *f, const char *name, int rank, const ferry_transfer *what,
                          bool put)
{
    if (what == NULL)
        return fy_fail(f, FERRY_EINVAL, "%s: no transfer given", name);
    int error = fy_memory_check(f, name, rank, put ? what->target : what->source,
                                put ? what->source : what->target, what->size_bytes);
    if (error == 0)
        error = check_call(f, name, what->remote);
    if (error == 0)
        error = check_call(f, name, what->local);
    if (error == 0)
        error = check_tag(f, name, what->tag);
    /* Later steps cannot refuse: they need a record, or several frames of which some have left. */
    return error == 0 ? fy_check_room(f, name) : error;
}

/* Sets whether this rank copies the data itself. FERRY_ERANGE: the range is on this rank, but
 * others may not use it. */
static int find_way(ferry *f, const char *name, int rank, const void *remote, size_t size_bytes,
                    bool *direct)
{
    *direct = fy_memory_is_direct(f, rank, remote, size_bytes);
    if (*direct || rank != ferry_rank(f))
        return 0;
    *direct = true;
    return fy_memory_is_open(f, remote, size_bytes)
               ? 0
               : fy_memory_refused(f, name, rank, (uintptr_t)remote, size_bytes);
}

/* The tag of the data. In a ferry_transfer 0 means no tag. */
static int32_t tag_of(const ferry_transfer *what)
{
    return what->tag == 0 ? FY_NO_TAG : what->tag;
}

static int move_put(ferry *f, int rank, const ferry_transfer *what, uint32_t op, bool direct)
{
    const ferry_piece piece = {what->target, what->source, what->size_bytes};
    /* The data have the tag of the handler that they are for. */
    const fy_put_how how = {.op = op,
                            .part = what->remote == NULL ? FY_PUT_END : FY_PUT_PART,
                            .tag = what->remote == NULL ? tag_of(what) : what->remote->tag};
    const order o = {what->remote, what->target, what->size_bytes, op, what->local != NULL};
    int error = 0;
    if (!direct)
        error = fy_put_pieces(f, rank, &piece, &how);
    else
        fy_memory_copy_counted(f, &piece, FY_PROFILE_PUT);
    if (error == 0 && what->remote != NULL)
        error = send_call(f, rank, &o);
    if (error == 0 && what->remote == NULL && direct) {
        fy_op_submitted(f, op);
        fy_op_end(f, op, 0);
    }
    return error;
}

int ferry_put_run(ferry *f, int rank, const ferry_transfer *what, const ferry_track *track)
{
    bool direct;
    int error = transfer_check(f, "put_run", rank, what, true);
    if (error == 0)
        error = find_way(f, "put_run", rank, what->target, what->size_bytes, &direct);
    if (error != 0)
        return error;
    const fy_op_about about = fy_memory_about(what->source, what->target);
    uint32_t op;
    error = fy_memory_start(f, rank, &about, what->size_bytes, track, &op);
    if (error != 0)
        return error;
    fy_follow *follow = NULL;
    uint32_t inner = op;
    if (what->local != NULL) {
        const fy_follow then = {.local = *what->local,
                                .has_local = true,
                                .here = (void *)(uintptr_t)what->source,
                                .size_bytes = what->size_bytes,
                                .rank = rank,
                                .op = op};
        error = start_follow(f, &then, (op & FY_OP_ON_ARRIVAL) != 0, &follow, &inner);
    }
    (void)fy_op_hold(f, op, true);
    if (error == 0)
        error = move_put(f, rank, what, inner, direct);
    (void)fy_op_hold(f, op, false);
    if (error == 0) {
        count_follow(f, follow);
        fy_op_submitted(f, op);
    } else {
        drop_follow(f, follow, inner);
        fy_op_drop(f, op);
    }
    return error;
}

/* `op` is the inner operation. `guard` is the caller's, or `op` if the caller has none. */
static int move_get(ferry *f, int rank, const ferry_transfer *what, uint32_t op, uint32_t guard)
{
    bool direct =
        rank == ferry_rank(f) || fy_memory_is_direct(f, rank, what->source, what->size_bytes);
    const ferry_piece piece = {what->target, what->source, what->size_bytes};
    const fy_get_how how = {.op = op, .guard = guard, .tag = tag_of(what)};
    if (!direct)
        return fy_get_pieces(f, rank, &piece, &how);
    fy_memory_copy_counted(f, &piece, FY_PROFILE_GET);
    fy_op_end(f, op, 0);
    return 0;
}

int ferry_get_run(ferry *f, int rank, const ferry_transfer *what, const ferry_track *track)
{
    bool direct;
    int error = transfer_check(f, "get_run", rank, what, false);
    if (error == 0)
        error = find_way(f, "get_run", rank, what->source, what->size_bytes, &direct);
    if (error != 0)
        return error;
    const fy_op_about about = fy_memory_about(what->target, what->source);
    uint32_t op;
    error = fy_memory_start(f, rank, &about, what->size_bytes, track, &op);
    if (error != 0)
        return error;
    const fy_follow then = {
        .local = what->local == NULL ? (ferry_memory_call){.tag = 0} : *what->local,
        .remote = what->remote == NULL ? (ferry_memory_call){.tag = 0} : *what->remote,
        .has_local = what->local != NULL,
        .has_remote = what->remote != NULL,
        .here = what->target,
        .there = (void *)(uintptr_t)what->source,
        .size_bytes = what->size_bytes,
        .rank = rank,
        .op = op};
    fy_follow *follow = NULL;
    uint32_t inner;
    error = start_follow(f, &then, false, &follow, &inner);
    if (error == 0)
        error = move_get(f, rank, what, inner, op != 0 ? op : inner);
    if (error == 0) {
        count_follow(f, follow);
    } else {
        drop_follow(f, follow, inner);
        fy_op_drop(f, op);
    }
    return error;
}

typedef struct transfer_call {
    ferry_memory_fn *fn;
    int source;
    const fy_frame *frame;
} transfer_call;

static void run_transfer(ferry *f, void *arg)
{
    const transfer_call *call = arg;
    const uint64_t *words = call->frame->words;
    call->fn(f, call->source, (void *)(uintptr_t)words[0], (size_t)words[1], words[2]);
}

/* Returns 0 if the frame's handler is registered here and others may use its range. */
static int check_frame(ferry *f, int source, const fy_frame *frame)
{
    if (fy_handler_find(f, frame->handler, FY_HANDLER_MEMORY) == NULL ||
        fy_handler_signature(f, frame->handler) != frame->aux) {
        fy_bad_frame(f, source, frame, "a transfer to a handler that is not registered here");
        return FERRY_ENOENT;
    }
    if (fy_memory_is_open(f, (const void *)(uintptr_t)frame->words[0], frame->words[1]))
        return 0;
    fy_memory_refused(f, "transfer", ferry_rank(f), frame->words[0], frame->words[1]);
    fy_memory_log(f);
    return FERRY_ERANGE;
}

static void transfer_run(ferry *f, int source, const fy_frame *frame)
{
    transfer_call call = {(ferry_memory_fn *)fy_handler_find(f, frame->handler, FY_HANDLER_MEMORY),
                          source, frame};
    fy_run(f, FY_DOING_HANDLER, frame->handler, run_transfer, &call);
}

/* Tells the source that the frame has arrived, if it asked for that. Returns the operation to end
 * after the handler, or 0. */
static uint32_t tell_arrival(ferry *f, int source, const fy_frame *frame, int error)
{
    if ((frame->op & FY_OP_ON_ARRIVAL) != 0) {
        fy_op_end_remote(f, source, frame->op, error);
        return 0;
    }
    if (frame->op != 0 && frame->words[3] != 0 && error == 0)
        fy_put_answer_send(f, source, FY_PUT_ARRIVED, (const uint64_t[3]){frame->op});
    return frame->op;
}

bool fy_transfer_hold(ferry *f, int source, fy_frame *frame)
{
    if (frame->word_count != TRANSFER_WORDS)
        return true;
    frame->op = tell_arrival(f, source, frame, check_frame(f, source, frame));
    frame->words[3] = 0;
    return true;
}

fy_verdict fy_transfer_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->word_count != TRANSFER_WORDS) {
        fy_bad_frame(f, source, frame, "a transfer");
        return FY_TAKEN;
    }
    if (frame->op != 0 && !fy_op_end_reserve(f))
        return FY_LEAVE;
    if (fy_work_arrives(f, source, 1) != 0)
        return FY_LEAVE;
    int error = check_frame(f, source, frame);
    uint32_t op = tell_arrival(f, source, frame, error);
    void *held = op == 0 ? NULL : fy_op_end_hold(f);
    if (op != 0 && held == NULL) {
        /* Takes the count back: the frame comes again, and its arrival is then told again. */
        (void)fy_work_arrives(f, source, UINT64_MAX);
        return FY_LEAVE;
    }
    if (error == 0)
        transfer_run(f, source, frame);
    fy_work_finished(f, 1);
    fy_op_end_release(f, held);
    fy_op_end_remote(f, source, op, error);
    return FY_TAKEN;
}
