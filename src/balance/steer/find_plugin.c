/* For the shared library: few jobs set FERRY_STEER. */
#include "balance/steer/steer.h"
#include "port/plugin.h"

int fy_steer_find(const fy_bundle **out)
{
    const void *table;
    int error = fy_plugin_open("steer", "fy_bundle_steer", FY_BUNDLE_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
