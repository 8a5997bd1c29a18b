#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };

void fy_log_vline(int rank, const char *format, va_list arguments)
{
    char line[LINE_BYTES];
    int head = rank < 0 ? snprintf(line, sizeof line, "ferry: ")
                        : snprintf(line, sizeof line, "ferry: rank %d: ", rank);
    /* One byte is kept for the end of the line. */
    int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, arguments);
    size_t used = body < 0 ? (size_t)head : strlen(line);
    line[used++] = '\n';
    /* One write, so that lines of several ranks do not mix. A log that cannot be written has nobody
     * left to tell. */
    int saved = errno;
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
    errno = saved;
}

void fy_log_line(int rank, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fy_log_vline(rank, format, arguments);
    va_end(arguments);
}
