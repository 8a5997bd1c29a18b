/* The overhead report: per operation how often, how much and how long, per layer and rank where the
 * time went. dmcs.txt 5.1 and prema.txt 4.4 print the like as tables.
 *
 * Frames are counted where core hands them to the port and to their layer; a frame's time is that
 * of the call, without what is counted for itself inside: handlers, other frames, waiting. Nothing
 * of this is on a path of a rank that does not count, but for a test of a pointer per frame sent.
 */
#include "core/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"
#include "core/rank.h"

static const char *const kind_names[FY_KINDS][2] = {
    [FY_KIND_REQUEST] = {"request", "core"},
    [FY_KIND_LENT] = {"lent", "core"},
    [FY_KIND_SPREAD] = {"broadcast", "core"},
    [FY_KIND_END] = {"end", "core"},
    [FY_KIND_COLLECTIVE] = {"collective", "core"},
    [FY_KIND_WAVE] = {"quiesce", "core"},
    [FY_KIND_MAIL] = {"mail", "core"},
    [FY_KIND_LEAVE] = {"leave", "core"},
    [FY_KIND_READY] = {"ready", "core"},
    [FY_KIND_REFUSAL] = {"refusal", "core"},
    [FY_KIND_WHY] = {"why", "core"},
    [FY_KIND_CREDIT] = {"credit", "core"},
    [FY_KIND_LOSS] = {"loss", "core"},
    [FY_KIND_PUT] = {"put", "memory"},
    [FY_KIND_PUT_ANSWER] = {"put answer", "memory"},
    [FY_KIND_GET] = {"get", "memory"},
    [FY_KIND_GOT] = {"get answer", "memory"},
    [FY_KIND_TRANSFER] = {"transfer", "memory"},
    [FY_KIND_WORD] = {"word", "memory"},
    [FY_KIND_MESSAGE] = {"message", "object"},
    [FY_KIND_LOCATION] = {"location", "object"},
    [FY_KIND_ARRIVAL] = {"arrival", "object"},
    [FY_KIND_PIGGYBACK] = {"piggybacked object", "object"},
    [FY_KIND_HANDOVER] = {"handover", "object"},
    [FY_KIND_PHASE] = {"phase", "balance"},
    [FY_KIND_SCHEDULER] = {"scheduler", "balance"},
    [FY_KIND_CELL] = {"cell", "cell"},
    [FY_KIND_MOVER] = {"mover", "mover"},
};

/* What a rank sends to rank 0 for the report. */
typedef struct report {
    fy_profile_row sent[FY_KINDS], handled[FY_KINDS], other[FY_PROFILE_KINDS];
    uint64_t wall_ns, runtime_ns, runtime_cpu_ns, helper_ns;
    uint64_t hops[FY_HOPS_COUNTED];
} report;

fy_stretch fy_profile_begin(ferry *f)
{
    fy_profile *p = f->profile;
    const fy_stretch stretch = {f->ops->now(f->port), p->nested_ns};
    p->nested_ns = 0;
    return stretch;
}

void fy_profile_end(ferry *f, const fy_stretch *stretch, fy_profile_row *row, uint64_t bytes)
{
    fy_profile *p = f->profile;
    uint64_t passed = f->ops->now(f->port) - stretch->start_ns;
    row->calls++;
    row->bytes += bytes;
    row->ns += passed - p->nested_ns;
    p->nested_ns = stretch->outer_nested_ns + passed;
}

void fy_profile_count(ferry *f, fy_profile_kind kind, uint64_t ns)
{
    fy_profile_row *row = &f->profile->other[kind];
    row->calls++;
    row->ns += ns;
    f->profile->nested_ns += ns;
}

void fy_profile_copied(ferry *f, const fy_stretch *stretch, fy_profile_kind kind, uint64_t bytes)
{
    fy_profile_end(f, stretch, &f->profile->other[kind], bytes);
}

