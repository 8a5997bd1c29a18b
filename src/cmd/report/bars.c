/* Bars: a panel per run, with an upright bar per rank. The parts of a bar are the uses of the
 * rank's time. All panels have one scale, so that runs can be compared. A dashed line shows where
 * the work would end if it were spread evenly. */
#include <math.h>

#include "cmd/report/draw.h"

enum {
    LEFT = 76,
    TOP = 96,
    WIDE = 1040,
    NARROW = 500,
    PLOT = 300,
    GAP_X = 84,
    GAP_Y = 108,
    BAR_MAX = 90,
    LETTER = 7 /* of bold text, in width */
};

typedef struct panel {
    FILE *out;
    const trace_run *run;
    double x, y, width; /* of the plot */
    double end_ns;      /* of the scale */
} panel;

static double height_of(const panel *p, double ns)
{
    return p->end_ns > 0 ? ns / p->end_ns * PLOT : 0;
}

static double span(const trace_run *run)
{
    return (double)(run->end_ns - run->start_ns);
}

static void draw_axis(const panel *p)
{
    double step = draw_step(p->end_ns);
    for (double t = 0; t <= p->end_ns * 1.0001; t += step) {
        char label[32];
        double y = p->y + PLOT - height_of(p, t);
        draw_duration(label, t);
        fprintf(p->out,
                "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#dfe3e8\"/><text x=\"%.1f\" y=\"%.1f\" "
                "class=\"s\" text-anchor=\"end\">%s</text>\n",
                p->x, y, p->width, p->x - 8, y + 4, t == 0 ? "0" : label);
    }
    int ranks = p->run->ranks;
    int every = ranks <= 16 ? 1 : ranks <= 64 ? 8 : (ranks + 63) / 64 * 8;
    for (int rank = 0; rank < ranks; rank += every)
        fprintf(p->out,
                "<text x=\"%.1f\" y=\"%.1f\" class=\"s\" text-anchor=\"middle\">%d</text>\n",
                p->x + (rank + 0.5) * p->width / ranks, p->y + PLOT + 16, rank);
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" class=\"s\" text-anchor=\"middle\">rank</text>\n",
            p->x + p->width / 2, p->y + PLOT + 32);
}

static void draw_rank(const panel *p, int rank)
{
    const trace_rank *t = &p->run->rank[rank];
    double slot = p->width / p->run->ranks;
    double gap = slot > BAR_MAX ? slot - BAR_MAX : slot > 6 ? slot * 0.14 : 0;
    double x = p->x + rank * slot + gap / 2, y = p->y + PLOT;
    if (!t->present) {
        fprintf(p->out,
                "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"3\" fill=\"#c0392b\">"
                "<title>rank %d left no trace</title></rect>\n",
                x, y - 3, slot - gap, rank);
        return;
    }
    draw_shares s = draw_shares_of(t);
    double whole = (double)(t->close_ns - t->open_ns);
    for (int share = 0; share < DRAW_SHARES; share++) {
        double height = height_of(p, (double)s.ns[share]);
        y -= height;
        if (height < 0.02)
            continue;
        fprintf(p->out,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>"
                "rank %d: %s %.2f%%</title></rect>\n",
                x, y, slot - gap, height, draw_share_colours[share], rank, draw_share_names[share],
                whole > 0 ? 100 * (double)s.ns[share] / whole : 0);
    }
}

/* The mean over the ranks of the time in tasks, with the processor or without. */
static double mean_work(const trace_run *run)
{
    double sum = 0;
    for (int rank = 0; rank < run->ranks; rank++) {
        draw_shares s = draw_shares_of(&run->rank[rank]);
        sum += (double)(s.ns[DRAW_TASK] + s.ns[DRAW_WAITING]);
    }
    return sum / run->ranks;
}

static void draw_title(const panel *p)
{
    const trace_run *run = p->run;
    char length[32], mean[32];
    uint64_t runtime = 0, all = 0;
    const trace_rank *told = draw_told(run);
    for (int rank = 0; rank < run->ranks; rank++) {
        const trace_rank *t = &run->rank[rank];
        runtime += draw_shares_of(t).ns[DRAW_RUNTIME];
        all += t->close_ns - t->open_ns;
    }
    draw_duration(length, span(run));
    draw_duration(mean, mean_work(run));
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"600\">", p->x, p->y - 34);
    draw_text_end(p->out, told != NULL && told->command != NULL ? told->command : run->folder,
                  (size_t)p->width / LETTER);
    fputs("</text>\n", p->out);
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" class=\"s\">%d ranks, ", p->x, p->y - 16,
            run->ranks);
    draw_text(p->out, told != NULL && told->scheduler != NULL ? told->scheduler : "no scheduler");
    fprintf(p->out, ": %s; %s of work per rank; runtime %.3f%%</text>\n", length, mean,
            all > 0 ? 100 * (double)runtime / (double)all : 0);
}

static void draw_panel(const panel *p)
{
    draw_axis(p);
    draw_title(p);
    fputs("<g shape-rendering=\"crispEdges\">\n", p->out);
    for (int rank = 0; rank < p->run->ranks; rank++)
        draw_rank(p, rank);
    fputs("</g>\n", p->out);
    double y = p->y + PLOT - height_of(p, mean_work(p->run));
    fprintf(p->out,
            "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#16212e\" stroke-dasharray=\"5 4\"><title>the "
            "work, spread evenly</title></path>\n",
            p->x, y, p->width);
}

static void draw_legend(FILE *out)
{
    double x = draw_share_keys(out, LEFT);
    fprintf(out,
            "<path d=\"M%.1f 29h22\" stroke=\"#16212e\" stroke-dasharray=\"5 4\"/><text x=\"%.1f\" "
            "y=\"34\">the work, spread evenly</text>\n",
            x, x + 28);
}

void draw_bars(FILE *out, const trace_run *runs, int run_count)
{
    int columns = run_count == 1 ? 1 : 2, rows = (run_count + columns - 1) / columns;
    int width = LEFT + WIDE + 40, height = TOP + rows * (PLOT + GAP_Y);
    double end_ns = 1;
    for (int i = 0; i < run_count; i++)
        end_ns = fmax(end_ns, span(&runs[i]));
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "font-family=\"Helvetica,Arial,sans-serif\" font-size=\"13\" fill=\"#16212e\">\n"
            "<style>.s{font-size:11px;fill:#52606d}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, height, width);
    draw_legend(out);
    for (int i = 0; i < run_count; i++) {
        const panel p = {.out = out,
                         .run = &runs[i],
                         .x = LEFT + (i % columns) * (NARROW + GAP_X - 44),
                         .y = TOP + 14 + (i / columns) * (PLOT + GAP_Y),
                         .width = columns == 1 ? WIDE : NARROW - 44,
                         .end_ns = end_ns};
        draw_panel(&p);
    }
    fputs("</svg>\n", out);
}
