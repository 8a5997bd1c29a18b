/* Load: a panel per run. A row per rank shows its activity over time, and beside it stand the parts
 * of its time. The panels are one below the other on one time axis, so that runs can be
 * compared. */
#include <math.h>
#include <stdlib.h>

#include "cmd/report/draw.h"

enum { LEFT = 76, WIDE = 820, RIGHT = 330, TOP = 100, GAP = 100, BELOW = 44, LETTER = 6 };

typedef struct chart {
    FILE *out;
    draw_row line; /* the row that is drawn */
    double end_ns; /* of the time axis */
    double row;    /* the height of a row */
} chart;

static double span(const trace_run *run)
{
    return (double)(run->end_ns - run->start_ns);
}

static double x_of(const chart *c, double ns)
{
    return LEFT + ns / c->end_ns * WIDE;
}

static void fill_row(const chart *c, const trace_run *run, const trace_rank *t)
{
    static const draw_share shares[TRACE_KINDS] = {[TRACE_IDLE] = DRAW_IDLE,
                                                   [TRACE_RUNTIME] = DRAW_RUNTIME,
                                                   [TRACE_TASK] = DRAW_TASK,
                                                   [TRACE_MAIN] = DRAW_PROGRAM};
    double open = (double)(t->open_ns - run->start_ns);
    draw_row_clear(&c->line);
    for (size_t i = 0; i < t->stretch_count; i++) {
        const trace_stretch *v = &t->stretches[i];
        const draw_span at = {open + (double)v->start_ns, open + (double)trace_stretch_end(t, i)};
        double cpu = draw_processor_part(t, i);
        draw_row_fill(&c->line, at, (int)shares[v->kind], cpu);
        draw_row_fill(&c->line, at, v->kind == TRACE_RUNTIME ? DRAW_DELAYED : DRAW_WAITING,
                      1 - cpu);
    }
}

/* A rank is busy in tasks (with the processor or not) and in the program. Time in Ferry without the
 * processor is waiting, and counts neither as busy nor as idle. Before its opening and after its
 * closing a rank is idle. */
static void draw_parts(const chart *c, const trace_run *run, int rank, double y)
{
    const trace_rank *t = &run->rank[rank];
    draw_shares s = draw_shares_of(t);
    double all = fmax(1, span(run));
    double runtime = 100 * (double)s.ns[DRAW_RUNTIME] / all;
    double delayed = 100 * (double)s.ns[DRAW_DELAYED] / all;
    double busy = 100 * (double)(s.ns[DRAW_TASK] + s.ns[DRAW_WAITING] + s.ns[DRAW_PROGRAM]) / all;
    fprintf(c->out, "<text x=\"%d\" y=\"%.1f\" class=\"s\" text-anchor=\"end\">rank %d</text>",
            LEFT - 8, y, rank);
    fprintf(c->out, "<text x=\"%d\" y=\"%.1f\" class=\"s\">", LEFT + WIDE + 10, y);
    if (t->present) {
        fprintf(c->out, "busy %.1f%%, runtime %.2f%%, ", busy, runtime);
        if (delayed >= 0.05)
            fprintf(c->out, "waiting %.1f%%, ", delayed);
        fprintf(c->out, "idle %.1f%%</text>\n", fmax(0, 100 - busy - runtime - delayed));
    } else {
        fputs("left no trace</text>\n", c->out);
    }
}

static void draw_rows(const chart *c, const trace_run *run, double y)
{
    fprintf(c->out, "<g stroke-width=\"%.2f\" fill=\"none\" shape-rendering=\"crispEdges\">\n",
            c->row > 6 ? c->row - 2 : c->row + 0.05);
    for (int rank = 0; rank < run->ranks; rank++) {
        fill_row(c, run, &run->rank[rank]);
        draw_row_put(c->out, &c->line, draw_share_colours, LEFT, y + (rank + 0.5) * c->row);
    }
    fputs("</g>\n", c->out);
    for (int rank = 0; rank < run->ranks; rank += draw_row_every(c->row))
        draw_parts(c, run, rank, y + (rank + 0.5) * c->row + 4);
}

static void draw_axis(const chart *c, double y, double height)
{
    double step = draw_step(c->end_ns);
    for (double t = 0; t <= c->end_ns * 1.0001; t += step) {
        char label[32];
        draw_duration(label, t);
        fprintf(c->out,
                "<path d=\"M%.1f %.1fv%.1f\" stroke=\"#c8ccd2\" stroke-width=\"0.7\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" class=\"s\" text-anchor=\"middle\">%s</text>\n",
                x_of(c, t), y - 4, height + 10, x_of(c, t), y + height + 22, t == 0 ? "0" : label);
    }
}

static void draw_title(const chart *c, const trace_run *run, double y)
{
    const trace_rank *told = draw_told(run);
    fprintf(c->out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"600\">scheduler ", LEFT, y - 36);
    draw_text(c->out, told != NULL && told->scheduler != NULL ? told->scheduler : "?");
    fprintf(c->out, ", %d ranks", run->ranks);
    if (run->during != NULL) {
        fputs(", during ", c->out);
        draw_text(c->out, run->during);
    }
    fprintf(c->out, "</text>\n<text x=\"%d\" y=\"%.1f\" class=\"s\">", LEFT, y - 20);
    draw_text_end(c->out, told != NULL && told->command != NULL ? told->command : run->folder,
                  WIDE / LETTER);
    fputs("</text>\n", c->out);
}

static void draw_panel(const chart *c, const trace_run *run, double y)
{
    double height = run->ranks * c->row, end = x_of(c, span(run));
    bool at_edge = end > LEFT + WIDE - 60;
    char length[32];
    draw_duration(length, span(run));
    draw_axis(c, y, height);
    draw_title(c, run, y);
    draw_rows(c, run, y);
    fprintf(c->out,
            "<path d=\"M%.1f %.1fv%.1f\" stroke=\"#16212e\" stroke-width=\"1.2\"/><text "
            "x=\"%.1f\" y=\"%.1f\" class=\"s\" text-anchor=\"%s\">%s</text>\n",
            end, y - 14, height + 18, at_edge ? end - 4 : end + 4, y - 5, at_edge ? "end" : "start",
            length);
}

static void draw_panels(const chart *c, const trace_run *runs, int run_count)
{
    double y = TOP, height = TOP - GAP + BELOW;
    for (int i = 0; i < run_count; i++)
        height += runs[i].ranks * c->row + GAP;
    fprintf(c->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "font-family=\"Helvetica,Arial,sans-serif\" font-size=\"13\" fill=\"#16212e\">\n"
            "<style>.s{font-size:11px;fill:#52606d}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            LEFT + WIDE + RIGHT, height, LEFT + WIDE + RIGHT);
    (void)draw_share_keys(c->out, LEFT);
    for (int i = 0; i < run_count; i++) {
        draw_panel(c, &runs[i], y);
        y += runs[i].ranks * c->row + GAP;
    }
    fputs("</svg>\n", c->out);
}

void draw_load(FILE *out, const trace_run *runs, int run_count)
{
    chart c = {.out = out, .end_ns = 1};
    int rows = 0;
    for (int i = 0; i < run_count; i++) {
        rows += runs[i].ranks;
        c.end_ns = fmax(c.end_ns, span(&runs[i]));
    }
    c.row = draw_row_height(rows);
    if (draw_row_init(&c.line, DRAW_SHARES, c.end_ns, WIDE, rows))
        draw_panels(&c, runs, run_count);
    free(c.line.ns);
}
