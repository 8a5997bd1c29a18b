#include "base/relax.h"

#include <sched.h>

void fy_yield(void)
{
    sched_yield();
}
