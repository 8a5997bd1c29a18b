/* Cost: the account of each object, while costs are counted. All but init, fini and now only where
 * fy_objects.costs is not NULL. [application thread] */
#ifndef FY_OBJECT_COST_H
#define FY_OBJECT_COST_H

#include <stdio.h>

#include "core/report/report.h"
#include "object/object.h"

typedef struct fy_moment {
    uint64_t start_ns, handler_ns; /* of all handlers so far: to be subtracted */
} fy_moment;

typedef struct fy_trail {
    fy_trail_entry *entries;
    uint32_t count, room;
    uint64_t missed; /* entries that had no room */
    double load;     /* of the message that is handled next */
    bool on;
} fy_trail;

typedef struct fy_costs {
    fy_table table;
    fy_trail trail;
    fy_cost others;
    fy_moment moment;
} fy_costs;

int fy_costs_init(ferry *f);
void fy_costs_fini(fy_objects *objects);

/* The account of an object. The pointer is valid until the next call. */
fy_cost *fy_cost_of(fy_objects *objects, ferry_object object);

/* The time; 0, without reading the clock, if nothing is counted. [either thread] */
static inline uint64_t fy_cost_now(const fy_objects *objects)
{
    return objects->costs != NULL ? objects->port->ops->host.now(objects->port) : 0;
}

/* A handler has run since `start_ns`, for the message of that envelope. */
void fy_cost_handled(fy_objects *objects, const fy_envelope *envelope, uint16_t handler,
                     uint64_t start_ns);

/* trail.c, while costs are counted: a handler has run; or the running handler or the program has
 * sent a message, or created an object. */
void fy_trail_handled(fy_objects *objects, const fy_envelope *envelope, uint16_t handler,
                      uint64_t start_ns, uint64_t passed_ns);
void fy_trail_sent(fy_objects *objects, const fy_envelope *envelope, const ferry_message *message);
void fy_trail_created(fy_objects *objects, ferry_object object);

/* Brackets the work for a message. The time of handlers that run meanwhile is not counted with it.
 */
fy_moment fy_cost_moment(const fy_objects *objects);
void fy_cost_message(fy_objects *objects, ferry_object object, const fy_moment *before,
                     bool forwarded);

/* Adds a line per object to a trace file. */
void fy_costs_write(ferry *f, FILE *out);

#endif
