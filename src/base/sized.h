/* Structs that programs built with other headers give and take.
 *
 * The first field of such a struct, `size`, says how long the program's struct is. New fields are
 * only ever appended, and zero means their default. So the library reads an older, shorter struct
 * as if its missing fields were zero. It reads a newer, longer one if all bytes that it does not
 * know are zero. If it fills a struct, it writes no more than `size` bytes. */
#ifndef FY_SIZED_H
#define FY_SIZED_H

#include <stddef.h>

#include "base/shared.h"

/* Copies `given` to `out`, which has `size_bytes` in this library, and sets the size there. `who`
 * begins the error: the call and the struct. FERRY_EINVAL: the size is no size of such a struct, or
 * a byte beyond `size_bytes` is set; fy_error_text says which. */
FY_SHARED int fy_sized_read(const char *who, const void *given, void *out, size_t size_bytes);

/* Copies what fits of `from`, a struct of this library of `size_bytes`, to `out`, whose size field
 * the program has set and which keeps it. Fields that this library lacks become zero. FERRY_EINVAL
 * as above. */
int fy_sized_write(const char *who, void *out, const void *from, size_t size_bytes);

#endif
