/* Horizontal bars, one per rank. Time is divided into bins of half a pixel, each coloured by what
 * filled most of it; the exact shares stand beside the bar. So the size of the file does not depend
 * on the number of intervals. */
#include "output.h"
#include "sink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLOT_WIDTH 860
#define BINS (2 * PLOT_WIDTH)
#define LEFT 96
#define RIGHT 250
#define TOP 96
#define BOTTOM 64
#define PANEL_GAP 56

static const char *const kind_colour[MESH_LOAD_KINDS] = {"#0072b2", "#e69f00", "#e3e6ea"};
static const char *const kind_name[MESH_LOAD_KINDS] = {"busy", "runtime", "idle"};

typedef struct chart {
    mesh_sink *out;
    double end;      /* of the time axis, seconds */
    double bar, gap; /* height of a bar and of the space below it */
    double *bin;     /* BINS x MESH_LOAD_KINDS seconds */
} chart;

static double panel_end(const mesh_load_panel *p)
{
    double end = p->makespan;
    for (int64_t i = 0; i < p->interval_count && p->makespan <= 0.0; i++) {
        end = fmax(end, p->interval[i].end);
    }
    return end;
}

static double panel_height(const chart *c, const mesh_load_panel *p)
{
    return p->rank_count * (c->bar + c->gap);
}

static void add_interval(const chart *c, const mesh_interval *v)
{
    double width = c->end / BINS, start = fmax(v->start, 0.0), end = fmin(v->end, c->end);
    for (int b = (int)(start / width); b < BINS && b * width < end; b++) {
        double from = fmax(start, b * width), to = fmin(end, (b + 1) * width);
        if (to > from) {
            c->bin[b * MESH_LOAD_KINDS + (int)v->kind] += to - from;
        }
    }
}

static int fullest(const double *bin, double width)
{
    double idle = width - bin[MESH_LOAD_BUSY] - bin[MESH_LOAD_RUNTIME];
    if (bin[MESH_LOAD_BUSY] >= bin[MESH_LOAD_RUNTIME] && bin[MESH_LOAD_BUSY] >= idle) {
        return MESH_LOAD_BUSY;
    }
    return bin[MESH_LOAD_RUNTIME] >= idle ? MESH_LOAD_RUNTIME : MESH_LOAD_IDLE;
}

static void draw_bar(chart *c, const mesh_load_panel *p, int32_t rank, double y)
{
    double total[MESH_LOAD_KINDS] = {0}, own_end = panel_end(p), width = c->end / BINS;
    memset(c->bin, 0, sizeof(double) * BINS * MESH_LOAD_KINDS);
    for (int64_t i = 0; i < p->interval_count; i++) {
        const mesh_interval *v = &p->interval[i];
        if (v->rank == rank && v->kind < MESH_LOAD_KINDS) {
            add_interval(c, v);
            total[v->kind] += fmax(0.0, fmin(v->end, own_end) - fmax(v->start, 0.0));
        }
    }
    int end_bin = (int)ceil(own_end / width - 1e-9);
    end_bin = end_bin > BINS ? BINS : end_bin;
    for (int b = 0; b < end_bin;) {
        int first = b, kind = fullest(&c->bin[b * MESH_LOAD_KINDS], width);
        while (b < end_bin && fullest(&c->bin[b * MESH_LOAD_KINDS], width) == kind) {
            b++;
        }
        mesh_sink_print(
            c->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
            LEFT + first * 0.5, y, (b - first) * 0.5, c->bar, kind_colour[kind]);
    }
    double busy = 100.0 * total[MESH_LOAD_BUSY] / own_end,
           own = 100.0 * total[MESH_LOAD_RUNTIME] / own_end;
    double middle = y + c->bar / 2 + 4;
    mesh_sink_print(c->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">rank %d</text>\n",
                    LEFT - 10, middle, rank);
    mesh_sink_print(
        c->out,
        "<text x=\"%d\" y=\"%.1f\" class=\"s\">busy %.1f%%  runtime %.2f%%  idle %.1f%%</text>\n",
        LEFT + PLOT_WIDTH + 10, middle, busy, own, fmax(0.0, 100.0 - busy - own));
}

static double tick_step(double end)
{
    double step = pow(10.0, floor(log10(end / 5.0)));
    return end / step > 25.0 ? 5.0 * step : end / step > 12.0 ? 2.0 * step : step;
}

