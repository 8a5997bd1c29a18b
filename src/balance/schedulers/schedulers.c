#include "balance/schedulers/schedulers.h"

#include <stddef.h>

const ferry_scheduler *const fy_schedulers[] = {
    &fy_scheduler_ferry, &fy_scheduler_stealing, &fy_scheduler_diffusion, &fy_scheduler_none, NULL,
};