static fy_verdict count_handled(ferry *f, int source, const fy_frame *frame)
{
    fy_profile *p = f->profile;
    fy_stretch stretch = fy_profile_begin(f);
    fy_verdict verdict = p->kinds[frame->kind](f, source, frame);
    fy_profile_end(f, &stretch, &p->handled[frame->kind], frame->size_bytes);
    return verdict;
}

void fy_kind_set(ferry *f, fy_kind kind, fy_kind_fn *fn)
{
    f->kinds[kind] = fn;
    if (f->profile == NULL)
        return;
    f->profile->kinds[kind] = fn;
    f->kinds[kind] = count_handled;
}

/* Before the run, which may be long. */
static int check_path(ferry *f, const char *path)
{
    FILE *file = path == NULL || f->rank != 0 ? NULL : fy_file_create(path, true);
    if (path != NULL && f->rank == 0 && file == NULL)
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
    f->profile = fy_calloc(1, sizeof(*f->profile));
    if (f->profile == NULL)
        return FERRY_ENOMEM;
    f->profile->opened_ns = f->ops->now(f->port);
    f->profile->wanted = wanted;
    f->profile->path = !wanted || strcmp(value, "1") == 0 ? NULL : value;
    f->account.timed = true;
    fy_account_start_cpu(f);
    return check_path(f, f->profile->path);
}

void fy_profile_waited(ferry *f, const fy_stretch *stretch)
{
    fy_profile *p = f->profile;
    fy_profile_row *idle = &p->other[FY_PROFILE_IDLE];
    uint64_t before_ns = idle->ns;
    fy_profile_end(f, stretch, idle, 0);
    p->idles[p->idle_count++ % FY_IDLES_KEPT] =
        (fy_idle){stretch->start_ns,
                  stretch->start_ns + (idle->ns - before_ns)}; /* no more than was counted */
}

void fy_profile_awaited(ferry *f, uint64_t left_ns)
{
    fy_profile *p = f->profile;
    uint64_t awaited_ns = 0;
    for (uint32_t i = 1; i <= FY_IDLES_KEPT && left_ns != 0; i++) {
        fy_idle *wait = &p->idles[(p->idle_count - i) % FY_IDLES_KEPT];
        uint64_t from_ns = left_ns > wait->from_ns ? left_ns : wait->from_ns;
        if (from_ns < wait->to_ns) {
            awaited_ns += wait->to_ns - from_ns;
            wait->to_ns = from_ns; /* for those that come later, and left before */
        }
        if (wait->from_ns <= left_ns)
            break;
    }
    p->other[FY_PROFILE_AWAITING].calls += awaited_ns != 0;
    p->other[FY_PROFILE_AWAITING].ns += awaited_ns;
}

void fy_profile_fini(ferry *f)
{
    free(f->profile);
    f->profile = NULL;
}

static void add(fy_profile_row *into, const fy_profile_row *row)
{
    into->calls += row->calls;
    into->bytes += row->bytes;
    into->ns += row->ns;
}

static void fill(ferry *f, report *r)
{
    const fy_profile *p = f->profile;
    memcpy(r->sent, p->sent, sizeof(r->sent));
    memcpy(r->handled, p->handled, sizeof(r->handled));
    memcpy(r->other, p->other, sizeof(r->other));
    memcpy(r->hops, p->hops, sizeof(r->hops));
    r->wall_ns = f->ops->now(f->port) - p->opened_ns;
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    (void)ferry_stats_get(f, &stats);
    r->runtime_ns = stats.runtime_ns;
    r->runtime_cpu_ns = stats.runtime_cpu_ns;
    r->helper_ns = stats.helper_ns;
}

static void print_row(FILE *file, const char *layer, const char *name, const char *verb,
                      const fy_profile_row *row)
{
    if (row->calls == 0)
        return;
    fprintf(file, "%-8s %-12s %-8s %12" PRIu64 " %15" PRIu64 " %12.1f %12.3f\n", layer, name, verb,
            row->calls, row->bytes, (double)row->ns / (double)row->calls, (double)row->ns / 1e6);
}

