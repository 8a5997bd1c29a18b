#include "base/shared.h"
#include "port/nodes/loopback/loopback.h"

FY_SHARED const fy_port_entry fy_port_table = {.version = FY_PORT_VERSION,
                                               .tells_crashes = true,
                                               .ranks_max = FY_LOOPBACK_RANKS_MAX,
                                               .run = fy_loopback_run};
