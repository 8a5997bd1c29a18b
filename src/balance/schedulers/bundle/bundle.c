#include "balance/schedulers/bundle/bundle.h"

const fy_bundle fy_bundle_schedulers = {
    .version = FY_BUNDLE_VERSION,
    .schedulers =
        {
            &fy_scheduler_stealing,         /* idle ranks ask one by one */
            &fy_scheduler_diffusion,        /* idle ranks ask a neighbourhood */
            &fy_scheduler_diffusion_sender, /* busy ranks ask a neighbourhood */
            &fy_scheduler_gradient,         /* word of idle ranks spreads */
            &fy_scheduler_multilist,        /* priorities of objects and ranks */
            &fy_scheduler_master,           /* work is collected and handed out */
            &fy_scheduler_none,             /* nothing moves */
            &fy_scheduler_rotate,           /* everything moves, to test programs */
            &fy_scheduler_inplace,          /* everything is packed and unpacked, to test them */
        },
};
