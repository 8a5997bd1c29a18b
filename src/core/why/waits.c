/* Tells what a rank waits for: operations, calls over groups, and room at another rank. */
#include "core/why/waits.h"

#include <inttypes.h>

#include "core/handler.h"
#include "core/outgoing.h"
#include "core/rank.h"

enum { OPERATIONS_SHOWN = 8 };

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
        fy_why_line(why, "no rank has sent the message for a receive from any rank, tag %d",
                    r->tag);
        return;
    }
    if (r->object.word != 0)
        fy_why_line(why, ">%d has not handled a message to object %016" PRIx64 ", handler \"%s\"",
                    r->rank, r->object.word, handler);
    else if (record->gone == fy_mail_want_gone)
        fy_why_line(why, ">%d has not sent the message for a receive, tag %d", r->rank, r->tag);
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

static void tell_waits(ferry *f, fy_why *why)
{
    if (f->head.account.quiet_ns != 0)
        fy_why_line(why, "nothing to do for %.2f s", fy_why_age(f, f->head.account.quiet_ns));
    if (f->head.account.base == FY_DOING_SEND && f->taker != f->head.rank)
        fy_why_line(why,
                    f->head.pacing->withheld(f) ? "no credit to send to rank %d"
                                                : ">%d has not taken what this rank sends",
                    f->taker);
    tell_operations(f, why);
    tell_groups(f, why);
}

const fy_why_teller fy_why_teller_table = {.version = FY_WHY_TELLER_VERSION, .waits = tell_waits};
