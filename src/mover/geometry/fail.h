/* Fail: errors of calls that may have no rank to keep the text in. */
#ifndef FY_MOVER_FAIL_H
#define FY_MOVER_FAIL_H

#include <ferry/mover_region.h>

enum { FY_REGION_TEXT = 320 };

/* Keeps the message for ferry_error_message of `f`, which may be NULL, and returns `error`. */
int fy_mover_fail(ferry *f, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads a program's struct of options (base/sized.h) into `out`, which has the defaults and keeps
 * them when `given` is NULL or cannot be read. */
int fy_mover_read(ferry *f, const char *who, const void *given, void *out, size_t size_bytes);

/* A region as text, in the caller's buffer. */
typedef struct fy_region_text {
    char text[FY_REGION_TEXT];
} fy_region_text;
fy_region_text fy_region_says(const ferry_region *r);

#endif
