#include "core/options.h"

#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"

#define DEFAULT_SCHEDULER "ferry"

/* Zero stays zero: the port has the defaults. */
static int read_numbers(ferry_options *o)
{
    int error = fy_env_check();
    if (error != 0)
        return error;
    o->heap_bytes = (size_t)fy_env_number_or("FERRY_HEAP_BYTES", o->heap_bytes);
    o->ring_slots = (uint32_t)fy_env_number_or("FERRY_RING_SLOTS", o->ring_slots);
    o->ring_bytes = (uint32_t)fy_env_number_or("FERRY_RING_BYTES", o->ring_bytes);
    o->backlog_bytes = (size_t)fy_env_number_or("FERRY_BACKLOG_BYTES", o->backlog_bytes);
    o->waiting_bytes = (size_t)fy_env_number_or("FERRY_WAITING_BYTES", o->waiting_bytes);
    uint64_t stall_s = fy_env_number_or("FERRY_STALL_S", 0);
    if (stall_s != 0)
        o->stall_ns = stall_s * 1000000000u;
    /* Here, since a rank may find its rings made, and its port may have none. */
    return fy_env_check_rings(o->ring_slots, o->ring_bytes);
}

int fy_options_read(const ferry_options *given, ferry_options *out)
{
    *out = (ferry_options)FERRY_OPTIONS_DEFAULTS;
    if (given != NULL) {
        int error = fy_sized_read("open: ferry_options", given, out, sizeof *out);
        if (error != 0)
            return error;
    }
    const char *scheduler = fy_env_get("FERRY_SCHEDULER");
    if (scheduler != NULL)
        out->scheduler = scheduler;
    if (out->scheduler == NULL)
        out->scheduler = DEFAULT_SCHEDULER;
    return read_numbers(out);
}
