/* The options of a rank. */
#ifndef FY_OPTIONS_H
#define FY_OPTIONS_H

#include <ferry/core.h>

/* The caller's, or NULL, what the environment says over them, and defaults. FERRY_EINVAL with
 * fy_error_set. */
int fy_options_read(const ferry_options *given, ferry_options *out);

#endif
