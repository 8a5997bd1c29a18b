#include "base/error.h"
#include "port/sim/sim.h"

static int sim_run(const fy_port_settings *settings, fy_port_main *rank_main, void *arg)
{
    fy_sim_options options = {.heap_bytes = settings->heap_bytes,
                              .ring_slots = settings->ring_slots,
                              .ring_bytes = settings->ring_bytes};
    int error = fy_sim_options_read(&options);
    return error != 0 ? error : fy_sim_run(&options, rank_main, arg);
}

const fy_port_entry fy_port_table = {
    .version = FY_PORT_VERSION, .tells_crashes = true, .run = sim_run};
