/* Report: prints what the operations of all ranks cost, for FERRY_PROFILE. Few jobs ask for it, so
 * the shared library finds it in a plug-in, ferry-report.so; programs that are linked to the static
 * library have it in them. It works on what it is given alone. */
#ifndef FY_REPORT_H
#define FY_REPORT_H

#include <stdio.h>

#include "base/shared.h"
#include "core/profile.h"

#define FY_REPORT_SYMBOL "fy_report_print"

enum { FY_REPORT_VERSION = 2 };

/* What a rank sends to rank 0 for the report. */
typedef struct fy_report {
    int rank;
    fy_profile_row sent[FY_KINDS], handled[FY_KINDS], other[FY_PROFILE_KINDS];
    uint64_t wall_ns, runtime_ns, runtime_cpu_ns, helper_ns;
    uint64_t hops[FY_HOPS_COUNTED];
} fy_report;

/* Where the runtime's own time went, as Tables 7.1 and 7.2 of prema.txt divide it. */
typedef struct fy_report_times {
    uint64_t send, pack, unpack, scheduler, poll, helper, total;
} fy_report_times;

static inline fy_report_times fy_report_divide(const fy_report *r)
{
    fy_report_times c = {.pack = r->other[FY_PROFILE_PACK].ns,
                         .unpack = r->other[FY_PROFILE_UNPACK].ns,
                         .scheduler = r->other[FY_PROFILE_SCHEDULER].ns,
                         .helper = r->helper_ns};
    for (int kind = 0; kind < FY_KINDS; kind++)
        c.send += r->sent[kind].ns;
    uint64_t named = c.send + c.pack + c.unpack + c.scheduler;
    c.poll = r->runtime_ns > named ? r->runtime_ns - named : 0;
    c.total = named + c.poll + c.helper;
    return c;
}

/* What a kind of frame that was sent or handled is called. */
typedef struct fy_report_name {
    const char *layer, *kind;
} fy_report_name;
typedef fy_report_name fy_report_name_fn(uint8_t kind);

/* Prints the reports of `count` ranks. Whether all could be written. */
typedef struct fy_report_printer {
    uint32_t version; /* first: port/plugin.h */
    bool (*print)(FILE *file, const fy_report *reports, int count, fy_report_name_fn *name);
} fy_report_printer;

FY_SHARED extern const fy_report_printer fy_report_print;

/* Gives the printer, here or from its plug-in. FERRY_ELAUNCH: that cannot be opened, and
 * fy_error_text says why. Lends for ever. [application thread] */
int fy_report_find(const fy_report_printer **out);

#endif
