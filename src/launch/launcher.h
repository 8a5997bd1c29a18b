/* The launcher as the library finds it. Few processes launch ranks, join a job or ask for more
 * ranks, so for the shared library all this is in a plug-in, ferry-launch.so. The static library
 * contains it. */
#ifndef FY_LAUNCHER_H
#define FY_LAUNCHER_H

#include <ferry/launch.h>

#include "launch/launch.h"

#define FY_LAUNCHER_SYMBOL "fy_launcher_table"

enum { FY_LAUNCHER_VERSION = 4 };

/* ferry_launch, fy_launch, fy_launch_threads, fy_launch_join, fy_spawn_ask. */
typedef struct fy_launcher {
    uint32_t version; /* first: port/plugin.h */
    int (*program)(const ferry_launch_options *options, char *const argv[]);
    int (*launch)(const fy_launch_plan *plan);
    int (*threads)(const fy_threads_plan *plan);
    int (*join)(const char *folder, fy_segment **segment, int *rank);
    fy_spawner *ask;
} fy_launcher;

FY_SHARED extern const fy_launcher fy_launcher_table;

/* Gives the launcher: the one in this library, or that of the plug-in. FERRY_ELAUNCH: the plug-in
 * cannot be opened, and fy_error_text says why. Lends forever. [main thread] */
int fy_launcher_find(const fy_launcher **out);

#endif
