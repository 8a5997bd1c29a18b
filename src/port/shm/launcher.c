#include "port/shm/launcher.h"

#include "port/shm/job.h"

const fy_launcher fy_launcher_table = {.version = FY_LAUNCHER_VERSION, .launch = fy_job_launch};
