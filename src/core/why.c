#include "core/why.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"

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

static void why_tell(ferry *f, fy_why *why)
{
    const fy_quiescence *q = &f->quiescence;
    why->used = 0;
    fy_why_waits(f, why);
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
