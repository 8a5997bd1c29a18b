/* For programs that have the bundle in them: those linked to the static library. */
#include "balance/schedulers/bundle/bundle.h"

int fy_bundle_find(const fy_bundle **out)
{
    *out = &fy_bundle_schedulers;
    return 0;
}
