/* Costs: the time that each object costs this rank, while FERRY_PROFILE or FERRY_TRACE count.
 *
 * Time counts for the object that caused it, not for the one that happens to run. The delivery and
 * forwarding of a message count for the object to which it goes. Packing and unpacking count for
 * the object that moves. Objects beyond OBJECTS_MAX share one account, so that memory stays bounded
 * in a long run. Application thread only. */
#include "object/object.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/env.h"
#include "core/profile.h"
#include "object/cost.h"
#include "object/entry.h"

enum { OBJECTS_MAX = 16384 };

int fy_costs_init(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    if (fy_head_of(f)->profile == NULL)
        return 0;
    objects->costs = fy_malloc(sizeof *objects->costs);
    if (objects->costs == NULL)
        return FERRY_ENOMEM;
    *objects->costs = (fy_costs){.trail = {.on = fy_env_get("FERRY_TRACE") != NULL}};
    objects->watched = true;
    return fy_table_init(&objects->costs->table, sizeof(fy_cost));
}

void fy_costs_fini(fy_objects *objects)
{
    if (objects->costs != NULL) {
        fy_table_fini(&objects->costs->table);
        free(objects->costs->trail.entries);
    }
    free(objects->costs);
    objects->costs = NULL;
}

fy_cost *fy_cost_of(fy_objects *objects, ferry_object object)
{
    fy_costs *costs = objects->costs;
    void *slot = fy_table_find(&costs->table, object.word);
    if (slot == NULL && costs->table.count < OBJECTS_MAX &&
        fy_table_insert(&costs->table, object.word, &slot) != 0)
        slot = NULL;
    fy_cost *cost = slot != NULL ? slot : &costs->others;
    if (slot != NULL && cost->type == NULL) {
        const fy_entry *entry = fy_table_find(&objects->directory, object.word);
        if (entry != NULL && entry->record != NULL && entry->record->type != NULL)
            cost->type = objects->types[entry->record->type_index].name;
    }
    return cost;
}

void fy_cost_handled(fy_objects *objects, const fy_envelope *envelope, uint16_t handler,
                     uint64_t start_ns)
{
    fy_profile *profile = fy_head_of(objects->f)->profile;
    uint32_t hops = envelope->hops;
    uint64_t passed = fy_cost_now(objects) - start_ns;
    fy_cost *cost = fy_cost_of(objects, envelope->object);
    cost->handler_ns += passed;
    cost->handled++;
    profile->hops[hops < FY_HOPS_COUNTED ? hops : FY_HOPS_COUNTED - 1]++;
    objects->costs->moment.handler_ns += passed;
    fy_trail_handled(objects, envelope, handler, start_ns, passed);
}

void fy_cost_message(fy_objects *objects, ferry_object object, const fy_moment *before,
                     bool forwarded)
{
    fy_cost *cost = fy_cost_of(objects, object);
    cost->message_ns += fy_cost_now(objects) - before->start_ns -
                        (objects->costs->moment.handler_ns - before->handler_ns);
    cost->forwarded += forwarded;
}

fy_moment fy_cost_moment(const fy_objects *objects)
{
    return objects->costs == NULL
               ? (fy_moment){0}
               : (fy_moment){fy_cost_now(objects), objects->costs->moment.handler_ns};
}

void fy_costs_write(ferry *f, FILE *out)
{
    const fy_objects *objects = fy_objects_of(f);
    if (objects->costs == NULL)
        return;
    const fy_report_printer *printer = fy_head_of(f)->profile->printer;
    size_t index = 0;
    for (fy_cost *cost; (cost = fy_table_next(&objects->costs->table, &index)) != NULL;)
        printer->account(out, cost);
    if (objects->costs->others.handled != 0)
        printer->account(out, &objects->costs->others);
    const fy_trail *trail = &objects->costs->trail;
    printer->trail(out, trail->entries, trail->count, trail->missed);
}
