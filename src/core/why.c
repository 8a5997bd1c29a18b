#include "core/why.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

uint64_t fy_stamp(const ferry *f)
{
    return f->account.stamp_ns;
}

double fy_why_age(const ferry *f, uint64_t since_ns)
{
    uint64_t now = f->ops->now(f->port);
    return now > since_ns ? (double)(now - since_ns) / 1e9 : 0;
}

static void tell_operation(const ferry *f, fy_why *why, const fy_op_record *record)
{
    const ferry_receipt *r = &record->receipt;
    /* '>' and a rank: this one waits for that. */
    if (r->object.word != 0)
        fy_why_line(why, ">%d has not handled a message to object %016" PRIx64 ", handler \"%s\"",
                    r->rank, r->object.word, fy_handler_name(f, r->handler.index));
    else if (record->gone == fy_mail_want_gone && r->rank == f->rank)
        fy_why_line(why, "nobody has sent what is to be received from any rank, tag %d", r->tag);
    else if (record->gone == fy_mail_want_gone)
        fy_why_line(why, ">%d has not sent what is to be received from it, tag %d", r->rank,
                    r->tag);
    else
        fy_why_line(why, ">%d has not ended an operation of %zu bytes, tag %d", r->rank,
                    r->size_bytes, r->tag);
}

static void tell_operations(const ferry *f, fy_why *why)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < f->ops_table.chunk_count << FY_OP_CHUNK_BITS; i++) {
        const fy_op_record *record =
            &f->ops_table.chunks[i >> FY_OP_CHUNK_BITS][i & ((1u << FY_OP_CHUNK_BITS) - 1)];
        if (record->state == FY_OP_PENDING && shown++ < OPERATIONS_SHOWN)
            tell_operation(f, why, record);
    }
    if (shown > OPERATIONS_SHOWN)
        fy_why_line(why, "and %u more operations are pending", shown - OPERATIONS_SHOWN);
}

static void tell(ferry *f, fy_why *why)
{
    const fy_quiescence *q = &f->quiescence;
    why->used = 0;
    if (f->account.quiet_ns != 0)
        fy_why_line(why, "nothing to do for %.2f s", fy_why_age(f, f->account.quiet_ns));
    tell_operations(f, why);
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
    if (f->ops->asked == NULL || !f->ops->asked(f->port))
        return;
    tell(f, &why);
    f->ops->answer(f->port, why.text, why.used);
}

void fy_why_helper(ferry *f)
{
    fy_why why = {.used = 0};
    if (f->ops->asked == NULL || !f->ops->asked(f->port))
        return;
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->why_helper != NULL)
            fy_layer_at(i)->why_helper(f, &why);
    f->ops->answer(f->port, why.text, why.used);
}

void fy_why_ask(ferry *f)
{
    if (f->ops->ask != NULL) {
        f->ops->ask(f->port, false);
        fy_why_look(f);
        f->ops->ask(f->port, true);
        return;
    }
    fy_why why;
    tell(f, &why);
    fy_log(f, "ferry_quiesce makes no progress:\n%.*s", (int)why.used, why.text);
}
