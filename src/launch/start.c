/* The calls by which the library reaches the launcher. */
#include <ferry/launch.h>

#include <fcntl.h>
#include <unistd.h>

#include "launch/launcher.h"

void fy_streams_reserve(void)
{
    int fd;
    do
        fd = open("/dev/null", O_PATH);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int ferry_launch(const ferry_launch_options *options, char *const argv[])
{
    const fy_launcher *launcher;
    fy_streams_reserve();
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->program(options, argv) : error;
}

int fy_launch(const fy_launch_plan *plan)
{
    const fy_launcher *launcher;
    fy_streams_reserve();
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->launch(plan) : error;
}

int fy_launch_threads(const fy_threads_plan *plan)
{
    const fy_launcher *launcher;
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->threads(plan) : error;
}

int fy_launch_join(const char *folder, fy_segment **segment, int *rank)
{
    const fy_launcher *launcher;
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->join(folder, segment, rank) : error;
}
