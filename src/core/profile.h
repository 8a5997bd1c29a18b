/* Profile: what each operation of a rank cost, for the report of FERRY_PROFILE (profile.c).
 *
 * Stretches nest: what is counted for one is not counted for those around it. Application thread
 * only. */
#ifndef FY_PROFILE_H
#define FY_PROFILE_H

#include "core/core.h"
#include "core/profile_row.h"

/* A wait, as far as it is not counted as awaiting. */
typedef struct fy_idle {
    uint64_t from_ns, to_ns;
} fy_idle;

/* The last waits; a power of 2. */
enum { FY_IDLES_KEPT = 1024 };

typedef struct fy_profile {
    uint64_t opened_ns;
    uint64_t nested_ns; /* counted within the present stretch */
    fy_idle idles[FY_IDLES_KEPT];
    uint32_t idle_count; /* waits so far */
    fy_profile_row sent[FY_KINDS], handled[FY_KINDS], other[FY_PROFILE_KINDS];
    uint64_t hops[FY_HOPS_COUNTED];
    fy_kind_fn *kinds[FY_KINDS]; /* what is called through the counting function, and, on the
                                    control lane, without it */
    const struct fy_report_printer *printer;
    const char *path; /* where to write; NULL: standard error */
    bool wanted;      /* a report at the end; else FERRY_TRACE alone counts */
} fy_profile;

/* A stretch of time that is being counted. */
typedef struct fy_stretch {
    uint64_t start_ns, outer_nested_ns;
} fy_stretch;

/* Starts counting when the environment asks for it. FERRY_ENOMEM. */
int fy_profile_init(ferry *f);
void fy_profile_fini(ferry *f);

fy_stretch fy_profile_begin(ferry *f);
void fy_profile_end(ferry *f, const fy_stretch *stretch, fy_profile_row *row, uint64_t bytes);

/* Counts `ns` of the present stretch for `kind`, not for the stretch. */
void fy_profile_count(ferry *f, fy_profile_kind kind, uint64_t ns);

/* The rank has waited, since `start_ns`. */
void fy_profile_waited(ferry *f, const fy_stretch *stretch);

/* An object has come that left another rank at `left_ns`. The waits since then were for it, as far
 * as they were not for one that came before. So "awaiting" is the time in which this rank had no
 * work and at least one object that then came was in flight; each moment counts once. The figure is
 * exact if the ranks' clocks agree, and if there are at most FY_IDLES_KEPT waits between leaving
 * and coming. Earlier waits are missing. An object that never came, because its rank died, was not
 * awaited. */
void fy_profile_awaited(ferry *f, uint64_t left_ns);

struct fy_report;
/* Fills in the report of this rank. */
void fy_profile_fill(ferry *f, struct fy_report *out);

/* Counts what the caller has done since fy_profile_begin for `kind`. */
void fy_profile_copied(ferry *f, const fy_stretch *stretch, fy_profile_kind kind, uint64_t bytes);

#endif
