/* Log: lines on standard error, each written whole. */
#ifndef FY_LOG_H
#define FY_LOG_H

#include <stdarg.h>

#include "base/shared.h"

/* Writes "ferry: rank R: TEXT" as one line; without the rank when it is negative. Cut at about 500
 * bytes. [any thread] */
FY_SHARED void fy_log_line(int rank, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fy_log_vline(int rank, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

#endif
