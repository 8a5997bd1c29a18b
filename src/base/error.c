#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include <ferry/error.h>

/* With that of alloc.c, the only writable data of the library that is not in a handle: calls
 * without a handle have no other place for their reason. */
static _Thread_local char error_text[512];

int fy_error_set(int error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error_text, sizeof(error_text), format, list);
    va_end(list);
    return error;
}

const char *fy_error_text(void)
{
    return error_text;
}

const char *ferry_strerror(int error)
{
    switch (error) {
    case FERRY_OK:
        return "FERRY_OK";
    case FERRY_EINVAL:
        return "FERRY_EINVAL";
    case FERRY_ENOMEM:
        return "FERRY_ENOMEM";
    case FERRY_EAGAIN:
        return "FERRY_EAGAIN";
    case FERRY_ESTATE:
        return "FERRY_ESTATE";
    case FERRY_ENOTSUP:
        return "FERRY_ENOTSUP";
    case FERRY_ESYSTEM:
        return "FERRY_ESYSTEM";
    case FERRY_ENOENT:
        return "FERRY_ENOENT";
    case FERRY_ERANGE:
        return "FERRY_ERANGE";
    case FERRY_ECANCELED:
        return "FERRY_ECANCELED";
    case FERRY_ETIMEDOUT:
        return "FERRY_ETIMEDOUT";
    case FERRY_ETOOLONG:
        return "FERRY_ETOOLONG";
    case FERRY_EPEER:
        return "FERRY_EPEER";
    case FERRY_ELAUNCH:
        return "FERRY_ELAUNCH";
    case FERRY_ELOST:
        return "FERRY_ELOST";
    default:
        return "FERRY_E(?)";
    }
}
