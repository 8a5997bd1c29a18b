/* For the shared library: few jobs run another scheduler than the default. */
#include "balance/schedulers/bundle/bundle.h"
#include "port/plugin.h"

int fy_bundle_find(const fy_bundle **out)
{
    const void *table;
    int error = fy_plugin_open("schedulers", FY_BUNDLE_SYMBOL, FY_BUNDLE_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
