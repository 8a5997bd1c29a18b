/* The overhead report, in the form of the tables of dmcs.txt 5.1 and prema.txt 4.4. */
#include <inttypes.h>
#include <stdio.h>

#include "core/membership.h"
#include "core/report/report.h"

static void report_add(fy_profile_row *into, const fy_profile_row *row)
{
    into->calls += row->calls;
    into->bytes += row->bytes;
    into->ns += row->ns;
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
static void print_operations(FILE *file, const fy_report *reports, int ranks,
                             fy_report_name_fn *name)
{
    fy_report sum = {.wall_ns = 0};
    for (int rank = 0; rank < ranks; rank++) {
        for (int kind = 0; kind < FY_KINDS; kind++) {
            report_add(&sum.sent[kind], &reports[rank].sent[kind]);
            report_add(&sum.handled[kind], &reports[rank].handled[kind]);
        }
        for (int kind = 0; kind < FY_PROFILE_KINDS; kind++)
            report_add(&sum.other[kind], &reports[rank].other[kind]);
    }
    fprintf(file, "%-8s %-12s %-8s %12s %15s %12s %12s\n", "layer", "operation", "", "calls",
            "bytes", "ns each", "total ms");
    for (int kind = 0; kind < FY_KINDS; kind++) {
        if (sum.sent[kind].calls == 0 && sum.handled[kind].calls == 0)
            continue;
        fy_report_name of = name((uint8_t)kind);
        print_row(file, of.layer, of.kind, "sent", &sum.sent[kind]);
        print_row(file, of.layer, of.kind, "handled", &sum.handled[kind]);
    }
    print_row(file, "memory", "put", "copied", &sum.other[FY_PROFILE_PUT]);
    print_row(file, "memory", "get", "copied", &sum.other[FY_PROFILE_GET]);
    print_row(file, "program", "handlers", "run", &sum.other[FY_PROFILE_APPLICATION]);
}

static void print_rank(FILE *file, const char *name, const fy_report *r)
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

static void print_ranks(FILE *file, const fy_report *reports, int ranks)
{
    fy_report sum = {.wall_ns = 0};
    fprintf(file, "%-6s %12s %12s %15s %9s %9s %9s %9s %9s %10s\n", "rank", "sent", "handled",
            "bytes sent", "runtime %", "of cpu %", "program %", "idle %", "wall s", "awaiting %");
    for (int i = 0; i < ranks; i++) {
        const fy_report *r = &reports[i];
        char name[16];
        (void)snprintf(name, sizeof(name), "%d", reports[i].rank);
        print_rank(file, name, r);
        for (int kind = 0; kind < FY_KINDS; kind++) {
            report_add(&sum.sent[kind], &r->sent[kind]);
            report_add(&sum.handled[kind], &r->handled[kind]);
        }
        for (int kind = 0; kind < FY_PROFILE_KINDS; kind++)
            report_add(&sum.other[kind], &r->other[kind]);
        sum.wall_ns += r->wall_ns;
        sum.runtime_ns += r->runtime_ns;
        sum.runtime_cpu_ns += r->runtime_cpu_ns;
        sum.helper_ns += r->helper_ns;
    }
    print_rank(file, "all", &sum);
}

static void print_categories(FILE *file, const fy_report *reports, int ranks)
{
    fprintf(file, "%6s %10s %10s %10s %10s %10s %10s %10s %9s\n", "rank", "send ms", "pack ms",
            "unpack ms", "sched ms", "poll ms", "helper ms", "sum ms", "of wall %");
    for (int i = 0; i < ranks; i++) {
        fy_report_times c = fy_report_divide(&reports[i]);
        double wall = reports[i].wall_ns == 0 ? 1 : (double)reports[i].wall_ns;
        fprintf(file, "%6d %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %9.4f\n",
                reports[i].rank, (double)c.send / 1e6, (double)c.pack / 1e6, (double)c.unpack / 1e6,
                (double)c.scheduler / 1e6, (double)c.poll / 1e6, (double)c.helper / 1e6,
                (double)c.total / 1e6, 100 * (double)c.total / wall);
    }
}

/* How often messages to objects were forwarded: Figure 4.18 of prema.txt, as one line. */
static void print_hops(FILE *file, const fy_report *reports, int ranks)
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

/* The reports come in the order of the ranks. */
static void print_missing(FILE *file, const ferry *f, const fy_report *reports, int count)
{
    const char *begin = "ranks that are not counted, since they have died or left:";
    bool any = false;
    for (int rank = 0, next = 0; rank < ferry_ranks(f); rank++) {
        while (next < count && reports[next].rank < rank)
            next++;
        if ((next < count && reports[next].rank == rank) || !fy_peer_is_gone(f, rank))
            continue;
        fprintf(file, "%s %d", any ? "," : begin, rank);
        any = true;
    }
    if (any)
        fprintf(file, "\n");
}

bool fy_report_print(FILE *file, const ferry *f, const fy_report *reports, int count,
                     fy_report_name_fn *name)
{
    fprintf(file, "ferry profile: %d ranks\n", count);
    print_missing(file, f, reports, count);
    print_operations(file, reports, count, name);
    print_ranks(file, reports, count);
    print_categories(file, reports, count);
    print_hops(file, reports, count);
    return ferror(file) == 0;
}
