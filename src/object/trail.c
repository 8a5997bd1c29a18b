/* Trail: for `ferry scale`, which handler of which object sent which message, while FERRY_TRACE
 * counts. A message is known by its object, its origin and its number there. What a handler sends
 * stands before the handler itself, since that is added when it has returned. A long run loses its
 * end: TRAIL_MAX entries are kept. Application thread only. */
#include "object/object.h"

#include <inttypes.h>

#include "base/alloc.h"

enum { TRAIL_FIRST = 1024, TRAIL_MAX = 1 << 20 };

/* What else than the rank from which a handled message came stands as its origin. */
enum { SENT_BY_HANDLER = -1, SENT_BY_PROGRAM = -2 };

static void add(fy_trail *trail, const fy_trail_entry *entry)
{
    if (trail->count == trail->room && trail->room < TRAIL_MAX) {
        uint32_t room = trail->room == 0 ? TRAIL_FIRST : trail->room * 2;
        void *larger = fy_realloc(trail->entries, room * sizeof *entry);
        if (larger != NULL) {
            trail->entries = larger;
            trail->room = room;
        }
    }
    if (trail->count < trail->room)
        trail->entries[trail->count++] = *entry;
    else
        trail->missed++;
}

void fy_trail_handled(fy_objects *objects, const fy_envelope *envelope, uint64_t start_ns,
                      uint64_t passed_ns)
{
    fy_trail *trail = &objects->costs->trail;
    if (trail->on)
        add(trail, &(fy_trail_entry){.object = envelope->object.word,
                                     .value = passed_ns,
                                     .start_ns = start_ns,
                                     .load = trail->load,
                                     .sequence = envelope->sequence,
                                     .origin = envelope->origin});
    trail->load = 0;
}

void fy_trail_sent(fy_objects *objects, const fy_envelope *envelope, const ferry_message *message)
{
    fy_trail *trail = &objects->costs->trail;
    if (trail->on)
        add(trail,
            &(fy_trail_entry){.object = envelope->object.word,
                              .value = message->size_bytes + message->word_count * sizeof(uint64_t),
                              .sequence = envelope->sequence,
                              .origin = objects->running != NULL
                                            ? SENT_BY_HANDLER
                                            : SENT_BY_PROGRAM - (int)fy_quiesced(objects->f)});
}

static char *put_decimal(char *at, uint64_t value)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    *at++ = ' ';
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

/* A long run has millions of lines, and printf takes ten times as long for one. */
static char *put_entry(char *at, const fy_trail_entry *e)
{
    static const char hex[] = "0123456789abcdef";
    *at++ = 'x';
    *at++ = ' ';
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = hex[e->object >> shift & 15];
    char *origin = at;
    at = put_decimal(at + (e->origin < 0), (uint32_t)(e->origin < 0 ? -e->origin : e->origin));
    if (e->origin < 0) {
        origin[0] = ' ';
        origin[1] = '-';
    }
    at = put_decimal(at, e->sequence);
    at = put_decimal(at, e->value);
    return e->origin < 0 ? at : put_decimal(at, e->start_ns);
}

void fy_trail_write(const fy_trail *trail, FILE *out)
{
    enum { LINE_BYTES = 128, LOAD_MAX = 1 << 30 };
    for (uint32_t i = 0; i < trail->count; i++) {
        const fy_trail_entry *e = &trail->entries[i];
        char line[LINE_BYTES], *at = put_entry(line, e);
        bool whole = e->load >= 0 && e->load <= LOAD_MAX && e->load == (double)(uint32_t)e->load;
        if (e->origin >= 0 && whole)
            at = put_decimal(at, (uint32_t)e->load);
        else if (e->origin >= 0)
            at += snprintf(at, LINE_BYTES / 4, " %g", e->load);
        *at++ = '\n';
        (void)fwrite(line, 1, (size_t)(at - line), out);
    }
    if (trail->missed > 0)
        fprintf(out, "stat trail_missed %" PRIu64 "\n", trail->missed);
}
