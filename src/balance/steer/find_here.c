/* For programs that are linked to the static library, which contains steering. */
#include "balance/steer/steer.h"

int fy_steer_find(const fy_steer **out)
{
    *out = &fy_steering;
    return 0;
}
