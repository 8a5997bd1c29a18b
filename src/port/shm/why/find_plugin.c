/* For the shared library. */
#include <stdio.h>

#include "base/error.h"
#include "port/plugin.h"
#include "port/shm/why/why.h"

void fy_why_print(const fy_controls *controls, int fd)
{
    const void *table;
    if (fy_plugin_open("why", FY_WHY_SYMBOL, FY_WHY_VERSION, false, &table) == 0)
        ((const fy_why_printer *)table)->print(controls, fd);
    else
        (void)dprintf(fd, "ferry: what the ranks do cannot be printed: %s\n", fy_error_text());
}