/* The rows of all ranks together. */
static void print_operations(FILE *file, const report *reports, int ranks)
{
    report sum = {.wall_ns = 0};
    for (int rank = 0; rank < ranks; rank++) {
        for (int kind = 0; kind < FY_KINDS; kind++) {
            add(&sum.sent[kind], &reports[rank].sent[kind]);
            add(&sum.handled[kind], &reports[rank].handled[kind]);
        }
        for (int kind = 0; kind < FY_PROFILE_KINDS; kind++)
            add(&sum.other[kind], &reports[rank].other[kind]);
    }
    fprintf(file, "%-8s %-12s %-8s %12s %15s %12s %12s\n", "layer", "operation", "", "calls",
            "bytes", "ns each", "total ms");
    for (int kind = 0; kind < FY_KINDS; kind++) {
        print_row(file, kind_names[kind][1], kind_names[kind][0], "sent", &sum.sent[kind]);
        print_row(file, kind_names[kind][1], kind_names[kind][0], "handled", &sum.handled[kind]);
    }
    print_row(file, "memory", "put", "copied", &sum.other[FY_PROFILE_PUT]);
    print_row(file, "memory", "get", "copied", &sum.other[FY_PROFILE_GET]);
    print_row(file, "program", "handlers", "run", &sum.other[FY_PROFILE_APPLICATION]);
}

static void print_rank(FILE *file, const char *name, const report *r)
{
    uint64_t sent = 0, handled = 0, bytes = 0;
    for (int kind = 0; kind < FY_KINDS; kind++) {
        sent += r->sent[kind].calls;
        handled += r->handled[kind].calls;
        bytes += r->sent[kind].bytes;
    }
    double wall = r->wall_ns == 0 ? 1 : (double)r->wall_ns;
    fprintf(file,
            "%-6s %12" PRIu64 " %12" PRIu64 " %15" PRIu64 " %9.2f %9.2f %9.2f %9.2f %9.3f %10.2f\n",
            name, sent, handled, bytes, 100 * (double)r->runtime_ns / wall,
            100 * (double)(r->runtime_cpu_ns + r->helper_ns) / wall,
            100 * (double)r->other[FY_PROFILE_APPLICATION].ns / wall,
            100 * (double)r->other[FY_PROFILE_IDLE].ns / wall, (double)r->wall_ns / 1e9,
            100 * (double)r->other[FY_PROFILE_AWAITING].ns / wall);
}

static void print_ranks(FILE *file, const report *reports, const fy_group *group)
{
    report sum = {.wall_ns = 0};
    fprintf(file, "%-6s %12s %12s %15s %9s %9s %9s %9s %9s %10s\n", "rank", "sent", "handled",
            "bytes sent", "runtime %", "of cpu %", "program %", "idle %", "wall s", "awaiting %");
    for (int i = 0; i < group->size; i++) {
        const report *r = &reports[i];
        char name[16];
        (void)snprintf(name, sizeof(name), "%d", fy_group_rank(group, i));
        print_rank(file, name, r);
        for (int kind = 0; kind < FY_KINDS; kind++) {
            add(&sum.sent[kind], &r->sent[kind]);
            add(&sum.handled[kind], &r->handled[kind]);
        }
        for (int kind = 0; kind < FY_PROFILE_KINDS; kind++)
            add(&sum.other[kind], &r->other[kind]);
        sum.wall_ns += r->wall_ns;
        sum.runtime_ns += r->runtime_ns;
        sum.runtime_cpu_ns += r->runtime_cpu_ns;
        sum.helper_ns += r->helper_ns;
    }
    print_rank(file, "all", &sum);
}

/* Where the runtime's own time went, as Tables 7.1 and 7.2 of prema.txt divide it. */
typedef struct categories {
    uint64_t send, pack, unpack, scheduler, poll, helper, total;
} categories;

