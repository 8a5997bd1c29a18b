/* Waits: the part of a rank's report (core/why.h) that says what the rank waits for. Few jobs are
 * asked, so the shared library finds it in the plug-in ferry-why.so; programs that are linked to
 * the static library have it in them. */
#ifndef FY_WHY_WAITS_H
#define FY_WHY_WAITS_H

#include "core/why.h"

#define FY_WHY_TELLER_SYMBOL "fy_why_teller_table"

enum { FY_WHY_TELLER_VERSION = 1 };

typedef struct fy_why_teller {
    uint32_t version; /* first: port/plugin.h */
    void (*waits)(ferry *f, fy_why *why);
} fy_why_teller;

FY_SHARED extern const fy_why_teller fy_why_teller_table;

#endif
