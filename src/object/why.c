/* Tells of messages that this rank's objects have not handled (core/why.h). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/control.h"
#include "core/handler.h"
#include "core/why.h"
#include "object/moves.h"
#include "object/object.h"

enum { OBJECTS_SHOWN = 12, HANDLERS_SHOWN = 8, HANDLERS_MAX = 1024 };

/* Messages by handler. */
typedef struct waiting {
    uint32_t count;
    uint64_t since_ns; /* of the oldest */
} waiting;

static const char *reason_of(const fy_record *record)
{
    switch (record->state) {
    case FY_AWAITED:
        return record->due ? "the program has still to install it here" : "it has not arrived here";
    case FY_MIGRATING:
    case FY_DEPARTED:
    case FY_RETURNED:
        return "it is leaving";
    case FY_PINNED:
        return "the program holds its data";
    case FY_RUNNING:
        return "it runs";
    case FY_RESTING:
        break;
    }
    return record->pending.count != 0 ? "it waits for its turn"
                                      : "a message before them is missing";
}

static void count_queued(const fy_queued_list *messages, waiting *by_handler, uint64_t *oldest_ns)
{
    /* An empty list may still have the address of its last queued message. */
    const fy_queued_message *queued = messages->count == 0 ? NULL : messages->head;
    for (; queued != NULL; queued = queued->next) {
        waiting *w = &by_handler[queued->message.handler.index % HANDLERS_MAX];
        if (w->count++ == 0 || queued->since_ns < w->since_ns)
            w->since_ns = queued->since_ns;
        if (queued->since_ns < *oldest_ns)
            *oldest_ns = queued->since_ns;
    }
}

static bool tell_object(ferry *f, fy_why *why, const fy_record *record, waiting *by_handler,
                        bool shown)
{
    uint64_t oldest_ns = UINT64_MAX;
    fy_control_lock(f);
    uint32_t count = record->pending.count + record->early.count + record->late.count;
    count_queued(&record->pending, by_handler, &oldest_ns);
    count_queued(&record->early, by_handler, &oldest_ns);
    count_queued(&record->late, by_handler, &oldest_ns);
    const char *reason = reason_of(record);
    fy_control_unlock(f);
    if (count != 0 && shown)
        fy_why_line(why, "%u message%s for object %016llx%s%s, the oldest for %.2f s: %s", count,
                    count == 1 ? " waits" : "s wait", (unsigned long long)record->object.word,
                    record->type == NULL ? "" : " ", record->type == NULL ? "" : record->type->name,
                    fy_why_age(f, oldest_ns), reason);
    return count != 0;
}

static void tell_unregistered(fy_why *why, const fy_objects *objects)
{
    uint32_t count = 0;
    for (const fy_arrival *a = objects->unregistered; a != NULL; a = a->next)
        count++;
    if (count != 0)
        fy_why_line(
            why, "%u migration frames of objects wait: their type is not among the %u registered",
            count, objects->type_count);
}

static void tell_handlers(ferry *f, fy_why *why, const waiting *by_handler)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < HANDLERS_MAX && shown < HANDLERS_SHOWN; i++)
        if (by_handler[i].count != 0 && ++shown != 0)
            fy_why_line(why, "%u message%s for handler \"%s\" wait%s, the oldest for %.2f s",
                        by_handler[i].count, by_handler[i].count == 1 ? "" : "s",
                        fy_handler_name(f, (uint16_t)i), by_handler[i].count == 1 ? "s" : "",
                        fy_why_age(f, by_handler[i].since_ns));
}

void fy_objects_why(ferry *f, fy_why *why)
{
    const fy_objects *objects = fy_objects_of(f);
    waiting *by_handler = fy_calloc(HANDLERS_MAX, sizeof *by_handler);
    size_t index = 0;
    uint32_t told = 0;
    if (by_handler == NULL)
        return;
    for (const fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;)
        if (entry->record != NULL)
            told += tell_object(f, why, entry->record, by_handler, told < OBJECTS_SHOWN);
    if (told > OBJECTS_SHOWN)
        fy_why_line(why, "and %u more objects have messages that wait", told - OBJECTS_SHOWN);
    tell_handlers(f, why, by_handler);
    tell_unregistered(why, objects);
    free(by_handler);
}
