/* The page: facts about each run, the pictures, and tables with further figures. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/draw.h"

enum { OBJECTS_SHOWN = 20, MOVES_SHOWN = 200 };

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Ferry report</title>\n"
    "<style>\n"
    "body{font:15px/1.5 Helvetica,Arial,sans-serif;color:#16212e;max-width:1180px;margin:2em auto;"
    "padding:0 1em}\n"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}svg{max-width:100%;height:auto}\n"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.2em .8em;text-align:right;border-bottom:1px solid #e3e7eb}\n"
    "th{color:#52606d;font-weight:600}td:first-child,th:first-child{text-align:left}\n"
    ".scroll{max-height:30em;overflow:auto}p{color:#52606d}code{color:#16212e}\n"
    "</style></head><body>\n";

static void put_ms(FILE *out, uint64_t ns)
{
    fprintf(out, "<td>%.3f</td>", (double)ns / 1e6);
}

static void put_facts(FILE *out, const trace_run *run)
{
    const trace_rank *t = &run->rank[0];
    int absent = 0;
    for (int rank = run->ranks - 1; rank >= 0; rank--) {
        t = run->rank[rank].present ? &run->rank[rank] : t;
        absent += !run->rank[rank].present;
    }
    char length[32];
    draw_duration(length, (double)(run->end_ns - run->start_ns));
    fputs("<p><code>", out);
    draw_text(out, t->command != NULL ? t->command : "?");
    fprintf(out, "</code><br>%d ranks, %s, port ", run->ranks, length);
    draw_text(out, t->port != NULL ? t->port : "?");
    fputs(", scheduler ", out);
    draw_text(out, t->scheduler != NULL ? t->scheduler : "?");
    fputs(", Ferry ", out);
    draw_text(out, t->version != NULL ? t->version : "?");
    if (run->during != NULL) {
        fputs("<br>Times are from the first task of ", out);
        draw_text(out, run->during);
        fputs(" to the end of its last. Counts, the parts of the runtime's time, and objects are "
              "of the whole run.",
              out);
    }
    if (absent > 0)
        fprintf(out, "<br><b>%d ranks left no trace: they died, or did not close.</b>", absent);
    if (run->places > run->ranks)
        fprintf(out,
                "<br>The job had room for %d ranks. Those from %d on left no trace: they were not "
                "started, died, or did not close.",
                run->places, run->ranks);
    if (run->strangers > 0)
        fprintf(out, "<br><b>Files of another run are in the folder; %d left out.</b>",
                run->strangers);
    fputs("</p>\n", out);
}

static void put_ranks(FILE *out, const trace_run *run)
{
    static const char *const names[] = {"awaiting_ns",  "send_ns", "pack_ns",  "unpack_ns",
                                        "scheduler_ns", "poll_ns", "helper_ns"};
    fputs("<h2>Ranks</h2><p>Milliseconds. Send, pack, unpack, scheduler and poll are parts of the "
          "runtime's time, as in Tables 7.1 and 7.2 of the PREMA thesis. Helper is the processor "
          "time "
          "of the helper thread. Awaiting is idle time while an object was in flight to the rank."
          "</p><div class=\"scroll\">"
          "<table><tr><th>rank</th><th>tasks</th><th>in tasks</th><th>on processor</th>"
          "<th>program</th><th>idle</th><th>runtime</th><th>runtime on "
          "processor</th><th>awaiting</th><th>send</th>"
          "<th>pack</th><th>unpack</th><th>scheduler</th><th>poll</th><th>helper</th><th>objects "
          "in</th>"
          "<th>objects out</th></tr>\n",
          out);
    for (int rank = 0; rank < run->ranks; rank++) {
        const trace_rank *t = &run->rank[rank];
        draw_shares s = draw_shares_of(t);
        fprintf(out, "<tr><td>%d</td><td>%" PRIu64 "</td>", rank, trace_stat_of(t, "tasks"));
        put_ms(out, s.ns[DRAW_TASK] + s.ns[DRAW_WAITING]);
        put_ms(out, s.ns[DRAW_TASK]);
        put_ms(out, s.ns[DRAW_PROGRAM]);
        put_ms(out, s.ns[DRAW_IDLE]);
        put_ms(out, s.ns[DRAW_RUNTIME] + s.ns[DRAW_DELAYED]);
        put_ms(out, trace_stat_of(t, "runtime_cpu_ns"));
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            put_ms(out, trace_stat_of(t, names[i]));
        fprintf(out, "<td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr>\n",
                trace_stat_of(t, "objects_in"), trace_stat_of(t, "objects_out"));
    }
    fputs("</table></div>\n", out);
}

typedef struct handler_sum {
    uint64_t ns, cpu_ns, longest_ns, stretches;
    const char *name;
} handler_sum;

static void put_handlers(FILE *out, const trace_run *run)
{
    static handler_sum none;
    handler_sum *sums = calloc(TRACE_HANDLERS_MAX, sizeof *sums);
    for (int rank = 0; sums != NULL && rank < run->ranks; rank++) {
        const trace_rank *t = &run->rank[rank];
        for (size_t i = 0; i < t->stretch_count; i++) {
            const trace_stretch *v = &t->stretches[i];
            handler_sum *h = v->kind == TRACE_TASK ? &sums[v->handler] : &none;
            uint64_t ns = trace_stretch_end(t, i) - v->start_ns;
            h->ns += ns;
            h->cpu_ns += (uint64_t)((double)ns * draw_processor_part(t, i) + 0.5);
            h->longest_ns = ns > h->longest_ns ? ns : h->longest_ns;
            h->stretches++;
            h->name = t->handlers[v->handler];
        }
    }
    fputs("<h2>Handlers</h2><table><tr><th>handler</th><th>intervals</th><th>ms</th><th>ms on "
          "processor</th><th>longest ms</th></tr>\n",
          out);
    for (int i = 0; sums != NULL && i < TRACE_HANDLERS_MAX; i++) {
        if (sums[i].stretches == 0)
            continue;
        fputs("<tr><td>", out);
        draw_text(out, sums[i].name != NULL ? sums[i].name : "?");
        fprintf(out, " (%d)</td><td>%" PRIu64 "</td>", i, sums[i].stretches);
        put_ms(out, sums[i].ns);
        put_ms(out, sums[i].cpu_ns);
        put_ms(out, sums[i].longest_ns);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    free(sums);
}

/* The cost of an object besides its handlers. */
static uint64_t overhead(const trace_object *o)
{
    return o->message_ns + o->pack_ns + o->unpack_ns + o->transit_ns;
}

