/* Trace events as JSON: a thread per rank, a slice per stretch, an instant per object sent away.
 * Times are microseconds with three decimals, so nothing is rounded. */
#include <inttypes.h>

#include "cmd/report/draw.h"

static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text != '\0') {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        text = draw_character(out, text);
    }
    fputc('"', out);
}

static void put_time(FILE *out, const char *key, uint64_t ns)
{
    fprintf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

static void put_stretch(FILE *out, const trace_run *run, const trace_rank *t, size_t index)
{
    static const char *const names[TRACE_KINDS] = {"idle", "runtime", NULL, "program"};
    const trace_stretch *v = &t->stretches[index];
    char buffer[32];
    if (v->kind == TRACE_IDLE)
        return; /* gaps between slices are idle time */
    fputs(",\n{\"ph\":\"X\",\"name\":", out);
    put_string(out,
               v->kind == TRACE_TASK ? draw_handler_name(t, v->handler, buffer) : names[v->kind]);
    fprintf(out, ",\"cat\":\"%s\",\"pid\":0,\"tid\":%d",
            v->kind == TRACE_TASK ? "task" : names[v->kind], t->rank);
    put_time(out, "ts", t->open_ns - run->start_ns + v->start_ns);
    put_time(out, "dur", trace_stretch_end(t, index) - v->start_ns);
    if (v->kind == TRACE_TASK && v->cpu_ns != 0)
        fprintf(out, ",\"args\":{\"cpu_ns\":%" PRIu64 "}", v->cpu_ns);
    fputc('}', out);
}

static void put_move(FILE *out, const trace_run *run, const trace_rank *t, const trace_move *m)
{
    fprintf(out,
            ",\n{\"ph\":\"i\",\"s\":\"t\",\"name\":\"to rank %d\",\"cat\":\"move\",\"pid\":0,"
            "\"tid\":%d",
            m->target, t->rank);
    put_time(out, "ts", m->time_ns > run->start_ns ? m->time_ns - run->start_ns : 0);
    fprintf(out,
            ",\"args\":{\"object\":\"%016" PRIx64 "\",\"occasion\":\"%s\",\"asker\":%d,\"load\":%g,"
            "\"asker_load\":%g}}",
            m->object, m->occasion, m->asker, m->load, m->asker_load);
}

void draw_chrome(FILE *out, const trace_run *run)
{
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":",
          out);
    const char *command = NULL;
    for (int rank = 0; rank < run->ranks && command == NULL; rank++)
        command = run->rank[rank].command;
    put_string(out, command != NULL ? command : run->folder);
    fputs("}}", out);
    for (int rank = 0; rank < run->ranks; rank++) {
        const trace_rank *t = &run->rank[rank];
        fprintf(out,
                ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":"
                "\"rank %d%s\"}}",
                rank, rank, t->present ? "" : " (left no trace)");
        for (size_t i = 0; i < t->stretch_count; i++)
            put_stretch(out, run, t, i);
        for (size_t i = 0; i < t->move_count; i++)
            put_move(out, run, t, &t->moves[i]);
    }
    fputs("\n]}\n", out);
}
