#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/draw.h"

enum { STROKES_MAX = 200000, BINS_MIN = 300 };

bool draw_row_init(draw_row *row, int colours, double end_ns, int width, int rows)
{
    int most = 2 * width, bins = STROKES_MAX / rows;
    bins = bins > most ? most : bins < BINS_MIN ? BINS_MIN : bins;
    *row = (draw_row){.bins = bins,
                      .colours = colours,
                      .bin_ns = fmax(1, end_ns) / bins,
                      .width = (double)width / bins,
                      .ns = calloc((size_t)bins * (size_t)colours, sizeof *row->ns)};
    return row->ns != NULL;
}

double draw_row_height(int rows)
{
    return rows <= 16 ? 26 : rows <= 64 ? 13 : fmax(2.5, 800.0 / rows);
}

int draw_row_every(double height)
{
    int every = 1;
    while (every * height < 13)
        every *= 2;
    return every;
}

void draw_row_clear(const draw_row *row)
{
    memset(row->ns, 0, sizeof *row->ns * (size_t)row->bins * (size_t)row->colours);
}

void draw_row_fill(const draw_row *row, draw_span at, int colour, double part)
{
    int last = row->bins - 1;
    for (int b = (int)fmin(at.from_ns / row->bin_ns, last); b <= last && b * row->bin_ns < at.to_ns;
         b++) {
        double ns = fmin(at.to_ns, (b + 1) * row->bin_ns) - fmax(at.from_ns, b * row->bin_ns);
        if (ns > 0)
            row->ns[b * row->colours + colour] += ns * part;
    }
}

/* The colour that filled most of a bin; -1: the bin is empty. */
static int fullest(const draw_row *row, int bin)
{
    int most = -1;
    double ns = 0;
    for (int colour = 0; colour < row->colours; colour++)
        if (row->ns[bin * row->colours + colour] > ns) {
            ns = row->ns[bin * row->colours + colour];
            most = colour;
        }
    return most;
}

void draw_row_put(FILE *out, const draw_row *row, const char *const *colours, double x, double y)
{
    for (int colour = 0; colour < row->colours; colour++) {
        bool open = false;
        for (int b = 0; b < row->bins;) {
            int first = b, kind = fullest(row, b);
            while (b < row->bins && fullest(row, b) == kind)
                b++;
            if (kind != colour)
                continue;
            if (!open)
                fprintf(out, "<path stroke=\"%s\" d=\"", colours[colour]);
            open = true;
            fprintf(out, "M%.1f %.1fh%.1f", x + first * row->width, y, (b - first) * row->width);
        }
        if (open)
            fputs("\"/>\n", out);
    }
}

double draw_processor_part(const trace_rank *rank, size_t index)
{
    const trace_stretch *v = &rank->stretches[index];
    if (v->kind == TRACE_RUNTIME) {
        double cpu = (double)trace_stat_of(rank, "runtime_cpu_ns");
        double all = (double)trace_stat_of(rank, "runtime_ns");
        return cpu > 0 && cpu < all ? cpu / all : 1;
    }
    uint64_t ns = trace_stretch_end(rank, index) - v->start_ns;
    bool measured = v->kind == TRACE_TASK && v->cpu_ns != 0 && v->cpu_ns < ns;
    return measured ? (double)v->cpu_ns / (double)ns : 1;
}
