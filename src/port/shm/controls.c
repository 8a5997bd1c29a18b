/* Maps the control blocks of a job, for the launcher and for a program that asks from outside. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "port/shm/layout.h"

int fy_controls_map(int fd, fy_controls *out)
{
    fy_segment s = {0};
    int error = fy_segment_read(fd, &s);
    if (error != 0)
        return error;
    void *base = mmap(NULL, controls_bytes(s.ranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return fy_error_set(FERRY_ESYSTEM, "mapping the job's control blocks: %s", strerror(errno));
    *out = (fy_controls){.base = base, .ranks = s.ranks, .starting = s.starting};
    return 0;
}

void fy_controls_unmap(fy_controls *controls)
{
    munmap(controls->base, controls_bytes(controls->ranks));
}
