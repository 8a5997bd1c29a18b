#include "port/sim/sim.h"

const fy_sim_table fy_sim_functions = {FY_PORT_VERSION, fy_sim_options_read, fy_sim_run};
