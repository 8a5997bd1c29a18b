/* Reads the trails of all ranks. A handler that ran and a message that was sent belong together if
 * object, origin and number are equal. If several have these equal, the first handler belongs to
 * the first message, and so on. */
#include <stdlib.h>
#include <string.h>

#include "cmd/scale/messages.h"

/* By object, origin and number, then in the order sent. */
static int by_message(const void *left, const void *right)
{
    const scale_sent *a = left, *b = right;
    int by = sign(a->object, b->object);
    by = by != 0 ? by : (a->origin > b->origin) - (a->origin < b->origin);
    by = by != 0 ? by : sign(a->sequence, b->sequence);
    return by != 0 ? by : sign(a->order, b->order);
}

/* Compares pointers to handlers. */
static int by_handled_message(const void *left, const void *right)
{
    const scale_handled *a = *(scale_handled *const *)left, *b = *(scale_handled *const *)right;
    int by = sign(a->object, b->object);
    by = by != 0 ? by : (a->origin > b->origin) - (a->origin < b->origin);
    by = by != 0 ? by : sign(a->sequence, b->sequence);
    by = by != 0 ? by : sign(a->start_ns, b->start_ns);
    return by != 0 ? by : (a > b) - (a < b);
}

/* Whether the entry is no message. Keeps the object if the next handler created it. */
static bool is_creation(scale_work *w, const trace_trail *e)
{
    if (e->sequence != TRACE_CREATED || e->origin >= 0)
        return false;
    if (e->origin == TRACE_BY_HANDLER)
        w->created[w->created_count++] = (scale_created){e->object, (int64_t)w->handled_count};
    return true;
}

/* Reads the trail of one rank, in which a handler's messages and objects stand before the handler.
 * At its end there may be those of a handler that did not return. They count as the program's. */
static void take_rank(scale_work *w, const trace_rank *rank)
{
    size_t open = w->sent_count;
    uint32_t phase = 0;
    for (size_t i = 0; i < rank->trail_count; i++) {
        const trace_trail *e = &rank->trail[i];
        if (is_creation(w, e))
            continue;
        if (e->origin >= 0) {
            for (; open < w->sent_count; open++)
                if (w->sent[open].parent == NONE)
                    w->sent[open].parent = (int64_t)w->handled_count;
            w->handled[w->handled_count++] = (scale_handled){.object = e->object,
                                                             .start_ns = e->start_ns,
                                                             .ns = e->value,
                                                             .load = e->load > 0 ? e->load : 0,
                                                             .sequence = e->sequence,
                                                             .origin = e->origin,
                                                             .handler = e->handler,
                                                             .parent = NONE};
            continue;
        }
        if (e->origin <= TRACE_BY_PROGRAM)
            phase = (uint32_t)(TRACE_BY_PROGRAM - e->origin);
        w->sent[w->sent_count] = (scale_sent){.object = e->object,
                                              .bytes = e->value,
                                              .order = w->sent_count,
                                              .sequence = e->sequence,
                                              .phase = phase,
                                              .origin = rank->rank,
                                              .parent = e->origin == TRACE_BY_HANDLER ? NONE : ROOT,
                                              .target = NONE};
        w->sent_count++;
    }
    for (; open < w->sent_count; open++)
        if (w->sent[open].parent == NONE)
            w->sent[open].parent = ROOT;
    while (w->created_count > 0 &&
           w->created[w->created_count - 1].creator == (int64_t)w->handled_count)
        w->created_count--;
}

static bool messages_take(scale_work *w, const trace_run *run)
{
    size_t room = 1;
    for (int i = 0; i < run->ranks; i++)
        room += run->rank[i].trail_count;
    w->handled = malloc(room * sizeof *w->handled);
    w->sent = malloc(room * sizeof *w->sent);
    w->created = malloc(room * sizeof *w->created);
    if (w->handled == NULL || w->sent == NULL || w->created == NULL)
        return false;
    for (int i = 0; i < run->ranks; i++)
        take_rank(w, &run->rank[i]);
    return true;
}

scale_handled **scale_messages_sorted(const scale_work *w, int (*order)(const void *, const void *))
{
    scale_handled **list = malloc((w->handled_count + 1) * sizeof *list);
    for (size_t i = 0; i < w->handled_count && list != NULL; i++)
        list[i] = &w->handled[i];
    if (list != NULL)
        qsort(list, w->handled_count, sizeof(scale_handled *), order);
    return list;
}

/* Finds the message of each handler, and sets `parent` of the handler and `target` of the
 * message. */
static bool match(scale_work *w)
{
    scale_handled **list = scale_messages_sorted(w, by_handled_message);
    if (list == NULL)
        return false;
    qsort(w->sent, w->sent_count, sizeof *w->sent, by_message);
    for (size_t i = 0, k = 0; i < w->sent_count && k < w->handled_count;) {
        const scale_sent key = {.object = list[k]->object,
                                .origin = list[k]->origin,
                                .sequence = list[k]->sequence,
                                .order = w->sent[i].order};
        int side = by_message(&w->sent[i], &key);
        if (side == 0) {
            list[k]->parent = w->sent[i].parent;
            list[k]->phase = w->sent[i].phase;
            list[k]->bytes =
                w->sent[i].bytes < UINT32_MAX ? (uint32_t)w->sent[i].bytes : UINT32_MAX;
            w->sent[i].target = list[k] - w->handled;
        }
        i += side <= 0;
        k += side >= 0;
    }
    free(list);
    return true;
}

bool scale_messages_read(scale_work *w, const trace_run *run)
{
    *w = (scale_work){.handled_count = 0};
    return messages_take(w, run) && match(w);
}

void scale_messages_fini(scale_work *w)
{
    free(w->handled);
    free(w->sent);
    free(w->created);
}
