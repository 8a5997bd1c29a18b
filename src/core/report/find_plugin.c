/* For the shared library: few jobs want a report. */
#include "core/report/report.h"
#include "port/plugin.h"

int fy_report_find(const fy_report_printer **out)
{
    const void *table;
    int error = fy_plugin_open("report", FY_REPORT_SYMBOL, FY_REPORT_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
