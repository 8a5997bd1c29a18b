/* For programs that have it in them: those linked to the static library. */
#include "core/why/waits.h"

void fy_why_waits(ferry *f, fy_why *why)
{
    fy_why_teller_table.waits(f, why);
}
