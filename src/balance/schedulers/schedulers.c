#include "balance/schedulers/schedulers.h"

#include <stddef.h>

const ferry_scheduler *const fy_schedulers[] = {
    &fy_scheduler_ferry, /* the default */
    &fy_scheduler_none,  /* nothing moves */
    NULL,
};
