/* Bundle: all schedulers but the default. Seven are there for comparison: six from the literature,
 * and `none`. Two test programs: `rotate` and `inplace`.
 *
 * Most jobs need the default alone. So the shared library finds these in a plug-in,
 * ferry-schedulers.so, when a job asks for one. The static library contains them. They use what
 * include/ferry/scheduler.h offers to any scheduler, and nothing else of the rank. */
#ifndef FY_BUNDLE_H
#define FY_BUNDLE_H

#include <ferry/scheduler.h>

#include "base/shared.h"

#define FY_BUNDLE_SYMBOL "fy_bundle_schedulers"

enum { FY_BUNDLE_VERSION = 3, FY_BUNDLE_MAX = 9 };

/* Mistakes of a scheduler. */
typedef enum fy_misuse {
    FY_MISUSE_STRANGER, /* it moves or picks an object that it does not have */
    FY_MISUSE_QUEUED,   /* it moves an object that is still in its list */
    FY_MISUSE_RANK,     /* it moves an object to a rank that does not exist */
    FY_MISUSE_AGAIN,    /* it moves an object that has just come back */
    FY_MISUSE_IDLE,     /* it picks an object without tasks */
    FY_MISUSE_WORD,     /* it sends words to a rank that does not exist, or to itself */
    FY_MISUSE_RESTLESS, /* it sends words without a pause */
    FY_MISUSES,
} fy_misuse;

/* Functions of the rank that the bundle calls: fy_env_next and fy_log. */
typedef struct fy_bundle_calls {
    const char *(*next)(const char *prefix, size_t *index);
    void (*log)(const ferry *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
} fy_bundle_calls;

typedef struct fy_bundle {
    uint32_t version;                                     /* first: port/plugin.h */
    const ferry_scheduler *schedulers[FY_BUNDLE_MAX + 1]; /* ended by NULL */
    /* Writes the names of `more` and of the schedulers of the bundle, with commas between. */
    void (*list)(const ferry_scheduler *const *more, int count, char *out, size_t size);
    /* Warns of the variables FERRY_SCHEDULER_... that the scheduler has not asked for. */
    void (*warn)(const ferry *f, fy_bundle_calls calls, const char *scheduler, const char *asked);
    /* Formats of lines for the log, here because few jobs need them. Their arguments are the name
     * of the scheduler, a rank, and an object as an unsigned long long. */
    const char *misuses[FY_MISUSES];
} fy_bundle;

FY_SHARED extern const fy_bundle fy_bundle_schedulers;

extern const ferry_scheduler fy_scheduler_stealing, fy_scheduler_diffusion,
    fy_scheduler_diffusion_sender, fy_scheduler_gradient, fy_scheduler_multilist,
    fy_scheduler_master, fy_scheduler_none, fy_scheduler_rotate, fy_scheduler_inplace;

/* Gives the bundle: the one in this library, or that of the plug-in. FERRY_ENOTSUP: the plug-in
 * cannot be opened; fy_error_text says why. Lends forever. [either thread] */
int fy_bundle_find(const fy_bundle **out);

#endif
