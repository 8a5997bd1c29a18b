/* The frames of collectives: numbering, matching, and finding out that ranks disagree.
 *
 * Each frame carries the call it belongs to. A rank that meets another call under its own number
 * tells every rank, so that nobody waits for a call that others never make; so does a rank that
 * cannot go on. */
#include "core/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/rank.h"

/* The step of a frame that ends the call with an error; words[3] holds it. */
enum { STEP_ABORT = -1, CALL_WORDS = 4 };

/* Fruitless rounds before a peer that is waited for is looked at. */
enum { ROUNDS_BEFORE_DOUBT = 50 };

/* What an abort carries: the two calls that do not fit, and who made them. */
typedef struct abort_note {
    int32_t ranks[2];
    fy_collective_call calls[2];
} abort_note;

static bool calls_equal(const fy_collective_call *a, const fy_collective_call *b)
{
    return a->what == b->what && a->size_bytes == b->size_bytes && a->signature == b->signature;
}

static void describe(const fy_collective_call *call, char *text, size_t size)
{
    static const char *const types[] = {"int32", "int64", "uint64", "double"};
    static const char *const reductions[] = {"sum", "min", "max"};
    unsigned type = call->what >> 8 & 0xff, reduction = call->what >> 16 & 0xff;
    switch (call->what & 0xff) {
    case FY_BARRIER:
        snprintf(text, size, "ferry_barrier");
        break;
    case FY_BROADCAST:
        snprintf(text, size, "ferry_broadcast of %" PRIu64 " bytes from rank %" PRIu64,
                 call->size_bytes, call->what >> 32);
        break;
    case FY_ALLREDUCE:
        snprintf(text, size, "ferry_allreduce (%s of %s) of %" PRIu64 " bytes",
                 reduction < 3 ? reductions[reduction] : "?", type < 4 ? types[type] : "?",
                 call->size_bytes);
        break;
    default:
        snprintf(text, size, "an unknown collective");
    }
}

/* Ends the running call on this rank with both sides of a disagreement. */
static void disagree(ferry *f, const abort_note *note)
{
    char texts[2][96];
    const fy_collective_call *a = &note->calls[0], *b = &note->calls[1];
    describe(a, texts[0], sizeof(texts[0]));
    describe(b, texts[1], sizeof(texts[1]));
    if (a->what == b->what && a->size_bytes == b->size_bytes)
        f->collectives.error =
            fy_fail(f, FERRY_EINVAL,
                    "collective %" PRIu32 ": ranks %d and %d have registered different handlers; "
                    "every rank must register the same in the same order",
                    f->collectives.number, note->ranks[0], note->ranks[1]);
    else
        f->collectives.error =
            fy_fail(f, FERRY_EINVAL, "collective %" PRIu32 ": rank %d called %s, rank %d %s",
                    f->collectives.number, note->ranks[0], texts[0], note->ranks[1], texts[1]);
}

static void tell_all(ferry *f, int error, const abort_note *note)
{
    const fy_collectives *c = &f->collectives;
    const fy_frame frame = {
        .kind = FY_KIND_COLLECTIVE,
        .word_count = CALL_WORDS,
        .tag = STEP_ABORT,
        .aux = c->number,
        .words = {c->call.what, c->call.size_bytes, c->call.signature, (uint64_t)(int64_t)error},
        .data = note,
        .size_bytes = note == NULL ? 0 : sizeof(*note)};
    for (int rank = 0; rank < f->ranks; rank++)
        if (rank != f->rank)
            (void)fy_send(f, FY_DATA, rank, &frame); /* the dead need not know */
}

static void take_abort(ferry *f, int source, const fy_frame *frame)
{
    abort_note note;
    if (frame->size_bytes == sizeof(note)) {
        memcpy(&note, frame->data, sizeof(note));
        disagree(f, &note);
        return;
    }
    int64_t error = (int64_t)frame->words[3];
    error = error < 0 && error >= INT16_MIN ? error : FERRY_EINVAL;
    f->collectives.error = fy_fail(f, (int)error, "collective %" PRIu32 ": rank %d failed with %s",
                                   f->collectives.number, source, ferry_strerror((int)error));
}

static bool fits_wish(const fy_collective_wish *wish, int source, const fy_frame *frame)
{
    return wish->active && !wish->complete && wish->source == source && wish->step == frame->tag;
}

static void fulfil(ferry *f, const fy_frame *frame)
{
    fy_collective_wish *wish = &f->collectives.wish;
    if (frame->size_bytes > wish->size_bytes - wish->received) {
        f->collectives.error = fy_fail(
            f, FERRY_EINVAL, "collective %" PRIu32 ": rank %d sent %zu bytes, expected at most %zu",
            f->collectives.number, wish->source, frame->size_bytes,
            wish->size_bytes - wish->received);
        tell_all(f, FERRY_EINVAL, NULL);
        return;
    }
    if (frame->size_bytes > 0)
        memcpy(wish->buffer + wish->received, frame->data, frame->size_bytes);
    wish->received += frame->size_bytes;
    wish->complete = wish->received == wish->size_bytes;
}

