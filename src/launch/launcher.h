/* The launcher as the library finds it. Few processes launch ranks, so the shared library has the
 * launcher in a plug-in, ferry-launch.so. Programs that are linked to the static library have it in
 * them. */
#ifndef FY_LAUNCHER_H
#define FY_LAUNCHER_H

#include "launch/launch.h"

#define FY_LAUNCHER_SYMBOL "fy_launcher_table"

enum { FY_LAUNCHER_VERSION = 2 };

typedef struct fy_launcher {
    uint32_t version;                            /* first: port/plugin.h */
    int (*launch)(const fy_launch_plan *plan);   /* fy_launch */
    int (*threads)(const fy_threads_plan *plan); /* fy_launch_threads */
} fy_launcher;

FY_SHARED extern const fy_launcher fy_launcher_table;

/* Gives the launcher, here or from its plug-in. FERRY_ELAUNCH: the plug-in cannot be opened, and
 * fy_error_text says why. Lends for ever. [main thread] */
int fy_launcher_find(const fy_launcher **out);

#endif
