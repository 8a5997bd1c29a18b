/* Requests: a handler and its arguments, sent to a rank and run there by a poll. */
#include "core/fail.h"
#include "core/handler.h"
#include "core/kinds.h"
#include "core/operation.h"
#include "core/outgoing.h"
#include "core/outlets.h"
#include "core/rank.h"

int fy_check_rank(ferry *f, const char *call, int rank)
{
    if (rank >= 0 && rank < f->head.ranks)
        return 0;
    return fy_fail(f, FERRY_EINVAL, "%s: rank %d is outside 0..%d", call, rank, f->head.ranks - 1);
}

static __attribute__((cold)) int explain(ferry *f, int rank, const ferry_message *message)
{
    int error = fy_check_rank(f, "request", rank);
    if (error != 0)
        return error;
    if (message == NULL)
        return fy_fail(f, FERRY_EINVAL, "request: no message given");
    if (fy_handler_find(f, message->handler.index, FY_HANDLER_REQUEST) == NULL)
        return fy_handler_refuse(f, "request", message->handler.index, "");
    if (message->word_count > FERRY_WORDS_MAX)
        return fy_fail(f, FERRY_EINVAL, "request: %u words; at most %d", message->word_count,
                       FERRY_WORDS_MAX);
    return fy_fail(f, FERRY_EINVAL, "request: %zu bytes at NULL", message->size_bytes);
}

/* The entry of the handler of a message to `rank`; NULL if something is wrong with the message
 * beside its data. */
static inline const fy_handler_entry *entry_of(const ferry *f, int rank,
                                               const ferry_message *message)
{
    if ((uint32_t)rank >= (uint32_t)f->head.ranks || message == NULL ||
        message->handler.index >= f->head.handlers.count || message->word_count > FERRY_WORDS_MAX)
        return NULL;
    const fy_handler_entry *entry = &f->head.handlers.entries[message->handler.index];
    return entry->kind == FY_HANDLER_REQUEST ? entry : NULL;
}

static inline bool is_valid(const ferry *f, int rank, const ferry_message *message)
{
    return entry_of(f, rank, message) != NULL &&
           (message->size_bytes == 0 || message->data != NULL);
}

static inline void fill_frame(const ferry *f, const ferry_message *message, fy_frame *out)
{
    *out = (fy_frame){
        .kind = FY_KIND_REQUEST,
        .word_count = message->word_count,
        .handler = message->handler.index,
        .tag = message->tag,
        .aux = f->head.handlers.entries[message->handler.index].signature,
        .data = message->data,
        .size_bytes = message->size_bytes,
    };
    fy_words_copy(out->words, message->words, message->word_count);
}

__attribute__((cold)) int fy_request_frame(ferry *f, const ferry_message *message, fy_frame *out)
{
    if (!is_valid(f, f->head.rank, message))
        return explain(f, f->head.rank, message);
    fill_frame(f, message, out);
    return 0;
}

static __attribute__((cold)) int no_peer(ferry *f, int rank)
{
    return fy_fail(f, FERRY_ENOMEM, "request: no memory for a record of rank %d", rank);
}

/* `waits`: the call needs its data back before it returns, so they need not be copied. */
static __attribute__((noinline)) int send_frame(ferry *f, int rank, const fy_frame *frame,
                                                bool waits)
{
    fy_peer *peer = fy_peer_of(f, rank);
    if (peer == NULL)
        return no_peer(f, rank);
    static const char call[] = "request";
    int error = waits && frame->size_bytes != 0 ? fy_send_lent(f, rank, frame, call)
                                                : fy_send_paced(f, rank, frame, call);
    if (error != 0)
        return error;
    peer->work_sent++;
    f->head.stats.requests_sent++;
    return 0;
}

