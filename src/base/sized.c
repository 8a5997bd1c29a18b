#include "base/sized.h"

#include <string.h>

#include <ferry/error.h>

#include "base/error.h"

/* No struct will ever be longer: a larger size is memory that nobody initialised. */
enum { SIZE_MAX_BYTES = 4096 };

static int read_size(const char *who, const void *given, size_t size_bytes, size_t *size)
{
    if (given == NULL)
        return fy_error_set(FERRY_EINVAL, "%s: it is NULL", who);
    memcpy(size, given, sizeof *size);
    if (*size > sizeof *size && *size <= SIZE_MAX_BYTES)
        return 0;
    return fy_error_set(FERRY_EINVAL,
                        "%s: its size is %zu, expected %zu (initialise it with FERRY_..._DEFAULTS)",
                        who, *size, size_bytes);
}

int fy_sized_read(const char *who, const void *given, void *out, size_t size_bytes)
{
    size_t size;
    int error = read_size(who, given, size_bytes, &size);
    if (error != 0)
        return error;
    for (size_t i = size_bytes; i < size; i++)
        if (((const char *)given)[i] != 0)
            return fy_error_set(FERRY_EINVAL,
                                "%s: byte %zu is set, and this version of Ferry knows %zu bytes",
                                who, i, size_bytes);
    size_t known = size < size_bytes ? size : size_bytes;
    memcpy(out, given, known);
    memset((char *)out + known, 0, size_bytes - known);
    memcpy(out, &size_bytes, sizeof size_bytes);
    return 0;
}

int fy_sized_write(const char *who, void *out, const void *from, size_t size_bytes)
{
    size_t size;
    int error = read_size(who, out, size_bytes, &size);
    if (error != 0)
        return error;
    size_t known = size < size_bytes ? size : size_bytes;
    memcpy(out, from, known);
    memset((char *)out + known, 0, size - known);
    memcpy(out, &size, sizeof size);
    return 0;
}
