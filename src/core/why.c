#include "core/why.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/fail.h"
#include "core/handler.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"

enum { OPERATIONS_SHOWN = 8 };

void fy_why_line(fy_why *why, const char *format, ...)
{
    static const char more[] = "...\n";
    size_t room = sizeof(why->text) - sizeof(more) - why->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(why->text + why->used, room, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < room - 1) {
        why->used += (size_t)length;
        why->text[why->used++] = '\n';
    } else if (why->used == 0 || why->text[why->used - 2] != '.') {
        memcpy(why->text + why->used, more, sizeof(more) - 1);
        why->used += sizeof(more) - 1;
    }
}

double fy_why_age(const ferry *f, uint64_t since_ns)
{
    uint64_t now = f->head.ops->host.now(f->head.port);
    return now > since_ns ? (double)(now - since_ns) / 1e9 : 0;
}

/* Whether the call in which the rank is ends only after this operation. */
static bool operation_is_awaited(const ferry *f, const fy_op_record *record)
{
    if (f->head.ends)
        return !record->lazy;
    return f->head.account.base == FY_DOING_QUIESCE ? !record->aside
                                                    : record == f->ops_table.awaited;
}

/* Whether other lines tell of it: a call over a group, or an operation on a cell, of which no rank
 * is known that could end it. */
static bool is_told_elsewhere(const ferry *f, const fy_op_record *record)
{
    return record->lazy ? record->gone != NULL && record->gone != fy_mail_want_gone &&
                              record->gone != fy_mail_offer_gone
                        : record->aside && record->receipt.rank == f->head.rank;
}

/* The line that began at `start` names a rank: after '>' this rank waits for that, after ' ' it
 * does not. */
static void mark_line(fy_why *why, size_t start, bool awaited)
{
    if (!awaited)
        why->text[start] = ' ';
}

static void tell_operation(const ferry *f, fy_why *why, const fy_op_record *record)
{
    const ferry_receipt *r = &record->receipt;
    const char *handler = fy_handler_name(f, r->handler.index);
    size_t start = why->used;
    if (record->gone == fy_mail_want_gone && r->rank < 0) {
        fy_why_line(why, "nobody has sent what is to be received from any rank, tag %d", r->tag);
        return;
    }
    if (r->object.word != 0)
        fy_why_line(why, ">%d has not handled a message to object %016" PRIx64 ", handler \"%s\"",
                    r->rank, r->object.word, handler);
    else if (record->gone == fy_mail_want_gone)
        fy_why_line(why, ">%d has not sent what is to be received from it, tag %d", r->rank,
                    r->tag);
    else if (r->handler.index != 0)
        fy_why_line(why, ">%d has not handled a request, handler \"%s\"", r->rank, handler);
    else
        fy_why_line(why, ">%d has not ended %s of %zu bytes, tag %d", r->rank,
                    record->lazy || r->rank == f->head.rank ? "an operation" : "a memory operation",
                    r->size_bytes, r->tag);
    mark_line(why, start, operation_is_awaited(f, record));
}

static void tell_operations(const ferry *f, fy_why *why)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < f->ops_table.chunk_count << FY_OP_CHUNK_BITS; i++) {
        const fy_op_record *record =
            &f->ops_table.chunks[i >> FY_OP_CHUNK_BITS][i & ((1u << FY_OP_CHUNK_BITS) - 1)];
        if (record->state == FY_OP_PENDING && !is_told_elsewhere(f, record) &&
            shown++ < OPERATIONS_SHOWN)
            tell_operation(f, why, record);
    }
    if (shown > OPERATIONS_SHOWN)
        fy_why_line(why, "and %u more operations are pending", shown - OPERATIONS_SHOWN);
}

/* Collective calls that cannot continue on this rank. The port reports the present one, if it is a
 * call of all members. */
