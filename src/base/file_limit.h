/* File limit: writes beyond the limit of file sizes (RLIMIT_FSIZE) fail with EFBIG. The system also
 * sends the thread SIGXFSZ, which would end the process. The error says enough. So the signal is
 * held back around a write, and dropped if the write has failed in this way. */
#ifndef FY_FILE_LIMIT_H
#define FY_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>

/* Before the write. Sets `*before` for fy_file_limit_release. */
void fy_file_limit_hold(sigset_t *before);

/* After the write, which has failed or not. errno stays as it is. */
void fy_file_limit_release(const sigset_t *before, bool failed);

#endif
