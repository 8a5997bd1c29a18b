/* Foreign: parts of Ferry that users write, in shared objects: schedulers and directory protocols.
 *
 * A shared object may be linked with the shared library, or find its functions in the program. The
 * functions that it calls work on their arguments alone, so two copies of them do no harm. */
#ifndef FY_FOREIGN_H
#define FY_FOREIGN_H

#include <ferry/core.h>

/* Opens the shared object at `path`, and gives the symbol that it defines as `symbol`. `what` names
 * its type in errors. `*handle` is for fy_foreign_close. FERRY_EINVAL: it cannot be opened, or does
 * not define the symbol. [application thread] */
int fy_foreign_open(ferry *f, const char *what, const char *path, const char *symbol, void **handle,
                    const void **out);

/* NULL is allowed. */
void fy_foreign_close(void *handle);

#endif