static int by_name(const void *a, const void *b)
{
    const trace_object *left = a, *right = b;
    return (left->object > right->object) - (left->object < right->object);
}

static int by_cost(const void *a, const void *b)
{
    const trace_object *left = a, *right = b;
    uint64_t l = left->handler_ns + overhead(left), r = right->handler_ns + overhead(right);
    return l != r ? (l < r) - (l > r) : by_name(a, b);
}

/* Adds up neighbouring rows of one object. Returns the number of objects. */
static size_t merge(trace_object *all, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (used == 0 || all[used - 1].object != all[i].object) {
            all[used++] = all[i];
            continue;
        }
        trace_object *o = &all[used - 1];
        o->handled += all[i].handled;
        o->handler_ns += all[i].handler_ns;
        o->message_ns += all[i].message_ns;
        o->pack_ns += all[i].pack_ns;
        o->unpack_ns += all[i].unpack_ns;
        o->transit_ns += all[i].transit_ns;
        o->forwarded += all[i].forwarded;
        o->in += all[i].in;
        if (strcmp(o->type, "-") == 0)
            o->type = all[i].type;
    }
    return used;
}

static void put_objects(FILE *out, const trace_run *run)
{
    size_t count = 0, used = 0;
    for (int rank = 0; rank < run->ranks; rank++)
        count += run->rank[rank].object_count;
    trace_object *all = count == 0 ? NULL : malloc(count * sizeof *all);
    if (all == NULL)
        return;
    for (int rank = 0; rank < run->ranks; rank++)
        for (size_t i = 0; i < run->rank[rank].object_count; i++)
            all[used++] = run->rank[rank].objects[i];
    qsort(all, used, sizeof *all, by_name);
    used = merge(all, used);
    qsort(all, used, sizeof *all, by_cost);
    fprintf(out,
            "<h2>Objects</h2><p>The %zu most costly of %zu, summed over all ranks, in "
            "milliseconds. Delivery includes forwarding. In flight is the time from its "
            "departure from one rank to its arrival on the "
            "next.</p><table><tr><th>object</th><th>type</th><th>messages</th>"
            "<th>handlers</th><th>delivery</th><th>pack</th><th>unpack</th><th>in flight</th>"
            "<th>forwarded</th><th>moves</th></tr>\n",
            used < OBJECTS_SHOWN ? used : OBJECTS_SHOWN, used);
    for (size_t i = 0; i < used && i < OBJECTS_SHOWN; i++) {
        const trace_object *o = &all[i];
        if (o->object == 0)
            fputs("<tr><td>all others</td><td>", out);
        else
            fprintf(out, "<tr><td><code>%016" PRIx64 "</code></td><td>", o->object);
        draw_text(out, o->type);
        fprintf(out, "</td><td>%" PRIu64 "</td>", o->handled);
        put_ms(out, o->handler_ns);
        put_ms(out, o->message_ns);
        put_ms(out, o->pack_ns);
        put_ms(out, o->unpack_ns);
        put_ms(out, o->transit_ns);
        fprintf(out, "<td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr>\n", o->forwarded, o->in);
    }
    fputs("</table>\n", out);
    free(all);
}

