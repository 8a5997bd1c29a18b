/* For the shared library. */
#include "base/error.h"
#include "core/why/waits.h"
#include "port/plugin.h"

void fy_why_waits(ferry *f, fy_why *why)
{
    const void *table;
    if (fy_plugin_open("why", FY_WHY_TELLER_SYMBOL, FY_WHY_TELLER_VERSION, false, &table) == 0)
        ((const fy_why_teller *)table)->waits(f, why);
    else
        fy_why_line(why, "what it waits for cannot be told: %s", fy_error_text());
}
