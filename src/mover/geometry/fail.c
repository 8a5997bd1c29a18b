#include "mover/geometry/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/sized.h"
#include "core/fail.h"

int fy_mover_fail(ferry *f, int error, const char *format, ...)
{
    char text[480];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return f == NULL ? fy_error_set(error, "%s", text) : fy_fail(f, error, "%s", text);
}

int fy_mover_given(const char *call, const fy_given *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].pointer == NULL)
            return fy_mover_fail(NULL, FERRY_EINVAL, "%s: %s is NULL", call, list[i].name);
    return 0;
}

int fy_mover_no_memory(ferry *f, int error, const char *call)
{
    return error == FERRY_ENOMEM ? fy_mover_fail(f, error, "%s: no memory", call) : error;
}

int fy_mover_read(ferry *f, const char *who, const void *given, void *out, size_t size_bytes)
{
    int error = given == NULL ? 0 : fy_sized_read(who, given, out, size_bytes);
    return error == 0 || f == NULL ? error : fy_fail(f, error, "%s", fy_error_text());
}

fy_region_text fy_region_show(const ferry_region *r)
{
    fy_region_text says;
    ferry_region_format(*r, says.text, sizeof says.text);
    return says;
}
