/* For programs that have it in them: those linked to the static library, and the command. */
#include "port/shm/why/why.h"

void fy_why_print(const fy_controls *controls, int fd)
{
    fy_why_table.print(controls, fd);
}
