#include "log.h"

#include <stdarg.h>
#include <stdio.h>

int mesh_fail(mesh_log *log, const char *format, ...)
{
    if (log != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(log->error, sizeof log->error, format, args);
        va_end(args);
    }
    return -1;
}

void mesh_note(mesh_log *log, const char *format, ...)
{
    char line[MESH_ERROR_MAX];
    if (log == NULL || log->note == NULL) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->note(log->arg, line);
}

int mesh_fail_memory(mesh_log *log)
{
    return mesh_fail(log, "out of memory");
}
