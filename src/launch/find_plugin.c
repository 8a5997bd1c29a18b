/* For the shared library. */
#include "launch/launcher.h"
#include "port/plugin.h"

int fy_launcher_find(const fy_launcher **out)
{
    const void *table;
    int error = fy_plugin_open("launch", FY_LAUNCHER_SYMBOL, FY_LAUNCHER_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
