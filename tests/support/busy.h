/* Busy: a test says what it leaves out because the machine is too busy. With TESTS_WHOLE=1, as
 * make soak runs tests, it fails instead. */
#ifndef FY_TEST_BUSY_H
#define FY_TEST_BUSY_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 1, 2))) static inline void left_out(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("SKIPPED: the machine is busy: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    if (getenv("TESTS_WHOLE") != NULL)
        exit(EXIT_FAILURE);
}

#endif
