/* The figures of the overhead report (report/): how often each operation ran, for how many bytes
 * and how long, and where the time of each layer and rank went.
 *
 * Core counts a frame when it hands the frame to the port, and when it hands it to its layer. The
 * time of a frame is that of the call, less what is counted for itself inside the call: handlers,
 * other frames, waiting. On a rank that does not count, this costs one test of a pointer per frame
 * sent. */
#include "core/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "core/fail.h"
#include "core/rank.h"
#include "core/report/report.h"

fy_stretch fy_profile_begin(ferry *f)
{
    fy_profile *p = f->head.profile;
    const fy_stretch stretch = {f->head.ops->host.now(f->head.port), p->nested_ns};
    p->nested_ns = 0;
    return stretch;
}

void fy_profile_end(ferry *f, const fy_stretch *stretch, fy_profile_row *row, uint64_t bytes)
{
    fy_profile *p = f->head.profile;
    uint64_t passed = f->head.ops->host.now(f->head.port) - stretch->start_ns;
    row->calls++;
    row->bytes += bytes;
    row->ns += passed - p->nested_ns;
    p->nested_ns = stretch->outer_nested_ns + passed;
}

void fy_profile_count(ferry *f, fy_profile_kind kind, uint64_t ns)
{
    fy_profile_row *row = &f->head.profile->other[kind];
    row->calls++;
    row->ns += ns;
    f->head.profile->nested_ns += ns;
}

void fy_profile_copied(ferry *f, const fy_stretch *stretch, fy_profile_kind kind, uint64_t bytes)
{
    fy_profile_end(f, stretch, &f->head.profile->other[kind], bytes);
}

static fy_verdict count_handled(ferry *f, int source, const fy_frame *frame)
{
    fy_profile *p = f->head.profile;
    fy_stretch stretch = fy_profile_begin(f);
    fy_verdict verdict = p->kinds[frame->kind](f, source, frame);
    fy_profile_end(f, &stretch, &p->handled[frame->kind], frame->size_bytes);
    return verdict;
}

void fy_kind_set(ferry *f, uint8_t kind, fy_kind_fn *fn)
{
    f->kinds[kind] = fn;
    if (f->head.profile == NULL)
        return;
    f->head.profile->kinds[kind] = fn;
    f->kinds[kind] = count_handled;
}

int fy_profile_init(ferry *f)
{
    const char *value = fy_env_get("FERRY_PROFILE");
    bool wanted = value != NULL && strcmp(value, "0") != 0;
    if (!wanted && fy_env_get("FERRY_TRACE") == NULL)
        return 0;
    f->head.profile = fy_calloc(1, sizeof(*f->head.profile));
    if (f->head.profile == NULL)
        return FERRY_ENOMEM;
    f->head.profile->opened_ns = f->head.ops->host.now(f->head.port);
    f->head.profile->wanted = wanted;
    f->head.profile->path = !wanted || strcmp(value, "1") == 0 ? NULL : value;
    f->head.account.timed = true;
    f->head.due |= FY_DUE_ALWAYS;
    fy_account_start_cpu(f);
    if (fy_report_find(&f->head.profile->printer) != 0)
        return fy_fail(f, FERRY_ELAUNCH, "open: %s is set: %s",
                       wanted ? "FERRY_PROFILE" : "FERRY_TRACE", fy_error_text());
    return f->head.profile->printer->open(f, f->head.profile->path, fy_env_get("FERRY_TRACE"));
}

void fy_profile_waited(ferry *f, const fy_stretch *stretch)
{
    fy_profile *p = f->head.profile;
    fy_profile_row *idle = &p->other[FY_PROFILE_IDLE];
    uint64_t before_ns = idle->ns;
    fy_profile_end(f, stretch, idle, 0);
    p->idles[p->idle_count++ % FY_IDLES_KEPT] =
        (fy_idle){stretch->start_ns,
                  stretch->start_ns + (idle->ns - before_ns)}; /* its length is what was counted */
}

void fy_profile_awaited(ferry *f, uint64_t left_ns)
{
    fy_profile *p = f->head.profile;
    uint64_t awaited_ns = 0;
    for (uint32_t i = 1; i <= FY_IDLES_KEPT && left_ns != 0; i++) {
        fy_idle *wait = &p->idles[(p->idle_count - i) % FY_IDLES_KEPT];
        uint64_t from_ns = left_ns > wait->from_ns ? left_ns : wait->from_ns;
        if (from_ns < wait->to_ns) {
            awaited_ns += wait->to_ns - from_ns;
            wait->to_ns = from_ns; /* this part is counted; an object that arrives later shall not
                                      count it again */
        }
        if (wait->from_ns <= left_ns)
            break;
    }
    p->other[FY_PROFILE_AWAITING].calls += awaited_ns != 0;
    p->other[FY_PROFILE_AWAITING].ns += awaited_ns;
}

void fy_profile_fini(ferry *f)
{
    free(f->head.profile);
    f->head.profile = NULL;
}

int ferry_profile_write(ferry *f, const char *path)
{
    int error = fy_check_outside(f, "profile_write");
    if (error != 0)
        return error;
    if (f->head.profile == NULL)
        return fy_fail(f, FERRY_ESTATE,
                       "profile_write: nothing is counted without FERRY_PROFILE=1");
    return f->head.profile->printer->profile(f, path);
}
