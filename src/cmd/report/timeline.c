/* Timeline: a row per rank, from the opening of the first to the closing of the last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/draw.h"

enum { LEFT = 76, WIDE = 1040, RIGHT = 40, LOAD = 84, LOAD_TOP = 74, ROWS_TOP = 196 };

/* Colours: idle, runtime, program, runtime without the processor, then tasks by handler, those of
 * the longest first, each with the processor and without. */
enum { HANDLERS = 7, DELAYED = 3, FIRST_TASK = 4, COLOURS = FIRST_TASK + 2 * HANDLERS };

static const char *const colours[COLOURS] = {
    "#eceff2", "#e08a00", "#7d8794", "#f3d29b",                                             //
    "#0b6fa8", "#9cc9e3", "#00966b", "#9ad6c3", "#b8407a", "#e3b0c9", "#6a51a3", "#c3b8dd", //
    "#a6611a", "#dcc09c", "#4d7c0f", "#c1d79b", "#34495e", "#b3bcc6"};

typedef struct chart {
    FILE *out;
    const trace_run *run;
    double row; /* the height of a row */
    int place[TRACE_HANDLERS_MAX];
    uint32_t shown[HANDLERS]; /* handlers by their place */
    int shown_count;
    draw_row line; /* the row that is drawn */
    double *load;  /* bins x 2: ns in tasks, and of these on the processor */
} chart;

static int colour_of(const chart *c, const trace_stretch *v)
{
    switch (v->kind) {
    case TRACE_IDLE:
        return 0;
    case TRACE_RUNTIME:
        return 1;
    case TRACE_MAIN:
        return 2;
    default:
        return FIRST_TASK + 2 * c->place[v->handler];
    }
}

static void fill_row(const chart *c, const trace_rank *t)
{
    double open = (double)(t->open_ns - c->run->start_ns);
    draw_row_clear(&c->line);
    for (size_t i = 0; i < t->stretch_count; i++) {
        const trace_stretch *v = &t->stretches[i];
        const draw_span at = {open + (double)v->start_ns, open + (double)trace_stretch_end(t, i)};
        double cpu = draw_processor_part(t, i);
        draw_row_fill(&c->line, at, colour_of(c, v), cpu);
        draw_row_fill(&c->line, at, v->kind == TRACE_TASK ? colour_of(c, v) + 1 : DELAYED, 1 - cpu);
    }
}

/* Adds the row's time in tasks to the strip. */
static void add_load(const chart *c)
{
    for (int b = 0; b < c->line.bins; b++)
        for (int colour = FIRST_TASK; colour < COLOURS; colour++) {
            double ns = c->line.ns[b * COLOURS + colour];
            c->load[2 * b] += ns;
            c->load[2 * b + 1] += (colour - FIRST_TASK) % 2 == 0 ? ns : 0;
        }
}

static void draw_rows(chart *c)
{
    int ranks = c->run->ranks;
    fprintf(c->out, "<g stroke-width=\"%.2f\" fill=\"none\" shape-rendering=\"crispEdges\">\n",
            c->row > 6 ? c->row - 2 : c->row + 0.05);
    for (int rank = 0; rank < ranks; rank++) {
        fill_row(c, &c->run->rank[rank]);
        add_load(c);
        draw_row_put(c->out, &c->line, colours, LEFT, ROWS_TOP + (rank + 0.5) * c->row);
    }
    fputs("</g>\n", c->out);
    int every = draw_row_every(c->row);
    for (int rank = 0; rank < ranks; rank += every)
        fprintf(c->out, "<text x=\"%d\" y=\"%.1f\" class=\"s\" text-anchor=\"end\">%s%d</text>\n",
                LEFT - 8, ROWS_TOP + (rank + 0.5) * c->row + 4, rank == 0 ? "rank " : "", rank);
}

/* An area of the strip above the rows. Part 0: time in tasks; 1: of that, with the processor. */
static void draw_area(const chart *c, int part, const char *colour)
{
    double width = c->line.width, all = c->line.bin_ns * c->run->ranks;
    fprintf(c->out, "<path fill=\"%s\" d=\"M%d %d", colour, LEFT, LOAD_TOP + LOAD);
    for (int b = 0; b < c->line.bins; b++)
        fprintf(c->out, "L%.1f %.1fh%.1f", LEFT + b * width,
                LOAD_TOP + LOAD * (1 - fmin(1, c->load[2 * b + part] / all)), width);
    fprintf(c->out, "V%dz\"/>\n", LOAD_TOP + LOAD);
}

static void draw_strip(const chart *c)
{
    fprintf(c->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f5f7f9\"/>\n", LEFT,
            LOAD_TOP, WIDE, LOAD);
    draw_area(c, 0, "#9cc9e3");
    draw_area(c, 1, "#0b6fa8");
    fprintf(c->out,
            "<text x=\"%d\" y=\"%d\" class=\"s\" text-anchor=\"end\">%d</text><text x=\"%d\" "
            "y=\"%d\" class=\"s\" text-anchor=\"end\">0</text><text x=\"%d\" y=\"%d\" "
            "class=\"s\">ranks in tasks</text>\n",
            LEFT - 8, LOAD_TOP + 8, c->run->ranks, LEFT - 8, LOAD_TOP + LOAD, LEFT, LOAD_TOP - 6);
}

