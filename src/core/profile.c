/* The figures of the overhead report (report/): how often each operation ran, for how many bytes
 * and how long, and where the time of each layer and rank went.
 *
 * Core counts a frame when it hands the frame to the port, and when it hands it to its layer. The
 * time of a frame is that of the call, less what is counted for itself inside the call: handlers,
 * other frames, waiting. On a rank that does not count, this costs one test of a pointer per frame
 * sent. */
#include "core/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
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

/* Checks the path now: at the end of a long run it would be too late. */
static int check_path(ferry *f, const char *path)
{
    FILE *file = path == NULL || f->head.rank != 0 ? NULL : fy_file_create(path, true);
    if (path != NULL && f->head.rank == 0 && file == NULL)
        return fy_fail(f, FERRY_ESYSTEM,
                       "open: FERRY_PROFILE is \"%s\"; expected 0, 1 or a file to write: %s", path,
                       fy_file_why());
    if (file != NULL)
        fclose(file);
    return 0;
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
    return check_path(f, f->head.profile->path);
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

void fy_profile_fill(ferry *f, fy_report *r)
{
    const fy_profile *p = f->head.profile;
    r->rank = f->head.rank;
    memcpy(r->sent, p->sent, sizeof(r->sent));
    memcpy(r->handled, p->handled, sizeof(r->handled));
    memcpy(r->other, p->other, sizeof(r->other));
    memcpy(r->hops, p->hops, sizeof(r->hops));
    r->wall_ns = f->head.ops->host.now(f->head.port) - p->opened_ns;
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    (void)ferry_stats_get(f, &stats);
    r->runtime_ns = stats.runtime_ns;
    r->runtime_cpu_ns = stats.runtime_cpu_ns;
    r->helper_ns = stats.helper_ns;
}

static fy_report_name name_kind(uint8_t kind)
{
    return (fy_report_name){fy_kind_layer(kind), fy_kind_find(kind)->name};
}

static int write_report(ferry *f, const char *path, const fy_report *reports)
{
    FILE *file = path == NULL ? stderr : fy_file_create(path, false);
    if (file == NULL)
        return fy_fail(f, FERRY_ESYSTEM, "profile: %s: %s", path, fy_file_why());
    bool written =
        f->head.profile->printer->print(file, f, reports, f->collectives.group->size, name_kind);
    if (path != NULL)
        written = fclose(file) == 0 && written;
    return written ? 0
                   : fy_fail(f, FERRY_ESYSTEM, "profile: %s: not all could be written",
                             path == NULL ? "standard error" : path);
}

int fy_profile_report(ferry *f, const char *path)
{
    fy_report own;
    const fy_group *group = f->collectives.group;
    bool first = group->self == 0;
    fy_report *all = first ? fy_calloc((size_t)group->size, sizeof(*all)) : NULL;
    int error = 0;
    fy_profile_fill(f, &own);
    if (first && all == NULL)
        return fy_fail(f, FERRY_ENOMEM, "profile: no memory for %d ranks", group->size);
    const ferry_collective gather = {.size = sizeof(gather),
                                     .kind = FERRY_GATHER,
                                     .root = fy_group_rank(group, 0),
                                     .in = &own,
                                     .out = all,
                                     .count = sizeof(own),
                                     .type = FERRY_BYTE};
    error = fy_collective_run(f, &gather, FY_DOING_COLLECTIVE);
    if (error == 0 && first)
        error = write_report(f, path, all);
    free(all);
    return error;
}

int ferry_profile_write(ferry *f, const char *path)
{
    int error = fy_check_outside(f, "profile_write");
    if (error != 0)
        return error;
    if (f->head.profile == NULL)
        return fy_fail(f, FERRY_ESTATE,
                       "profile_write: nothing is counted without FERRY_PROFILE=1");
    return fy_profile_report(f, path);
}