/* Takes a frame of the running call. Returns whether it was one, not of a later call. */
static bool take(ferry *f, int source, const fy_frame *frame)
{
    fy_collectives *c = &f->collectives;
    const fy_collective_call call = {frame->words[0], frame->words[1], frame->words[2]};
    if (c->error != 0)
        return true;
    if (frame->tag == STEP_ABORT) {
        take_abort(f, source, frame);
    } else if (!calls_equal(&call, &c->call)) {
        const abort_note note = {{f->rank, source}, {c->call, call}};
        disagree(f, &note);
        tell_all(f, FERRY_EINVAL, &note);
    } else if (fits_wish(&c->wish, source, frame)) {
        fulfil(f, frame);
    } else {
        return false;
    }
    return true;
}

fy_verdict fy_collective_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_collectives *c = &f->collectives;
    if (frame->word_count != CALL_WORDS) {
        fy_bad_frame(f, source, frame, "part of a collective");
        return FY_TAKEN;
    }
    int32_t ahead = (int32_t)(frame->aux - c->number);
    if (ahead < 0 || (ahead == 0 && !c->running))
        return FY_TAKEN; /* left over from a call that failed here */
    if (ahead == 0 && take(f, source, frame))
        return FY_TAKEN;
    fy_packet *packet = fy_packet_create(&f->packets, frame->size_bytes);
    if (packet == NULL)
        return FY_LEAVE;
    fy_packet_fill(packet, source, FY_DATA, frame);
    fy_queue_push(&c->early, packet);
    return FY_TAKEN;
}

/* Takes what came early and is for the running call; drops what is for calls that failed. */
static void look_early(ferry *f)
{
    fy_collectives *c = &f->collectives;
    fy_packet *before = NULL;
    for (fy_packet *packet = c->early.head, *next; packet != NULL; packet = next) {
        next = packet->next;
        int32_t ahead = (int32_t)(packet->frame.aux - c->number);
        if (ahead > 0 || (ahead == 0 && !take(f, packet->rank, &packet->frame))) {
            before = packet;
            continue;
        }
        fy_packet_destroy(&f->packets, fy_queue_unlink(&c->early, before));
    }
}

void fy_collective_begin(ferry *f, const fy_collective_call *call)
{
    fy_collectives *c = &f->collectives;
    c->number++;
    c->running = true;
    c->error = 0;
    c->call = *call;
    c->call.signature = fy_handlers_signature(f);
    c->wish = (fy_collective_wish){0};
    look_early(f);
}

int fy_collective_end(ferry *f, int error)
{
    fy_collectives *c = &f->collectives;
    /* An error that came by a frame is known to all. */
    if (error != 0 && c->error == 0)
        tell_all(f, error, NULL);
    c->running = false;
    c->wish = (fy_collective_wish){0};
    return error;
}

int fy_collective_send(ferry *f, int rank, int32_t step, const void *data, size_t size_bytes)
{
    const fy_collectives *c = &f->collectives;
    if (c->error != 0)
        return c->error;
    const fy_frame frame = {.kind = FY_KIND_COLLECTIVE,
                            .word_count = CALL_WORDS,
                            .tag = step,
                            .aux = c->number,
                            .words = {c->call.what, c->call.size_bytes, c->call.signature, 0},
                            .data = data,
                            .size_bytes = size_bytes};
    return fy_send_paced(f, FY_DATA, rank, &frame);
}

void fy_collective_want(ferry *f, int source, int32_t step, void *buffer, size_t size_bytes)
{
    f->collectives.wish = (fy_collective_wish){
        .source = source, .step = step, .buffer = buffer, .size_bytes = size_bytes, .active = true};
    if (f->collectives.early.head != NULL)
        look_early(f);
}

int fy_collective_await(ferry *f, size_t size_bytes)
{
    fy_collectives *c = &f->collectives;
    const fy_collective_wish *wish = &c->wish;
    fy_patience patience = {0};
    bool gone = false;
    while (c->error == 0 && !wish->complete && (size_bytes == 0 || wish->received < size_bytes)) {
        if (gone)
            return fy_fail(f, FERRY_EPEER, "collective %" PRIu32 ": rank %d is dead or has left",
                           c->number, wish->source);
        int count = fy_progress_wait(f, true, FERRY_FOREVER, &patience);
        /* What a peer sent before it went is still delivered: it is lost only when a round after
         * finds nothing. */
        gone = count == 0 && patience.rounds > ROUNDS_BEFORE_DOUBT &&
               f->ops->peer(f->port, wish->source) != FY_PEER_ALIVE &&
               !f->ops->pending(f->port, FY_DATA);
    }
    return c->error;
}

void fy_collectives_fini(ferry *f)
{
    while (f->collectives.early.head != NULL)
        fy_packet_destroy(&f->packets, fy_queue_unlink(&f->collectives.early, NULL));
}
