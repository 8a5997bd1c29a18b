/* Check at: a rank of a test program ends the job, and says where, when a condition does not hold.
 */
#ifndef FY_TEST_CHECK_AT_H
#define FY_TEST_CHECK_AT_H

#include "check.h"

#define CHECK(f, condition) ((condition) ? (void)0 : check_at(f, #condition, __FILE__, __LINE__))

static inline void check_at(ferry *f, const char *text, const char *file, int line)
{
    char place[400];
    (void)snprintf(place, sizeof(place), "%s:%d: %s", file, line, text);
    check(f, false, place);
}

#endif
