#include "launch/launcher.h"

#include "launch/job.h"

const fy_launcher fy_launcher_table = {.version = FY_LAUNCHER_VERSION,
                                       .program = fy_job_launch_program,
                                       .launch = fy_job_launch,
                                       .threads = fy_threads_run,
                                       .join = fy_job_join,
                                       .ask = fy_spawn_ask};
