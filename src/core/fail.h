/* Fail: the error texts of calls, and lines of the log. */
#ifndef FY_FAIL_H
#define FY_FAIL_H

#include <ferry/core.h>

#include "base/shared.h"
#include "port/port.h"

/* Keeps the message of a failing call and returns `error`. */
FY_SHARED int fy_fail(ferry *f, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As fy_sized_read; sets the error text of the rank. */
FY_SHARED int fy_read_sized(ferry *f, const char *who, const void *given, void *out,
                            size_t size_bytes);
/* As fy_sized_write; sets the error text of the rank. */
FY_SHARED int fy_write_sized(ferry *f, const char *who, void *out, const void *from,
                             size_t size_bytes);
/* A line on standard error that begins with the rank. */
FY_SHARED void fy_log(const ferry *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Logs that a frame, meant as `what`, is malformed and dropped; the first few of a rank only. From
 * then on quiescences and collectives fail (loss.h). [either thread] */
FY_SHARED void fy_bad_frame(ferry *f, int source, const fy_frame *frame, const char *what);

#endif
