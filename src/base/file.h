/* Files that are written by a name the user gave. */
#ifndef FY_FILE_H
#define FY_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/shared.h"

/* Opens `path` for writing from its start, or at its end, and makes it if it is missing. A symbolic
 * link of another user is not followed: in a folder that somebody else may write to, it could lead
 * to any file of this user's. NULL: fy_file_why says why. fclose ends it. */
FY_SHARED FILE *fy_file_create(const char *path, bool append);

/* The meaning of errno after fy_file_create or after writing. */
FY_SHARED const char *fy_file_why(void);

#endif