static void put_reason(FILE *out, const trace_move *m)
{
    if (m->asker >= 0)
        fprintf(out, "<td>a message of the scheduler of rank %d, which had a load of %.4g</td>",
                m->asker, m->asker_load);
    else
        fprintf(out, "<td>%s</td>",
                strcmp(m->occasion, "time") == 0 ? "its own timer" : "a change of its own tasks");
}

static void put_moves(FILE *out, const trace_run *run)
{
    size_t count = 0, shown = 0;
    for (int rank = 0; rank < run->ranks; rank++)
        count += run->rank[rank].move_count;
    if (count == 0)
        return;
    fprintf(out,
            "<h2>Why objects moved</h2><p>The objects that the scheduler sent away, and why: %zu "
            "moves%s. Load is the work that waits to run, in the units of the application.</p>"
            "<div class=\"scroll\"><table><tr><th>ms</th><th>object</th><th>from</th><th>to</th>"
            "<th>load left here</th><th>because of</th></tr>\n",
            count, count > MOVES_SHOWN ? ", of which these are some; trace.json has all" : "");
    for (int rank = 0; rank < run->ranks; rank++) {
        const trace_rank *t = &run->rank[rank];
        for (size_t i = 0; i < t->move_count && shown < MOVES_SHOWN; i++, shown++) {
            const trace_move *m = &t->moves[i];
            fprintf(out,
                    "<tr><td>%.3f</td><td><code>%016" PRIx64 "</code></td><td>%d</td><td>%d</td>"
                    "<td>%.4g</td>",
                    ((double)m->time_ns - (double)run->start_ns) / 1e6, m->object, rank, m->target,
                    m->load);
            put_reason(out, m);
            fputs("</tr>\n", out);
        }
    }
    fputs("</table></div>\n", out);
}

