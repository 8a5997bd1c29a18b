#include "core/loss.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"
#include "core/work.h"

/* words: kind; a note's error, or the collective that the handlers are for (0: a quiescence). Data:
 * the reason, or the names of the source's handlers. */
typedef enum loss_kind { LOSS_NOTE, LOSS_HANDLERS } loss_kind;
enum { LOSS_WORDS = 2 };

#define DIED "rank %d %s; its work is lost"

/* Sends the first reason to all others. */
static void tell_all(ferry *f)
{
    const fy_loss *loss = &f->loss;
    const fy_frame frame = {.kind = FY_KIND_LOSS,
                            .word_count = LOSS_WORDS,
                            .words = {LOSS_NOTE, (uint64_t)(int64_t)loss->error},
                            .data = loss->reason,
                            .size_bytes = strlen(loss->reason)};
    for (int rank = 0; rank < f->head.ranks; rank++)
        if (rank != f->head.rank && !fy_peer_is_gone(f, rank))
            (void)fy_send(f, FY_DATA, rank, &frame); /* without memory: it waits for our end */
}

void fy_loss_note(ferry *f, int error, const char *format, ...)
{
    fy_loss *loss = &f->loss;
    if (loss->error != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(loss->reason, sizeof(loss->reason), format, arguments);
    va_end(arguments);
    loss->error = error;
    tell_all(f);
}

/* A rank that leaves by ferry_leave has asked all others, and a rank that closes has made a barrier
 * with them. So a rank that is about to close too finds no loss. */
void fy_loss_of_rank(ferry *f, int rank, bool died)
{
    const fy_group *group = f->collectives.group;
    bool expected = f->closing == FY_CLOSING_LAST || fy_peer_leaves(f, rank) || group->self < 0 ||
                    fy_group_place(group, rank) < 0;
    if (f->loss.dead == 0 && f->peers.fn == NULL && (died || !expected))
        f->loss.dead = rank + 1;
}

/* A fy_deliver of a rank that ends: nothing but the reason of a loss counts any more. */
static fy_verdict take_note(void *context, int source, const fy_frame *frame)
{
    return frame->kind == FY_KIND_LOSS ? fy_loss_deliver(context, source, frame) : FY_TAKEN;
}

/* This rank may have failed because of a loss whose reason it has not read yet. Another rank may
 * learn that this rank has gone before it learns of the loss. So this rank reads on, and repeats
 * the reason before it goes. */
void fy_loss_end(ferry *f, int status)
{
    enum { POLLS_MAX = 64 };
    const fy_loss *loss = &f->loss;
    for (int i = 0; i < POLLS_MAX && loss->error == 0 && f->peers.fn == NULL; i++)
        if (f->head.ops->transport.poll(f->head.port, FY_DATA, FY_POLL_BUDGET, take_note, f) == 0)
            break;
    if (loss->error != 0)
        tell_all(f);
    else if (loss->dead != 0 && f->peers.fn == NULL)
        fy_loss_note(f, FERRY_EPEER, DIED, loss->dead - 1, fy_peer_outcome(f, loss->dead - 1));
    else {
        if (f->head.ops->members.fail != NULL)
            f->head.ops->members.fail(f->head.port, status & 0xff);
        fy_loss_note(f, FERRY_EPEER, "rank %d ended with exit status %d; its work is lost%s%s",
                     f->head.rank, status & 0xff,
                     f->error_text[0] != '\0' ? "; its last error: " : "", f->error_text);
    }
}

static void tell_bad(ferry *f)
{
    const fy_bad *bad = &f->loss.bad;
    fy_loss_note(f, FERRY_ELOST,
                 "rank %d dropped a malformed frame from rank %d, as %s: kind %u, %u words, "
                 "handler %u, %llu bytes",
                 f->head.rank, bad->source, bad->what, bad->kind, bad->word_count, bad->handler,
                 (unsigned long long)bad->size_bytes);
}

bool fy_loss_is_due(const ferry *f)
{
    /* relaxed: fy_loss_check looks again */
    return f->peers.gone_count != 0 || f->loss.error != 0 ||
           atomic_load_explicit(&f->loss.has_bad, memory_order_relaxed);
}

int fy_loss_check(ferry *f, const char *call)
{
    fy_loss *loss = &f->loss;
    /* acquire: pairs with the release in fy_bad_frame */
    if (loss->error == 0 && atomic_load_explicit(&loss->has_bad, memory_order_acquire))
        tell_bad(f);
    if (loss->error != 0)
        return fy_fail(f, loss->error, "%s: %s", call, loss->reason);
    if (loss->dead != 0 && f->peers.fn == NULL)
        return fy_fail(f, FERRY_EPEER, "%s: " DIED, call, loss->dead - 1,
                       fy_peer_outcome(f, loss->dead - 1));
    return 0;
}

void fy_bad_frame(ferry *f, int source, const fy_frame *frame, const char *what)
{
    enum { LINES_MAX = 8 };
    fy_loss *loss = &f->loss;
    /* relaxed: it only counts; who is first alone writes `bad` */
    uint32_t before = atomic_fetch_add_explicit(&loss->bad_count, 1, memory_order_relaxed);
    if (before == 0) {
        loss->bad = (fy_bad){what,           frame->size_bytes, source,
                             frame->handler, frame->kind,       frame->word_count};
        /* release: pairs with the acquire in fy_loss_check */
        atomic_store_explicit(&loss->has_bad, true, memory_order_release);
    }
    if (before < LINES_MAX)
        fy_log(f,
               "a malformed frame from rank %d, as %s, is dropped: kind %u, %u words, handler %u, "
               "%zu bytes",
               source, what, frame->kind, frame->word_count, frame->handler, frame->size_bytes);
}

void fy_loss_compare(ferry *f, int rank, uint32_t number)
{
    uint32_t signature = fy_handlers_signature(f);
    const fy_frame frame = {.kind = FY_KIND_LOSS,
                            .word_count = LOSS_WORDS,
                            .words = {LOSS_HANDLERS, number},
                            .data = f->head.handlers.names,
                            .size_bytes = f->head.handlers.count * sizeof(*f->head.handlers.names)};
    uint64_t compared = (uint64_t)signature << 32 | number;
    if (f->loss.compared != compared && fy_send_as_work(f, rank, &frame) == 0)
        f->loss.compared = compared;
}

/* Names the first handler that differs on `source`, to all ranks in collective `number`, or else in
 * a quiescence. */
static void loss_compare(ferry *f, int source, const char *theirs, uint32_t count, uint32_t number)
{
    enum { BYTES = FY_HANDLER_NAME_BYTES };
    const fy_handlers *h = &f->head.handlers;
    char texts[2][BYTES + 2] = {"missing", "missing"}, reason[FY_REASON_BYTES];
    uint32_t i = FY_HANDLERS_OWN + 1;
    while (i < count && i < h->count && strncmp(h->names[i], theirs + i * BYTES, BYTES) == 0)
        i++;
    if (i < h->count)
        (void)snprintf(texts[0], sizeof(texts[0]), "\"%.31s\"", h->names[i]);
    if (i < count)
        (void)snprintf(texts[1], sizeof(texts[1]), "\"%.31s\"", theirs + i * BYTES);
    (void)snprintf(
        reason, sizeof(reason),
        "ranks %d and %d have registered different handlers: handler %u is %s on rank %d "
        "and %s on rank %d; every rank must register the same in the same order",
        f->head.rank, source, i, texts[0], f->head.rank, texts[1], source);
    if (number == 0)
        fy_loss_note(f, FERRY_EINVAL, "%s", reason);
    else
        fy_collective_refuse(f, number, reason);
}

fy_verdict fy_loss_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->word_count != LOSS_WORDS || frame->words[0] > LOSS_HANDLERS) {
        fy_bad_frame(f, source, frame, "word of a loss");
    } else if (frame->words[0] == LOSS_HANDLERS) {
        if (fy_work_arrives(f, source, 1) != 0)
            return FY_LEAVE;
        loss_compare(f, source, frame->data,
                     (uint32_t)(frame->size_bytes / sizeof(*f->head.handlers.names)),
                     (uint32_t)frame->words[1]);
        f->head.work_finished++;
    } else if (f->loss.error == 0 &&
               ((int64_t)frame->words[1] != FERRY_EPEER || f->peers.fn == NULL)) {
        int64_t error = (int64_t)frame->words[1];
        f->loss.error = error < 0 && error >= INT16_MIN ? (int)error : FERRY_ELOST;
        (void)snprintf(
            f->loss.reason, sizeof(f->loss.reason), "%.*s",
            (int)(frame->size_bytes < FY_REASON_BYTES ? frame->size_bytes : FY_REASON_BYTES - 1),
            (const char *)frame->data);
    }
    return FY_TAKEN;
}