static __attribute__((noinline)) int send_tracked(ferry *f, int rank, const ferry_message *message,
                                                  const ferry_track *track, bool waits)
{
    fy_frame frame;
    uint32_t op;
    fill_frame(f, message, &frame);
    int error = fy_op_start(f, track, rank, message->tag, message->size_bytes, &op);
    if (error != 0)
        return error;
    fy_loan loan;
    bool lends = fy_may_lend(f, rank, frame.data, frame.size_bytes, op);
    frame.op = lends || fy_track_asks(track) ? op : 0;
    if (lends)
        fy_lend(f, &frame, &loan);
    error = send_frame(f, rank, &frame, waits);
    if (error != 0) {
        fy_op_drop(f, op);
        return error;
    }
    /* The record is completed after the request has gone, which need not wait for that. If the data
     * are not lent, nobody reads them any more, so the operation is submitted. */
    const fy_op_about about = {.handler = message->handler,
                               .local_address = (void *)(uintptr_t)message->data};
    fy_op_describe(f, op, &about);
    if (!lends)
        fy_op_submitted(f, op);
    if (frame.op == 0)
        fy_op_end(f, op, 0);
    return 0;
}

static __attribute__((noinline)) int send_any(ferry *f, int rank, const ferry_message *message,
                                              const ferry_track *track)
{
    if (message->size_bytes != 0 && message->data == NULL)
        return explain(f, rank, message);
    if (track != NULL)
        return send_tracked(f, rank, message, track, false);
    fy_frame frame;
    fill_frame(f, message, &frame);
    return send_frame(f, rank, &frame, true);
}

int ferry_request_send(ferry *f, int rank, const ferry_message *message, const ferry_track *track)
{
    const fy_handler_entry *entry = entry_of(f, rank, message);
    if (entry == NULL)
        return explain(f, rank, message);
    fy_peer *peer;
    fy_outlet *outlet;
    if (track != NULL || message->size_bytes != 0 ||
        (outlet = fy_outlet_of(f, rank, &peer)) == NULL)
        return send_any(f, rank, message, track);
    fy_ring_slot *slot = fy_outlet_next(outlet);
    slot->op = 0;
    slot->aux = entry->signature;
    slot->handler = message->handler.index;
    slot->count_place = message->word_count;
    slot->kind = FY_KIND_REQUEST;
    slot->tag = message->tag;
    slot->size = 0;
    fy_words_copy(slot->words, message->words, message->word_count);
    peer->work_sent++;
    f->head.stats.requests_sent++;
    return fy_outlet_publish(outlet, slot) ? fy_outlet_follow(f, outlet) : 0;
}

int ferry_request_sync(ferry *f, int rank, const ferry_message *message)
{
    int error = fy_check_outside(f, "request_sync");
    if (error != 0)
        return error;
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op, .arrival = true};
    if (!is_valid(f, rank, message))
        return explain(f, rank, message);
    error = send_tracked(f, rank, message, &track, true);
    return error != 0 ? error : ferry_op_wait(f, &op);
}

typedef struct request_call {
    ferry_request_fn *fn;
    int source;
    const fy_frame *frame;
} request_call;

static void run_request(ferry *f, void *arg)
{
    const request_call *call = arg;
    call->fn(f, call->source, fy_frame_message(call->frame));
}

/* Logs once per handler why a request cannot run. */
static __attribute__((cold)) void complain(ferry *f, int source, const fy_frame *frame)
{
    fy_handlers *h = &f->head.handlers;
    bool exists = frame->handler < h->count;
    bool *told = exists ? &h->entries[frame->handler].told_unknown : &h->told_unknown;
    /* One that has joined and is no member yet may be refused (quiesce.c). */
    if (frame->op == 0 && fy_group_place(f->collectives.group, source) >= 0)
        fy_loss_note(f, FERRY_ELOST,
                     "rank %d dropped a request from rank %d for handler %u, which is not the same "
                     "handler on both",
                     f->head.rank, source, frame->handler);
    if (*told)
        return;
    *told = true;
    if (!exists)
        fy_log(f, "request from rank %d for handler %u, but the last one here is %u; it is dropped",
               source, frame->handler, h->count == 0 ? 0 : h->count - 1);
    else
        fy_log(f,
               "request from rank %d for handler %u, which is \"%s\" here and another there; all "
               "must register the same in the same order; it is dropped",
               source, frame->handler, h->names[frame->handler]);
}

