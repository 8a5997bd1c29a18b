/* The lines of a trace file (docs/reference/files.md). */
#include <inttypes.h>
#include <stdio.h>

#include <ferry/export.h>

#include "core/report/report.h"

/* The command that was started, from the system; NUL between its words. */
static void write_command(FILE *out)
{
    char text[1024];
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t count = file == NULL ? 0 : fread(text, 1, sizeof(text), file);
    if (file != NULL)
        fclose(file);
    while (count > 0 && text[count - 1] == '\0')
        count--;
    fputs("command ", out);
    for (size_t i = 0; i < count; i++)
        putc(text[i] == '\0' ? ' ' : (unsigned char)text[i] < ' ' ? '?' : text[i], out);
    putc('\n', out);
}

/* Writes a name of the program's. A line has no control characters. */
static void write_name(FILE *out, const char *name)
{
    for (; *name != '\0'; name++)
        putc((unsigned char)*name < ' ' ? '?' : *name, out);
    putc('\n', out);
}

static void write_stats(FILE *out, const ferry_stats *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"requests_sent", s->requests_sent},
                {"requests_handled", s->requests_handled},
                {"messages_sent", s->messages_sent},
                {"messages_handled", s->messages_handled},
                {"messages_forwarded", s->messages_forwarded},
                {"objects_in", s->objects_in},
                {"objects_out", s->objects_out},
                {"tasks", s->tasks},
                {"task_ns", s->task_ns},
                {"task_cpu_ns", s->task_cpu_ns},
                {"idle_ns", s->idle_ns},
                {"runtime_ns", s->runtime_ns},
                {"runtime_cpu_ns", s->runtime_cpu_ns},
                {"helper_ns", s->helper_ns}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        fprintf(out, "stat %s %" PRIu64 "\n", rows[i].name, rows[i].value);
}

static void write_times(FILE *out, const fy_report *own)
{
    fy_report_times c = fy_report_divide(own);
    fprintf(out,
            "stat send_ns %" PRIu64 "\nstat pack_ns %" PRIu64 "\nstat unpack_ns %" PRIu64
            "\nstat scheduler_ns %" PRIu64 "\nstat poll_ns %" PRIu64 "\nstat awaiting_ns %" PRIu64
            "\n",
            c.send, c.pack, c.unpack, c.scheduler, c.poll, own->other[FY_PROFILE_AWAITING].ns);
    for (int i = 0; i < FY_HOPS_COUNTED; i++)
        if (own->hops[i] != 0)
            fprintf(out, "stat messages_forwarded_%d %" PRIu64 "\n", i, own->hops[i]);
}

void fy_report_head(FILE *file, const fy_report_trace *trace)
{
    fprintf(file, "ferry trace 1\nversion %s\n", FERRY_VERSION);
    write_command(file);
    fprintf(file, "rank %d %d\nport %s\ntime %" PRIu64 " %" PRIu64 "\n", trace->rank, trace->ranks,
            trace->port, trace->opened_ns, trace->closed_ns);
    write_stats(file, trace->stats);
    write_times(file, trace->own);
    for (uint32_t i = 1; i < trace->handler_count; i++) {
        fprintf(file, "handler %u ", i);
        write_name(file, trace->handlers[i]);
    }
}

void fy_report_account(FILE *file, const fy_cost *c)
{
    fprintf(file,
            "object %016" PRIx64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
            " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " ",
            c->object, c->handled, c->handler_ns, c->message_ns, c->pack_ns, c->unpack_ns,
            c->transit_ns, c->forwarded, c->in, c->out);
    write_name(file, c->type != NULL ? c->type : "-");
}

static char *put_decimal(char *at, uint64_t value)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    *at++ = ' ';
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

/* Formats an entry by hand: a long run has millions of lines, and printf takes ten times as long.
 */
static char *put_entry(char *at, const fy_trail_entry *e)
{
    static const char hex[] = "0123456789abcdef";
    *at++ = 'x';
    *at++ = ' ';
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = hex[e->object >> shift & 15];
    char *origin = at;
    at = put_decimal(at + (e->origin < 0), (uint32_t)(e->origin < 0 ? -e->origin : e->origin));
    if (e->origin < 0) {
        origin[0] = ' ';
        origin[1] = '-';
    }
    at = put_decimal(at, e->sequence);
    at = put_decimal(at, e->value);
    return e->origin < 0 ? at : put_decimal(at, e->start_ns);
}

void fy_report_trail(FILE *file, const fy_trail_entry *entries, uint32_t count, uint64_t missed)
{
    enum { LINE_BYTES = 128, LOAD_MAX = 1 << 30 };
    for (uint32_t i = 0; i < count; i++) {
        const fy_trail_entry *e = &entries[i];
        char line[LINE_BYTES], *at = put_entry(line, e);
        bool whole = e->load >= 0 && e->load <= LOAD_MAX && e->load == (double)(uint32_t)e->load;
        if (e->origin >= 0 && whole)
            at = put_decimal(at, (uint32_t)e->load);
        else if (e->origin >= 0)
            at += snprintf(at, LINE_BYTES / 4, " %g", e->load);
        if (e->origin >= 0)
            at = put_decimal(at, e->handler);
        *at++ = '\n';
        (void)fwrite(line, 1, (size_t)(at - line), file);
    }
    if (missed > 0)
        fprintf(file, "stat trail_missed %" PRIu64 "\n", missed);
}

void fy_report_tail(FILE *file, const fy_report_trace *trace)
{
    for (size_t i = 0; i + 1 < trace->interval_count; i++) {
        const ferry_interval *v = &trace->intervals[i];
        fprintf(file, "%c %" PRIu64, "irtm"[v->activity], v -> start_ns - trace -> opened_ns);
        if (v->activity == FERRY_TASK)
            fprintf(file, " %" PRIu32 " %" PRIu64, v->handler, v->cpu_ns);
        putc('\n', file);
    }
    fputs("end\n", file);
}
