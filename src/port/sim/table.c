#include "base/error.h"
#include "port/sim/sim.h"

/* The rings of a simulation may have any size. Those of a program have the sizes that port shm
 * takes, so that it runs there too. 0: the default. */
static int check_ring(const char *field, const char *variable, uint32_t size, uint32_t min,
                      uint32_t max)
{
    if (size == 0 || ((size & (size - 1)) == 0 && size >= min && size <= max))
        return 0;
    return fy_error_set(FERRY_EINVAL, "%s %u (%s): must be a power of two, %u to %u", field, size,
                        variable, min, max);
}

static int sim_run(const fy_port_settings *settings, fy_port_main *rank_main, void *arg)
{
    fy_sim_options options = {.heap_bytes = settings->heap_bytes,
                              .ring_slots = settings->ring_slots,
                              .ring_bytes = settings->ring_bytes};
    int error = check_ring("ring_slots", "FERRY_RING_SLOTS", settings->ring_slots, 2, 65536);
    if (error == 0)
        error = check_ring("ring_bytes", "FERRY_RING_BYTES", settings->ring_bytes, 1024, 64 << 20);
    if (error == 0)
        error = fy_sim_options_read(&options);
    return error != 0 ? error : fy_sim_run(&options, rank_main, arg);
}

const fy_port_entry fy_port_table = {
    .version = FY_PORT_VERSION, .tells_crashes = true, .run = sim_run};