static inline const fy_handler_entry *request_find(const ferry *f, const fy_frame *frame)
{
    if (frame->handler >= f->head.handlers.count || frame->word_count > FERRY_WORDS_MAX)
        return NULL;
    const fy_handler_entry *entry = &f->head.handlers.entries[frame->handler];
    return entry->signature == frame->aux && entry->kind == FY_HANDLER_REQUEST ? entry : NULL;
}

int fy_request_run(ferry *f, int source, const fy_frame *frame)
{
    const fy_handler_entry *entry = request_find(f, frame);
    if (entry == NULL) {
        complain(f, source, frame);
        return FERRY_ENOENT;
    }
    request_call call = {(ferry_request_fn *)entry->fn, source, frame};
    fy_run(f, FY_DOING_HANDLER, frame->handler, run_request, &call);
    f->head.stats.requests_handled++;
    return 0;
}

/* Tells a source of its request that has arrived. */
static fy_frame arrival_of(const ferry *f, const fy_frame *frame)
{
    uint64_t error = (uint64_t)(int64_t)(request_find(f, frame) == NULL ? FERRY_ENOENT : 0);
    fy_frame arrival;
    fy_frame_begin(&arrival, FY_KIND_END, 0, 2);
    arrival.words[0] = frame->op;
    arrival.words[1] = error;
    return arrival;
}

__attribute__((cold)) bool fy_request_hold(ferry *f, int source, fy_frame *frame)
{
    if ((frame->op & FY_OP_ON_ARRIVAL) == 0)
        return true;
    const fy_frame end = arrival_of(f, frame);
    fy_op_tell(f, source, &end);
    frame->op = 0;
    return true;
}

/* The source wants to know when its request has been handled, or that it has arrived. */
static __attribute__((noinline)) fy_verdict run_tracked(ferry *f, int source, const fy_frame *frame)
{
    /* Kept while the handler runs, so that the end can be told whatever the handler does. Without
     * memory the request stays where it is. */
    void *held = fy_pool_get(&f->packets);
    if (held == NULL)
        return FY_LEAVE;
    bool on_arrival = (frame->op & FY_OP_ON_ARRIVAL) != 0;
    fy_frame end = arrival_of(f, frame);
    if (!on_arrival)
        end.words[1] = (uint64_t)(int64_t)fy_request_run(f, source, frame);
    fy_pool_put(&f->packets, held);
    fy_op_tell(f, source, &end);
    if (on_arrival)
        (void)fy_request_run(f, source, frame);
    return FY_TAKEN;
}

/* Any request, also one that the fast path of fy_request_deliver does not take. */
static __attribute__((noinline)) fy_verdict deliver_any(ferry *f, int source, const fy_frame *frame)
{
    fy_peer *peer = fy_peer_of(f, source);
    if (peer == NULL)
        return FY_LEAVE;
    if (frame->op == 0)
        (void)fy_request_run(f, source, frame); /* the source does not ask for the result */
    else if (run_tracked(f, source, frame) == FY_LEAVE)
        return FY_LEAVE;
    fy_frame_done(f);
    peer->work_received++;
    return FY_TAKEN;
}

fy_verdict fy_request_deliver(ferry *f, int source, const fy_frame *frame)
{
    const fy_handler_entry *entry = request_find(f, frame);
    fy_peer *page = f->head.peer_pages[source >> FY_PEER_PAGE_BITS];
    if (entry == NULL || page == NULL || frame->op != 0 || f->head.account.timed ||
        f->head.note == NULL)
        return deliver_any(f, source, frame);
    fy_peer *peer = &page[source & (FY_PEER_PAGE - 1)];
    (void)fy_run_begin(f, FY_DOING_HANDLER, frame->handler); /* true: it is not timed */
    ((ferry_request_fn *)entry->fn)(f, source, fy_frame_message(frame));
    fy_run_end(f, FY_DOING_HANDLER);
    f->head.stats.requests_handled++;
    fy_frame_done(f);
    peer->work_received++;
    return FY_TAKEN;
}
