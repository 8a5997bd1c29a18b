/* Report: prints what the operations of all ranks cost, for FERRY_PROFILE, and what one rank did,
 * for FERRY_TRACE. Few jobs ask for it, so the shared library finds it in a plug-in,
 * ferry-report.so; programs that are linked to the static library have it in them. */
#ifndef FY_REPORT_H
#define FY_REPORT_H

#include <stdio.h>

#include <ferry/trace.h>

#include "base/shared.h"
#include "core/head.h"
#include "core/layer.h"
#include "core/profile_row.h"

#define FY_REPORT_SYMBOL "fy_report_printer_table"

enum { FY_REPORT_VERSION = 6 };

/* The account that a rank sends to rank 0 for the report. */
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

/* The name of a kind of frame that was sent or handled. */
typedef struct fy_report_name {
    const char *layer, *kind;
} fy_report_name;
typedef fy_report_name fy_report_name_fn(uint8_t kind);

/* The trace of a rank, but for the lines of the layers. */
typedef struct fy_report_trace {
    const fy_report *own;
    const ferry_stats *stats;
    const char *port;
    int rank, ranks;
    uint64_t opened_ns, closed_ns;
    char (*handlers)[FY_HANDLER_NAME_BYTES]; /* names, from index 1 on */
    uint32_t handler_count;
    const ferry_interval *intervals; /* the last one only says where the one before it ends */
    size_t interval_count;
} fy_report_trace;

/* The cost of an object for this rank (object/costs.c): a slot of a table. */
typedef struct fy_cost {
    uint64_t object;
    uint64_t handler_ns;         /* wall time of its handlers */
    uint64_t message_ns;         /* delivery and forwarding of messages to it */
    uint64_t pack_ns, unpack_ns; /* of its moves, on either thread */
    uint64_t transit_ns;         /* between its leaving elsewhere and its installation here */
    uint32_t handled, forwarded; /* messages */
    uint32_t in, out;            /* moves */
    const char *type; /* its name, since the object may be gone later; NULL: never here */
} fy_cost;

/* An entry of the trail of objects: a handler that has run, a message that was sent, or an object
 * that was created (object/trail.c). */
typedef struct fy_trail_entry {
    uint64_t object;
    uint64_t value;    /* ns that the handler took; bytes that were sent */
    uint64_t start_ns; /* of a handler */
    double load;       /* of a handler, as the scheduler was told; 0: it was not asked */
    uint32_t sequence; /* of the message, among those from its origin to the object; trail.c */
    int32_t origin;    /* of a message that was handled; negative: it was sent here, trail.c */
    uint32_t handler;  /* its number */
} fy_trail_entry;

/* open: checks the file of FERRY_PROFILE and makes the folder of FERRY_TRACE; NULL for none.
 * FERRY_ESYSTEM. profile: as ferry_profile_write, of a rank that counts. trace: writes the trace
 * file of a record that has ended. FERRY_ESYSTEM. account and trail: write lines of a trace file,
 * among those of the layers.
 */
typedef struct fy_report_printer {
    uint32_t version; /* first: port/plugin.h */
    int (*open)(ferry *f, const char *path, const char *folder);
    int (*profile)(ferry *f, const char *path);
    int (*trace)(ferry *f);
    void (*account)(FILE *file, const fy_cost *cost);
    void (*trail)(FILE *file, const fy_trail_entry *entries, uint32_t count, uint64_t missed);
} fy_report_printer;

/* Prints the reports of `count` ranks, as `f` has got them. Returns whether all could be written.
 */
bool fy_report_print(FILE *file, const ferry *f, const fy_report *reports, int count,
                     fy_report_name_fn *name);

/* The parts of a trace file, in this order: head, then accounts and trail among those of the
 * layers, then tail. */
void fy_report_head(FILE *file, const fy_report_trace *trace);
void fy_report_account(FILE *file, const fy_cost *cost);
void fy_report_trail(FILE *file, const fy_trail_entry *entries, uint32_t count, uint64_t missed);
void fy_report_tail(FILE *file, const fy_report_trace *trace);

FY_SHARED extern const fy_report_printer fy_report_printer_table;

/* Gives the printer, here or from its plug-in. FERRY_ELAUNCH: that cannot be opened, and
 * fy_error_text says why. Lends forever. [application thread] */
int fy_report_find(const fy_report_printer **out);

#endif
