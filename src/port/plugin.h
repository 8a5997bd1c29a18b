/* Plugin: parts of ports in files of their own, ferry-port-NAME.so, that only some programs need.
 *
 * They are looked for in the folders of FERRY_PORT_PATH, then beside the library or program that
 * this code is in, as it is built and as it is installed. What a plug-in exports is a table that
 * begins with FY_PORT_VERSION, a uint32_t. */
#ifndef FY_PLUGIN_H
#define FY_PLUGIN_H

#include "port/port.h"

/* Opens the plug-in `name` and gives its table `symbol`. `global`: what it is linked to can be seen
 * by others. On failure FERRY_ELAUNCH, and fy_error_text says what was missing. Lends for ever. */
int fy_plugin_open(const char *name, const char *symbol, bool global, const void **out);

/* Writes the path of the plug-in `name`, whether or not it can be opened. */
bool fy_plugin_locate(const char *name, char *path, size_t size);

#endif
