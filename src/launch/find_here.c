/* For programs that have the launcher in them: those linked to the static library. */
#include "launch/launcher.h"

int fy_launcher_find(const fy_launcher **out)
{
    *out = &fy_launcher_table;
    return 0;
}
