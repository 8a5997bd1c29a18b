/* Trail: for `ferry scale`, which handler of which object sent which message and created which
 * object, while FERRY_TRACE counts. A message is known by its object, its origin and its number
 * there. Messages and objects of a handler stand before the handler itself, since that is added
 * when it has returned. A long run loses its end: TRAIL_MAX entries are kept. Application thread
 * only. */
#include "object/object.h"

#include "base/alloc.h"
#include "core/work.h"
#include "object/cost.h"

enum { TRAIL_FIRST = 1024, TRAIL_MAX = 1 << 20 };

/* These values stand for the origin in entries that are not messages from a rank. */
enum { SENT_BY_HANDLER = -1, SENT_BY_PROGRAM = -2 };

/* Stands for the number of a message: the object was created. */
#define CREATED UINT32_MAX

static void trail_add(fy_trail *trail, const fy_trail_entry *entry)
{
    if (trail->count == trail->room && trail->room < TRAIL_MAX) {
        void *larger = fy_double(trail->entries, &trail->room, TRAIL_FIRST, sizeof *entry);
        if (larger != NULL)
            trail->entries = larger;
    }
    if (trail->count < trail->room)
        trail->entries[trail->count++] = *entry;
    else
        trail->missed++;
}

void fy_trail_handled(fy_objects *objects, const fy_envelope *envelope, uint16_t handler,
                      uint64_t start_ns, uint64_t passed_ns)
{
    fy_trail *trail = &objects->costs->trail;
    if (trail->on)
        trail_add(trail, &(fy_trail_entry){.object = envelope->object.word,
                                           .value = passed_ns,
                                           .start_ns = start_ns,
                                           .load = trail->load,
                                           .sequence = envelope->sequence,
                                           .origin = envelope->origin,
                                           .handler = handler});
    trail->load = 0;
}

/* By the running handler, or by the program. */
static void add_own(fy_objects *objects, uint64_t object, uint32_t sequence, uint64_t bytes)
{
    fy_trail *trail = &objects->costs->trail;
    if (trail->on)
        trail_add(trail, &(fy_trail_entry){.object = object,
                                           .value = bytes,
                                           .sequence = sequence,
                                           .origin = objects->running != NULL
                                                         ? SENT_BY_HANDLER
                                                         : SENT_BY_PROGRAM -
                                                               (int)fy_quiesced(objects->f)});
}

void fy_trail_sent(fy_objects *objects, const fy_envelope *envelope, const ferry_message *message)
{
    add_own(objects, envelope->object.word, envelope->sequence,
            message->size_bytes + message->word_count * sizeof(uint64_t));
}

void fy_trail_created(fy_objects *objects, ferry_object object)
{
    add_own(objects, object.word, CREATED, 0);
}
