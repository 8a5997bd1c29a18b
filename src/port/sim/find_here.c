/* For programs that have the simulator in them: those linked to the static library. */
#include "port/sim/sim.h"

int fy_sim_find(const fy_sim_table **out)
{
    *out = &fy_sim_functions;
    return 0;
}
