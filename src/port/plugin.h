/* Plugin: parts in files of their own, ferry-NAME.so, that only some programs need, or that stand
 * on libraries which are not everywhere: ports, schedulers to compare with, and HDF5 for movers.
 *
 * They are looked for in the folders of FERRY_PLUGIN_PATH, then beside the library or program that
 * this code is in, as it is built and as it is installed. A plug-in exports a table that begins
 * with its version, a uint32_t. */
#ifndef FY_PLUGIN_H
#define FY_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shared.h"

/* Opens the plug-in `name` and gives its table `symbol`, which has to be of `version`. `global`:
 * others can see the libraries that it is linked to. On failure FERRY_ENOTSUP, and fy_error_text
 * says what was missing. Lends forever. */
FY_SHARED int fy_plugin_open(const char *name, const char *symbol, uint32_t version, bool global,
                             const void **out);

/* Writes the path of the plug-in `name`, whether or not it can be opened. */
bool fy_plugin_locate(const char *name, char *path, size_t size);

#endif
