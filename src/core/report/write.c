/* Gathers the figures of FERRY_PROFILE at rank 0, and opens and writes its file and that of
 * FERRY_TRACE. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "core/fail.h"
#include "core/rank.h"
#include "core/report/report.h"

enum { PATH_BYTES = 4096 };

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

static void name_file(const ferry *f, const char *folder, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%s/rank-%d.trace", folder, f->head.rank);
}

/* Makes the folder now: at the end of a long run an error would be too late. Removes this rank's
 * file of an earlier run: it must not be taken for this run's. */
static int make_room(ferry *f, const char *folder)
{
    char path[PATH_BYTES];
    name_file(f, folder, path);
    if ((mkdir(folder, 0777) == 0 || errno == EEXIST) && (unlink(path) == 0 || errno == ENOENT) &&
        access(folder, W_OK | X_OK) == 0)
        return 0;
    return fy_fail(f, FERRY_ESYSTEM,
                   "open: FERRY_TRACE is \"%s\"; expected a folder to write to: %s", folder,
                   strerror(errno));
}

static int report_open(ferry *f, const char *path, const char *folder)
{
    int error = check_path(f, path);
    return error != 0 || folder == NULL ? error : make_room(f, folder);
}

static void report_fill(ferry *f, fy_report *r)
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

/* Names a kind that was sent or handled. */
static fy_report_name name_kind(uint8_t kind)
{
    int layer = (kind - FY_KINDS_OF_CORE) / FY_KINDS_OF_LAYER;
    return (fy_report_name){kind < FY_KINDS_OF_CORE ? "core" : fy_layer_at(layer)->name,
                            fy_kind_find(kind)->name};
}

static int write_report(ferry *f, const char *path, const fy_report *reports)
{
    FILE *file = path == NULL ? stderr : fy_file_create(path, false);
    if (file == NULL)
        return fy_fail(f, FERRY_ESYSTEM, "profile: %s: %s", path, fy_file_why());
    bool written = fy_report_print(file, f, reports, f->collectives.group->size, name_kind);
    if (path != NULL)
        written = fclose(file) == 0 && written;
    return written ? 0
                   : fy_fail(f, FERRY_ESYSTEM, "profile: %s: not all could be written",
                             path == NULL ? "standard error" : path);
}

static int report_profile(ferry *f, const char *path)
{
    fy_report own;
    const fy_group *group = f->collectives.group;
    bool first = group->self == 0;
    fy_report *all = first ? fy_calloc((size_t)group->size, sizeof(*all)) : NULL;
    int error = 0;
    report_fill(f, &own);
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

static void write_lines(ferry *f, FILE *out)
{
    fy_report own;
    const fy_report_trace trace = {.own = &own,
                                   .stats = &f->head.stats,
                                   .port = f->head.ops->name,
                                   .rank = f->head.rank,
                                   .ranks = f->head.ranks,
                                   .opened_ns = f->file->opened_ns,
                                   .closed_ns = f->head.account.stamp_ns,
                                   .handlers = f->head.handlers.names,
                                   .handler_count = f->head.handlers.count,
                                   .intervals = f->file->trace.intervals,
                                   .interval_count = f->file->trace.count};
    report_fill(f, &own);
    fy_report_head(out, &trace);
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->trace != NULL)
            fy_layer_at(i)->trace(f, out);
    fy_report_tail(out, &trace);
}

static int report_trace(ferry *f)
{
    char path[PATH_BYTES];
    name_file(f, f->file->folder, path);
    FILE *out = fy_file_create(path, false);
    bool failed = out == NULL;
    if (out != NULL) {
        write_lines(f, out);
        failed = ferror(out) != 0;
        failed = fclose(out) != 0 || failed;
    }
    if (!failed)
        return 0;
    fy_log(f, "FERRY_TRACE: %s: %s", path, fy_file_why());
    return fy_fail(f, FERRY_ESYSTEM, "close: %s is not whole", path);
}

const fy_report_printer fy_report_printer_table = {.version = FY_REPORT_VERSION,
                                                   .open = report_open,
                                                   .profile = report_profile,
                                                   .trace = report_trace,
                                                   .account = fy_report_account,
                                                   .trail = fy_report_trail};
