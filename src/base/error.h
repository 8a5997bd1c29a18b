/* Why the last call on this thread failed, for calls that have no rank to keep it in. */
#ifndef FY_ERROR_H
#define FY_ERROR_H

#include "base/shared.h"

/* Keeps the text and returns `error`. */
FY_SHARED int fy_error_set(int error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Lends until the next fy_error_set on this thread; "" when there was none. */
FY_SHARED const char *fy_error_text(void);

#endif
