/* For programs that are linked to the static library, which contains steering. */
#include "balance/steer/steer.h"

int fy_steer_find(const fy_bundle **out)
{
    *out = &fy_bundle_steer;
    return 0;
}
