#include "balance/schedulers/bundle/bundle.h"

const fy_bundle fy_bundle_schedulers = {
    .version = FY_BUNDLE_VERSION,
    .schedulers =
        {
            &fy_scheduler_stealing,         /* idle ranks ask one by one */
            &fy_scheduler_diffusion,        /* idle ranks ask a neighbourhood */
            &fy_scheduler_diffusion_sender, /* busy ranks ask a neighbourhood */
            &fy_scheduler_gradient,         /* idle ranks make themselves known from rank to rank */
            &fy_scheduler_multilist,        /* an object has a priority for each rank */
            &fy_scheduler_master,           /* work is collected and handed out */
            &fy_scheduler_none,             /* nothing moves */
            &fy_scheduler_rotate,           /* moves every object, to test programs */
            &fy_scheduler_inplace,          /* packs and unpacks every object, to test programs */
        },
};