static void draw_grid(chart *c, double y, double height)
{
    double step = tick_step(c->end);
    for (double t = 0.0; t <= c->end * 1.0001; t += step) {
        double x = LEFT + t / c->end * PLOT_WIDTH;
        mesh_sink_print(c->out,
                        "<path d=\"M%.1f %.1fv%.1f\" stroke=\"#c8ccd2\" stroke-width=\"0.7\"/>\n",
                        x, y - 4, height + 6);
        mesh_sink_print(
            c->out, "<text x=\"%.1f\" y=\"%.1f\" class=\"s\" text-anchor=\"middle\">%g</text>\n", x,
            y + height + 16, t);
    }
}

static void draw_panel(chart *c, const mesh_load_panel *p, double y)
{
    double height = panel_height(c, p), own_end = panel_end(p);
    double x = LEFT + own_end / c->end * PLOT_WIDTH;
    draw_grid(c, y, height);
    mesh_sink_print(c->out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"600\">", LEFT, y - 12);
    mesh_sink_xml(c->out, p->title != NULL ? p->title : "");
    mesh_sink_print(c->out, "</text>\n");
    for (int32_t r = 0; r < p->rank_count; r++) {
        draw_bar(c, p, r, y + r * (c->bar + c->gap));
    }
    bool at_edge = x > LEFT + PLOT_WIDTH - 60;
    mesh_sink_print(c->out, "<path d=\"M%.1f %.1fv%.1f\" stroke=\"#222\" stroke-width=\"1.2\"/>\n",
                    x, y - 8, height + 10);
    mesh_sink_print(c->out,
                    "<text x=\"%.1f\" y=\"%.1f\" class=\"s\" text-anchor=\"%s\">%.3g s</text>\n",
                    at_edge ? x - 4 : x + 4, y - 12, at_edge ? "end" : "start", own_end);
}

static void draw_frame(chart *c, const char *title, double height)
{
    double width = LEFT + PLOT_WIDTH + RIGHT;
    mesh_sink_print(c->out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                    "width=\"%.0f\" height=\"%.0f\" font-family=\"Helvetica,Arial,sans-serif\" "
                    "font-size=\"13\" fill=\"#222\">\n",
                    width, height, width, height);
    mesh_sink_print(c->out,
                    "<style>.s{font-size:11px;fill:#444;white-space:pre}</style>\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                    "<text x=\"%d\" y=\"34\" font-size=\"19\" font-weight=\"600\">",
                    LEFT);
    mesh_sink_xml(c->out, title);
    mesh_sink_print(c->out, "</text>\n");
    for (int k = 0; k < MESH_LOAD_KINDS; k++) {
        double x = LEFT + PLOT_WIDTH - 250 + 90 * k;
        mesh_sink_print(c->out,
                        "<rect x=\"%.0f\" y=\"23\" width=\"14\" height=\"14\" fill=\"%s\"/>"
                        "<text x=\"%.0f\" y=\"34\">%s</text>\n",
                        x, kind_colour[k], x + 20, kind_name[k]);
    }
    mesh_sink_print(c->out, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"middle\">seconds</text>\n",
                    LEFT + PLOT_WIDTH / 2, height - 18);
}

int mesh_write_load_svg(const char *path, const char *title, const mesh_load_panel *panel,
                        int32_t count, mesh_log *log)
{
    mesh_sink s;
    int32_t ranks = 0;
    chart c = {.out = &s, .bin = malloc(sizeof(double) * BINS * MESH_LOAD_KINDS)};
    for (int32_t i = 0; i < count; i++) {
        ranks += panel[i].rank_count;
        c.end = fmax(c.end, panel_end(&panel[i]));
    }
    c.end = c.end > 0.0 ? c.end : 1.0;
    c.bar = ranks <= 12 ? 22.0 : ranks <= 40 ? 13.0 : 7.0;
    c.gap = ranks <= 12 ? 8.0 : ranks <= 40 ? 4.0 : 2.0;
    if (c.bin == NULL) {
        return mesh_fail_memory(log);
    }
    if (mesh_sink_open(&s, path, log) != 0) {
        free(c.bin);
        return -1;
    }
    double y = TOP, height = TOP + BOTTOM;
    for (int32_t i = 0; i < count; i++) {
        height += panel_height(&c, &panel[i]) + (i > 0 ? PANEL_GAP : 0);
    }
    draw_frame(&c, title, height);
    for (int32_t i = 0; i < count; i++) {
        draw_panel(&c, &panel[i], y);
        y += panel_height(&c, &panel[i]) + PANEL_GAP;
    }
    mesh_sink_print(&s, "</svg>\n");
    free(c.bin);
    return mesh_sink_close(&s, false, log);
}
