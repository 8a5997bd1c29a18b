/* For the shared library: few jobs set FERRY_STEER. */
#include "balance/steer/steer.h"
#include "port/plugin.h"

int fy_steer_find(const fy_steer **out)
{
    const void *table;
    int error = fy_plugin_open("steer", FY_STEER_SYMBOL, FY_STEER_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