static categories divide(const report *r)
{
    categories c = {.pack = r->other[FY_PROFILE_PACK].ns,
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

static void print_categories(FILE *file, const report *reports, const fy_group *group)
{
    fprintf(file, "%6s %10s %10s %10s %10s %10s %10s %10s %9s\n", "rank", "send ms", "pack ms",
            "unpack ms", "sched ms", "poll ms", "helper ms", "sum ms", "of wall %");
    for (int i = 0; i < group->size; i++) {
        categories c = divide(&reports[i]);
        double wall = reports[i].wall_ns == 0 ? 1 : (double)reports[i].wall_ns;
        fprintf(file, "%6d %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %9.4f\n",
                fy_group_rank(group, i), (double)c.send / 1e6, (double)c.pack / 1e6,
                (double)c.unpack / 1e6, (double)c.scheduler / 1e6, (double)c.poll / 1e6,
                (double)c.helper / 1e6, (double)c.total / 1e6, 100 * (double)c.total / wall);
    }
}

/* How often messages to objects were forwarded: Figure 4.18 of prema.txt, as one line. */
static void print_hops(FILE *file, const report *reports, int ranks)
{
    uint64_t sums[FY_HOPS_COUNTED] = {0}, all = 0;
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < FY_HOPS_COUNTED; i++) {
            sums[i] += reports[rank].hops[i];
            all += reports[rank].hops[i];
        }
    if (all == 0)
        return;
    fprintf(file, "messages to objects by forwards:");
    for (int i = 0; i < FY_HOPS_COUNTED; i++)
        if (sums[i] != 0)
            fprintf(file, "  %d%s: %" PRIu64, i, i + 1 < FY_HOPS_COUNTED ? "" : " or more",
                    sums[i]);
    fprintf(file, "\n");
}

void fy_profile_trace(ferry *f, FILE *out)
{
    report own;
    fill(f, &own);
    categories c = divide(&own);
    fprintf(out,
            "stat send_ns %" PRIu64 "\nstat pack_ns %" PRIu64 "\nstat unpack_ns %" PRIu64
            "\nstat scheduler_ns %" PRIu64 "\nstat poll_ns %" PRIu64 "\nstat awaiting_ns %" PRIu64
            "\n",
            c.send, c.pack, c.unpack, c.scheduler, c.poll, own.other[FY_PROFILE_AWAITING].ns);
    for (int i = 0; i < FY_HOPS_COUNTED; i++)
        if (own.hops[i] != 0)
            fprintf(out, "stat messages_forwarded_%d %" PRIu64 "\n", i, own.hops[i]);
}

static int write_report(ferry *f, const char *path, const report *reports)
{
    FILE *file = path == NULL ? stderr : fy_file_create(path, false);
    if (file == NULL)
        return fy_fail(f, FERRY_ESYSTEM, "profile: %s: %s", path, fy_file_why());
    const fy_group *group = f->collectives.group;
    fprintf(file, "ferry profile: %d ranks\n", group->size);
    print_operations(file, reports, group->size);
    print_ranks(file, reports, group);
    print_categories(file, reports, group);
    print_hops(file, reports, group->size);
    bool failed = ferror(file) != 0;
    if (path != NULL)
        failed = fclose(file) != 0 || failed;
    return failed ? fy_fail(f, FERRY_ESYSTEM, "profile: %s: not all could be written",
                            path == NULL ? "standard error" : path)
                  : 0;
}

int fy_profile_report(ferry *f, const char *path)
{
    report own;
    const fy_group *group = f->collectives.group;
    bool first = group->self == 0;
    report *all = first ? fy_calloc((size_t)group->size, sizeof(*all)) : NULL;
    int error = 0;
    fill(f, &own);
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
    if (f->profile == NULL)
        return fy_fail(f, FERRY_ESTATE,
                       "profile_write: nothing is counted without FERRY_PROFILE=1");
    return fy_profile_report(f, path);
}