static void tell_groups(const ferry *f, fy_why *why)
{
    const fy_op_record *awaited = f->ops_table.awaited;
    for (const fy_collective *c = f->collectives.first; c != NULL; c = c->next) {
        const fy_step *step = &c->steps[c->at];
        if (c->at >= c->step_count || step->kind != FY_STEP_AWAIT ||
            (c->kept && f->head.account.base <= FY_DOING_CLOSE))
            continue;
        bool waits = c->kept || f->head.ends || (awaited != NULL && awaited->gone_arg == c);
        size_t start = why->used;
        fy_why_line(why, ">%d has not sent its part of %s of %d ranks, first %d",
                    c->posts[step->rank].source, fy_collective_kinds[c->what.kind].name,
                    c->group->size, fy_group_rank(c->group, 0));
        mark_line(why, start, waits);
    }
}

static void why_tell(ferry *f, fy_why *why)
{
    const fy_quiescence *q = &f->quiescence;
    why->used = 0;
    if (f->head.account.quiet_ns != 0)
        fy_why_line(why, "nothing to do for %.2f s", fy_why_age(f, f->head.account.quiet_ns));
    if (f->head.account.base == FY_DOING_SEND && f->taker != f->head.rank)
        fy_why_line(why,
                    f->head.pacing->withheld(f) ? "no credit to send to rank %d"
                                                : ">%d has not taken what this rank sends",
                    f->taker);
    tell_operations(f, why);
    tell_groups(f, why);
    fy_leave_why(f, why);
    if (q->last_created != q->last_finished)
        fy_why_line(why,
                    "%" PRIu64 " messages or tasks of the job were not finished when last "
                    "counted",
                    q->last_created - q->last_finished);
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->why != NULL)
            fy_layer_at(i)->why(f, why);
}

void fy_why_look(ferry *f)
{
    fy_why why;
    if (f->head.ops->diagnosis.asked == NULL || !f->head.ops->diagnosis.asked(f->head.port))
        return;
    why_tell(f, &why);
    f->head.ops->diagnosis.answer(f->head.port, why.text, why.used);
}

/* Whether a frame has asked and nobody has answered. */
static bool is_asked(ferry *f)
{
    /* relaxed: no other data depend on the word. The thread that resets it answers. */
    return atomic_load_explicit(&f->why_asked, memory_order_relaxed) &&
           atomic_exchange_explicit(&f->why_asked, false, memory_order_relaxed);
}

static void why_print(ferry *f, const char *lead, const fy_why *why)
{
    fy_log(f, "%s\n%.*s", lead, (int)why->used, why->text);
}

void fy_why_tell(ferry *f)
{
    fy_why why;
    if (!is_asked(f))
        return;
    why_tell(f, &why);
    why_print(f, why.used == 0 ? "nothing waits here" : "what it waits for:", &why);
}

void fy_why_helper(ferry *f)
{
    fy_why why = {.used = 0};
    bool asked = f->head.ops->diagnosis.asked != NULL && f->head.ops->diagnosis.asked(f->head.port),
         framed = is_asked(f);
    if (!asked && !framed)
        return;
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->why_helper != NULL)
            fy_layer_at(i)->why_helper(f, &why);
    if (asked)
        f->head.ops->diagnosis.answer(f->head.port, why.text, why.used);
    if (framed)
        why_print(f, "runs a task, and after it:", &why);
}

fy_verdict fy_why_deliver(ferry *f, int source, const fy_frame *frame)
{
    (void)source, (void)frame;
    atomic_store_explicit(&f->why_asked, true, memory_order_relaxed); /* see is_asked */
    fy_layers_signal(f); /* for a round that is not short */
    return FY_TAKEN;
}

/* Asks by frames, as the port would ask. */
static void ask_by_frames(ferry *f)
{
    const fy_frame frame = {.kind = FY_KIND_WHY};
    for (int rank = 0; rank < f->head.ranks; rank++)
        if (rank != f->head.rank && !fy_peer_is_gone(f, rank))
            (void)fy_send(f, FY_CONTROL, rank, &frame); /* after an error that rank is left out */
}

void fy_why_ask(ferry *f)
{
    if (f->head.ops->diagnosis.ask != NULL && f->head.ops->diagnosis.ask(f->head.port, false)) {
        fy_why_look(f);
        (void)f->head.ops->diagnosis.ask(f->head.port, true);
        return;
    }
    fy_why why;
    why_tell(f, &why);
    why_print(f, "ferry_quiesce makes no progress:", &why);
    ask_by_frames(f);
}
