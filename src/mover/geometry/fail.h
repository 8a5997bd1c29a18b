/* Fail: errors of calls that may have no rank. Then the text is kept for the thread. */
#ifndef FY_MOVER_FAIL_H
#define FY_MOVER_FAIL_H

#include <ferry/mover_region.h>

enum { FY_REGION_TEXT = 320 };

/* Sets the text that ferry_error_message(f) returns; `f` may be NULL. Returns `error`. */
int fy_mover_fail(ferry *f, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A pointer that a call was given, and its name there. */
typedef struct fy_given {
    const char *name;
    const void *pointer;
} fy_given;

/* Whether none of `count` arguments of a `call` is NULL. FERRY_EINVAL: the text names one that is.
 */
int fy_mover_given(const char *call, const fy_given *list, size_t count);

/* If `error` is FERRY_ENOMEM, sets the text to that of a `call` without memory. Returns `error`. */
int fy_mover_no_memory(ferry *f, int error, const char *call);

/* Reads a program's struct of options (base/sized.h) into `out`. `out` has the defaults before; it
 * keeps them if `given` is NULL or wrong. */
int fy_mover_read(ferry *f, const char *who, const void *given, void *out, size_t size_bytes);

/* A region as text, returned by value. */
typedef struct fy_region_text {
    char text[FY_REGION_TEXT];
} fy_region_text;
fy_region_text fy_region_show(const ferry_region *r);

#endif