/* A tick for each object that was sent away, under the strip. */
static void draw_moves(const chart *c)
{
    double all = (double)(c->run->end_ns - c->run->start_ns);
    char *seen = calloc((size_t)WIDE * 2 + 1, 1);
    size_t count = 0;
    fputs("<path stroke=\"#c0392b\" stroke-width=\"0.6\" d=\"", c->out);
    for (int rank = 0; seen != NULL && rank < c->run->ranks; rank++)
        for (size_t i = 0; i < c->run->rank[rank].move_count; i++, count++) {
            double at = (double)c->run->rank[rank].moves[i].time_ns - (double)c->run->start_ns;
            if (!(at >= 0 && at <= all) || seen[(int)(at / all * WIDE * 2)]++ != 0)
                continue;
            seen[(int)(at / all * WIDE * 2)] = 1;
            fprintf(c->out, "M%.1f %dv8", LEFT + at / all * WIDE, LOAD_TOP + LOAD + 4);
        }
    fprintf(
        c->out,
        "\"/>\n<text x=\"%d\" y=\"%d\" class=\"s\" text-anchor=\"end\">%zu objects sent away by "
        "the scheduler</text>\n",
        LEFT + WIDE, LOAD_TOP - 6, count);
    free(seen);
}

static void draw_grid(const chart *c)
{
    double all = (double)(c->run->end_ns - c->run->start_ns), step = draw_step(all);
    double bottom = ROWS_TOP + c->run->ranks * c->row;
    for (double t = 0; t <= all * 1.0001 && all > 0; t += step) {
        char label[32];
        draw_duration(label, t);
        fprintf(c->out,
                "<path d=\"M%.1f %.1fv6\" stroke=\"#8a96a3\"/><text x=\"%.1f\" y=\"%.1f\" "
                "class=\"s\" text-anchor=\"middle\">%s</text>\n",
                LEFT + t / all * WIDE, bottom + 3, LEFT + t / all * WIDE, bottom + 22,
                t == 0 ? "0" : label);
    }
}

/* Gives the handlers with most time a colour each. */
static void choose_handlers(chart *c)
{
    static const double none = -1;
    double ns[TRACE_HANDLERS_MAX] = {0};
    for (int rank = 0; rank < c->run->ranks; rank++) {
        const trace_rank *t = &c->run->rank[rank];
        for (size_t i = 0; i < t->stretch_count; i++)
            if (t->stretches[i].kind == TRACE_TASK)
                ns[t->stretches[i].handler] +=
                    (double)(trace_stretch_end(t, i) - t->stretches[i].start_ns);
    }
    for (int i = 0; i < TRACE_HANDLERS_MAX; i++)
        c->place[i] = HANDLERS - 1;
    while (c->shown_count < HANDLERS) {
        int most = 0;
        for (int i = 1; i < TRACE_HANDLERS_MAX; i++)
            most = ns[i] > ns[most] ? i : most;
        if (!(ns[most] > 0))
            return;
        c->place[most] = c->shown_count;
        c->shown[c->shown_count++] = (uint32_t)most;
        ns[most] = none;
    }
}

static double draw_key(const chart *c, double x, int colour, const char *name)
{
    fprintf(c->out,
            "<rect x=\"%.1f\" y=\"22\" width=\"14\" height=\"14\" rx=\"2\" fill=\"%s\"/><text "
            "x=\"%.1f\" y=\"34\">",
            x, colours[colour], x + 20);
    char shorter[25];
    (void)snprintf(shorter, sizeof shorter, "%s", name);
    draw_text(c->out, shorter);
    fputs("</text>\n", c->out);
    return x + 40 + 7.2 * (double)strlen(shorter);
}

static void draw_legend(const chart *c)
{
    double x = LEFT;
    const trace_rank *told = draw_told(c->run);
    for (int i = 0; i < c->shown_count && x < 620; i++) {
        char name[32];
        bool others = i == HANDLERS - 1;
        x = draw_key(c, x, FIRST_TASK + 2 * i,
                     others ? "others" : draw_handler_name(told, c->shown[i], name));
    }
    if (c->shown_count > 0)
        x = draw_key(c, x, FIRST_TASK + 1, "pale: no processor");
    x = draw_key(c, x, 2, "program");
    x = draw_key(c, x, 1, "runtime");
    (void)draw_key(c, x, 0, "idle");
}

static void draw_whole(chart *c)
{
    int width = LEFT + WIDE + RIGHT;
    double height = ROWS_TOP + c->run->ranks * c->row + 40;
    fprintf(c->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "font-family=\"Helvetica,Arial,sans-serif\" font-size=\"13\" fill=\"#16212e\">\n"
            "<style>.s{font-size:11px;fill:#52606d}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, height, width);
    draw_legend(c);
    draw_rows(c);
    draw_strip(c);
    draw_moves(c);
    draw_grid(c);
    fputs("</svg>\n", c->out);
}

void draw_timeline(FILE *out, const trace_run *run)
{
    chart c = {.out = out, .run = run, .row = draw_row_height(run->ranks)};
    bool room =
        draw_row_init(&c.line, COLOURS, (double)(run->end_ns - run->start_ns), WIDE, run->ranks);
    c.load = room ? calloc((size_t)c.line.bins * 2, sizeof *c.load) : NULL;
    if (c.load != NULL) {
        choose_handlers(&c);
        draw_whole(&c);
    }
    free(c.line.ns);
    free(c.load);
}