static void put_choices(FILE *out, const trace_run *run)
{
    size_t count = 0;
    for (int rank = 0; rank < run->ranks; rank++)
        count += run->rank[rank].choice_count;
    if (count == 0)
        return;
    fputs("<h2>What steering chose</h2><div class=\"scroll\"><table>"
          "<tr><th>ms</th><th>rank</th><th>what, and why</th></tr>\n",
          out);
    for (int rank = 0; rank < run->ranks; rank++) {
        const trace_rank *t = &run->rank[rank];
        for (size_t i = 0; i < t->choice_count; i++) {
            char *text;
            double ns = strtod(t->choices[i], &text);
            fprintf(out, "<tr><td>%.3f</td><td>%d</td><td>", (ns - (double)run->start_ns) / 1e6,
                    rank);
            draw_text(out, text);
            fputs("</td></tr>\n", out);
        }
    }
    fputs("</table></div>\n", out);
}

/* The time from the start of the first task on any rank to the end of the last. */
static uint64_t measured_ns(const trace_run *run)
{
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (int rank = 0; rank < run->ranks; rank++) {
        const trace_rank *t = &run->rank[rank];
        for (size_t i = 0; i < t->stretch_count; i++) {
            uint64_t start_ns = t->open_ns + t->stretches[i].start_ns;
            uint64_t end_ns = t->open_ns + trace_stretch_end(t, i);
            if (t->stretches[i].kind != TRACE_TASK)
                continue;
            first_ns = start_ns < first_ns ? start_ns : first_ns;
            last_ns = end_ns > last_ns ? end_ns : last_ns;
        }
    }
    return last_ns > first_ns ? last_ns - first_ns : 0;
}

/* Measured, simulated and analytic times side by side. */
static void put_forecast(FILE *out, const trace_run *run, const draw_forecast *forecast)
{
    bool simulated = forecast->count > 0 && forecast->rows[0].replayed > 0;
    if (forecast->count == 0)
        return;
    fprintf(
        out,
        "<h2>Predicted run times</h2><p>Milliseconds. From the first task to the end of "
        "the last it took %.3f. `ferry model` predicts the other times from the tasks alone, as if "
        "all tasks waited from the start; docs/model.md explains the "
        "columns.%s</p><table><tr><th>scheduler"
        "</th>"
        "<th>lower</th><th>average</th><th>upper</th><th>played</th>%s</tr>\n",
        (double)measured_ns(run) / 1e6,
        simulated ? " The replay knows the messages between tasks." : "",
        simulated ? "<th>replayed</th>" : "");
    for (int i = 0; i < forecast->count; i++) {
        const draw_forecast_row *row = &forecast->rows[i];
        fprintf(out, "<tr><td>%s</td><td>%.3f</td><td>%.3f</td><td>%.3f</td><td>%.3f</td>",
                row->scheduler, row->lower * 1e3, row->average * 1e3, row->upper * 1e3,
                row->played * 1e3);
        if (simulated)
            fprintf(out, "<td>%.3f</td>", row->replayed * 1e3);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

void draw_page(FILE *out, const trace_run *runs, int run_count, const draw_forecast *forecasts)
{
    fputs(head, out);
    fputs("<h1>What each rank did</h1>\n", out);
    for (int i = 0; i < run_count; i++)
        put_facts(out, &runs[i]);
    draw_bars(out, runs, run_count);
    if (run_count > 1)
        draw_load(out, runs, run_count);
    for (int i = 0; i < run_count; i++) {
        fputs(run_count == 1 ? "<h2>When</h2>\n" : "<hr>\n", out);
        if (run_count > 1)
            put_facts(out, &runs[i]);
        draw_timeline(out, &runs[i]);
        if (forecasts != NULL)
            put_forecast(out, &runs[i], &forecasts[i]);
        put_ranks(out, &runs[i]);
        put_handlers(out, &runs[i]);
        put_objects(out, &runs[i]);
        put_moves(out, &runs[i]);
        put_choices(out, &runs[i]);
    }
    fputs("</body></html>\n", out);
}
