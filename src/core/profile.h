/* Profile: what each operation of a rank cost, for the report of FERRY_PROFILE (profile.c).
 *
 * Stretches nest: the time that is counted for an inner stretch is not counted for the outer one.
 * Application thread only. */
#ifndef FY_PROFILE_H
#define FY_PROFILE_H

#include "core/layer.h"
#include "core/profile_row.h"

/* The part of a wait that is not counted as awaiting yet. */
typedef struct fy_idle {
    uint64_t from_ns, to_ns;
} fy_idle;

/* How many of the last waits are kept; a power of 2. */
enum { FY_IDLES_KEPT = 1024 };

typedef struct fy_profile {
    uint64_t opened_ns;
    uint64_t nested_ns; /* already counted for stretches inside the present one */
    fy_idle idles[FY_IDLES_KEPT];
    uint32_t idle_count; /* waits so far */
    fy_profile_row sent[FY_KINDS], handled[FY_KINDS], other[FY_PROFILE_KINDS];
    uint64_t hops[FY_HOPS_COUNTED];
    fy_kind_fn *kinds[FY_KINDS]; /* the layers' functions: the counting function calls them. Frames
                                    of the control lane go to them directly */
    const struct fy_report_printer *printer;
    const char *path; /* where to write; NULL: standard error */
    bool wanted;      /* FERRY_PROFILE is set: report at the end. Else FERRY_TRACE alone counts */
} fy_profile;

/* A stretch of time that is being counted. */
typedef struct fy_stretch {
    uint64_t start_ns, outer_nested_ns;
} fy_stretch;

/* Starts counting, if the environment has FERRY_PROFILE or FERRY_TRACE. FERRY_ENOMEM. */
int fy_profile_init(ferry *f);
void fy_profile_fini(ferry *f);

fy_stretch fy_profile_begin(ferry *f);
void fy_profile_end(ferry *f, const fy_stretch *stretch, fy_profile_row *row, uint64_t bytes);

/* Counts `ns` of the present stretch for `kind` instead of for the stretch. */
void fy_profile_count(ferry *f, fy_profile_kind kind, uint64_t ns);

/* Counts the time since `stretch` began as idle. */
void fy_profile_waited(ferry *f, const fy_stretch *stretch);

/* An object has arrived that left another rank at `left_ns`. Counts this rank's waits since then as
 * awaiting, except the parts that were counted for an earlier object. So "awaiting" is the time in
 * which this rank had no work and at least one object was in flight to it. Each moment counts once.
 * The figure is exact if the ranks' clocks agree, and if the rank waited at most FY_IDLES_KEPT
 * times since `left_ns`; earlier waits are missing. An object that never arrives, because its rank
 * has died, was not awaited. */
void fy_profile_awaited(ferry *f, uint64_t left_ns);

/* Counts the time since fy_profile_begin, and `bytes`, for `kind`. */
void fy_profile_copied(ferry *f, const fy_stretch *stretch, fy_profile_kind kind, uint64_t bytes);

#endif
