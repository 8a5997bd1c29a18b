/* The map: on the left the domain, on the right a panel with the title, a magnified part, the
 * legend and the scale bar.
 *
 * Sub-domains are filled outlines in their rank's colour; paler shades tell neighbours apart. The
 * triangles' edges are drawn over them, each sub-domain's in one path with relative coordinates of
 * a tenth of a pixel, which takes some fifteen bytes per edge. */
#include "output.h"
#include "sink.h"

#include "kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAP_SIDE_MAX 1000.0
#define MARGIN 36.0
#define PANEL 330.0
#define LENS 290.0
#define ALL_TRIANGLES_MAX 60000
#define EDGE_PIXELS_MIN 2.5
/* About this many triangles should show under the lens. */
#define LENS_TRIANGLES 1600.0
#define LENS_EDGES_MAX 40000

typedef struct map {
    mesh_sink *out;
    const mesh_picture *p;
    double scale, left, top; /* of the view being drawn: pixels per grid unit, and its corner */
    double x0, y1;           /* grid place of that corner */
    double width, height;    /* of the whole picture */
    double map_width, map_height;
    mesh_point low, high;
    int64_t triangles;
} map;

typedef struct pen {
    mesh_sink *out;
    long x, y;
    bool down;
} pen;

static long to_x(const map *m, mesh_point p)
{
    return lround((m->left + (p.x - m->x0) * m->scale) * 10.0);
}

static long to_y(const map *m, mesh_point p)
{
    return lround((m->top + (m->y1 - p.y) * m->scale) * 10.0);
}

static void pen_move(pen *n, long x, long y)
{
    if (!n->down) {
        mesh_sink_print(n->out, "M%ld %ld", x, y);
    } else if (x != n->x || y != n->y) {
        mesh_sink_print(n->out, "m%ld %ld", x - n->x, y - n->y);
    }
    n->down = true;
    n->x = x;
    n->y = y;
}

static void pen_draw(pen *n, long x, long y)
{
    mesh_sink_print(n->out, "l%ld %ld", x - n->x, y - n->y);
    n->x = x;
    n->y = y;
}

static bool is_border(const mesh_sub *sub, int32_t n)
{
    return n < 0 && (sub->piece[~n].tri[0] < 0 || sub->piece[~n].tri[1] < 0);
}

/* For each point the border edge that starts there, as 3 t + i; points where borders touch keep
 * one, which is good enough for a picture. */
static int32_t *find_borders(const mesh_sub *sub)
{
    int32_t *from = malloc(((size_t)sub->head.point_count + 1) * sizeof *from);
    if (from == NULL) {
        return NULL;
    }
    memset(from, -1, (size_t)sub->head.point_count * sizeof *from);
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            if (is_border(sub, sub->tri[t].n[i])) {
                from[sub->tri[t].v[mesh_next3(i)]] = sub->tri[t].v[mesh_prev3(i)];
            }
        }
    }
    return from;
}

static void draw_outline(const map *m, const mesh_sub *sub, int32_t *from)
{
    for (int32_t v = 0; v < sub->head.point_count; v++) {
        pen n = {m->out, 0, 0, false};
        if (from[v] < 0) {
            continue;
        }
        pen_move(&n, to_x(m, sub->point[v]), to_y(m, sub->point[v]));
        for (int32_t at = v; from[at] >= 0;) {
            int32_t next = from[at];
            from[at] = -1;
            at = next;
            long x = to_x(m, sub->point[at]), y = to_y(m, sub->point[at]);
            /* Steps below a third of a pixel are not seen. */
            if (labs(x - n.x) + labs(y - n.y) > 3) {
                pen_draw(&n, x, y);
            }
        }
        mesh_sink_print(m->out, "z");
    }
}

static int draw_area(const map *m, const mesh_sub *sub)
{
    char colour[8];
    int32_t *from = find_borders(sub);
    if (from == NULL) {
        return -1;
    }
    double pale = 0.18 + 0.14 * (sub->head.index * 7 % 4);
    mesh_sink_print(m->out, "<path fill=\"%s\" fill-rule=\"evenodd\" d=\"",
                    mesh_rank_colour(sub->head.rank, pale, colour));
    draw_outline(m, sub, from);
    mesh_sink_print(m->out, "\"/>\n");
    free(from);
    return 0;
}

typedef struct window {
    mesh_point low, high;
    double shortest2; /* edges shorter than this are left out, in grid units squared */
    int64_t left;     /* so many more edges may be drawn */
} window;

static bool in_window(const window *w, mesh_point a, mesh_point b)
{
    return (a.x >= w->low.x || b.x >= w->low.x) && (a.x <= w->high.x || b.x <= w->high.x) &&
           (a.y >= w->low.y || b.y >= w->low.y) && (a.y <= w->high.y || b.y <= w->high.y);
}

/* Inner edges once each; `borders` draws the others instead. */
static void draw_edges(const map *m, const mesh_sub *sub, window *w, bool borders)
{
    pen n = {m->out, 0, 0, false};
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            int32_t far = sub->tri[t].n[i];
            mesh_point a = sub->point[sub->tri[t].v[mesh_next3(i)]];
            mesh_point b = sub->point[sub->tri[t].v[mesh_prev3(i)]];
            bool wanted = borders ? far < 0 : far > t;
            if (!wanted || !in_window(w, a, b) || (double)mesh_length2(a, b) < w->shortest2 ||
                w->left <= 0) {
                continue;
            }
            w->left--;
            pen_move(&n, to_x(m, a), to_y(m, a));
            pen_draw(&n, to_x(m, b), to_y(m, b));
        }
    }
}

static int draw_view(const map *m, window *w)
{
    const mesh_picture *p = m->p;
    mesh_sink_print(m->out, "<g transform=\"scale(.1)\">\n");
    for (int32_t s = 0; s < p->sub_count; s++) {
        if (draw_area(m, p->sub[s]) != 0) {
            return -1;
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        mesh_sink_print(
            m->out, "<g fill=\"none\" stroke=\"#111\" stroke-opacity=\"%s\" stroke-width=\"%s\">\n",
            pass == 0 ? ".45" : ".8", pass == 0 ? "3" : "6");
        for (int32_t s = 0; s < p->sub_count; s++) {
            mesh_sink_print(m->out, "<path d=\"M0 0");
            draw_edges(m, p->sub[s], w, pass == 1);
            mesh_sink_print(m->out, "\"/>\n");
        }
        mesh_sink_print(m->out, "</g>\n");
        w->shortest2 = 0.0;
    }
    mesh_sink_print(m->out, "</g>\n");
    return 0;
}

static void find_extent(map *m)
{
    m->low = (mesh_point){INT32_MAX, INT32_MAX};
    m->high = (mesh_point){0, 0};
    for (int32_t s = 0; s < m->p->sub_count; s++) {
        const mesh_sub *sub = m->p->sub[s];
        m->triangles += sub->head.tri_count;
        for (int32_t i = 0; i < sub->head.point_count; i++) {
            mesh_point p = sub->point[i];
            m->low.x = p.x < m->low.x ? p.x : m->low.x;
            m->low.y = p.y < m->low.y ? p.y : m->low.y;
            m->high.x = p.x > m->high.x ? p.x : m->high.x;
            m->high.y = p.y > m->high.y ? p.y : m->high.y;
        }
    }
}

static int draw_map(map *m)
{
    window w = {m->low, m->high, 0.0, INT64_MAX};
    if (m->triangles > ALL_TRIANGLES_MAX) {
        double shortest = EDGE_PIXELS_MIN / m->scale;
        w.shortest2 = shortest * shortest;
        w.left = 3 * ALL_TRIANGLES_MAX;
    }
    return draw_view(m, &w);
}

/* The sub-domain with the smallest triangles, and how large they are. */
static const mesh_sub *find_finest(const map *m, double *area)
{
    const mesh_sub *best = m->p->sub[0];
    *area = INFINITY;
    for (int32_t s = 0; s < m->p->sub_count; s++) {
        const mesh_sub *sub = m->p->sub[s];
        double sum = 0.0;
        for (int32_t t = 0; t < sub->head.tri_count; t++) {
            const int32_t *v = sub->tri[t].v;
            sum += 0.5 * (double)mesh_orient(sub->point[v[0]], sub->point[v[1]], sub->point[v[2]]);
        }
        if (sum / sub->head.tri_count < *area) {
            *area = sum / sub->head.tri_count;
            best = sub;
        }
    }
    return best;
}

/* The part of a sub-domain that is worth a closer look: a piece it shares, best with another rank;
 * otherwise any border. */
static mesh_point find_sight(const map *m, const mesh_sub *sub)
{
    int best_score = -1;
    mesh_point best = sub->point[0];
    for (int32_t p = 1; p < sub->head.piece_count; p++) {
        int32_t a, b, other = sub->edge[sub->piece[p].edge].neighbour;
        bool known = other >= 0 && other < m->p->sub_count;
        int score = !known ? 0 : m->p->sub[other]->head.rank != sub->head.rank ? 2 : 1;
        if (score > best_score) {
            best_score = score;
            mesh_piece_ends(sub, p, &a, &b);
            best = sub->point[a];
        }
    }
    return best;
}

/* A magnified square of the finest part, and its outline on the map. */
static int draw_lens(map *m, double x, double y)
{
    double area, span = (double)(m->high.x - m->low.x) + (m->high.y - m->low.y);
    mesh_point middle = find_sight(m, find_finest(m, &area));
    double side = fmin(sqrt(area * LENS_TRIANGLES), span / 4.0);
    double mx = m->left + (middle.x - side / 2 - m->x0) * m->scale;
    double my = m->top + (m->y1 - middle.y - side / 2) * m->scale, box = side * m->scale;
    mesh_sink_print(m->out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
                    "stroke=\"#000\" stroke-width=\"1.6\"/>\n",
                    mx, my, box, box);
    mesh_sink_print(m->out,
                    "<path d=\"M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1f\" stroke=\"#000\" "
                    "stroke-opacity=\".5\" stroke-width=\".7\" stroke-dasharray=\"2 4\"/>\n",
                    mx + box, my, x, y, mx + box, my + box, x, y + LENS);
    mesh_sink_print(m->out,
                    "<clipPath id=\"lens\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" "
                    "height=\"%.0f\"/></clipPath>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" "
                    "height=\"%.0f\" fill=\"#eef3f7\"/>\n<g clip-path=\"url(#lens)\">\n",
                    x, y, LENS, LENS, x, y, LENS, LENS);
    map view = *m;
    view.scale = LENS / side;
    view.left = x;
    view.top = y;
    view.x0 = middle.x - side / 2;
    view.y1 = middle.y + side / 2;
    window w = {{(int32_t)fmax(view.x0, 0.0), (int32_t)fmax(middle.y - side / 2, 0.0)},
                {(int32_t)(middle.x + side / 2), (int32_t)view.y1},
                0.0,
                LENS_EDGES_MAX};
    int rc = draw_view(&view, &w);
    mesh_sink_print(
        m->out,
        "</g>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" "
        "stroke=\"#000\" stroke-width=\"1.6\"/>\n",
        x, y, LENS, LENS);
    return rc;
}

static double round_length(double length)
{
    double step = pow(10.0, floor(log10(length)));
    return length / step >= 5.0 ? 5.0 * step : length / step >= 2.0 ? 2.0 * step : step;
}

static void draw_scale(const map *m, double x, double y)
{
    double per_unit = m->scale * m->p->pslg->frame.scale;
    double length = round_length(140.0 / per_unit);
    mesh_sink_print(m->out,
                    "<path d=\"M%.1f %.1fv8h%.1fv-8\" fill=\"none\" stroke=\"#222\" "
                    "stroke-width=\"1.5\"/>\n<text x=\"%.1f\" y=\"%.1f\">%g ",
                    x, y - 8, length * per_unit, x + length * per_unit + 8, y + 2, length);
    mesh_sink_xml(m->out, m->p->unit != NULL ? m->p->unit : "");
    mesh_sink_print(m->out, "</text>\n");
}

static int64_t rank_triangles(const map *m, int32_t rank, int32_t *subs)
{
    int64_t sum = 0;
    *subs = 0;
    for (int32_t s = 0; s < m->p->sub_count; s++) {
        if (m->p->sub[s]->head.rank == rank) {
            sum += m->p->sub[s]->head.tri_count;
            ++*subs;
        }
    }
    return sum;
}

static void draw_legend(const map *m, double x, double y)
{
    int32_t shown = m->p->rank_count < 16 ? m->p->rank_count : 16;
    mesh_sink_print(m->out, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"600\">refined by</text>\n",
                    x, y);
    for (int32_t r = 0; r < shown; r++) {
        char colour[8], digits[32];
        int32_t subs;
        int64_t tris = rank_triangles(m, r, &subs);
        double at = y + 12 + 21 * r;
        mesh_sink_print(m->out,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"15\" height=\"15\" fill=\"%s\"/>"
                        "<text x=\"%.1f\" y=\"%.1f\">rank %d</text>",
                        x, at, mesh_rank_colour(r, 0.18, colour), x + 23, at + 12, r);
        mesh_sink_print(m->out,
                        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" class=\"s\">%s triangles, "
                        "%d sub-domains</text>\n",
                        x + LENS, at + 12, mesh_group_digits(tris, digits), subs);
    }
    if (shown < m->p->rank_count) {
        mesh_sink_print(m->out,
                        "<text x=\"%.1f\" y=\"%.1f\" class=\"s\">and %d more ranks</text>\n", x,
                        y + 24 + 21 * shown, m->p->rank_count - shown);
    }
}

/* Text in lines of about `width` characters; returns the height of the next line. */
static double draw_wrapped(const map *m, double x, double y, const char *text, size_t width)
{
    while (*text != '\0') {
        char line[96];
        size_t length = strlen(text);
        if (length > width) {
            for (length = width; length > 0 && text[length] != ' '; length--) {
            }
            length = length == 0 ? width : length;
        }
        (void)snprintf(line, sizeof line, "%.*s", (int)length, text);
        mesh_sink_print(m->out, "<text x=\"%.1f\" y=\"%.1f\" class=\"s\">", x, y);
        mesh_sink_xml(m->out, line);
        mesh_sink_print(m->out, "</text>\n");
        text += length;
        text += *text == ' ' ? 1 : 0;
        y += 17.0;
    }
    return y;
}

/* Returns the height below the titles. */
static double draw_titles(const map *m, double x)
{
    char digits[32], line[96];
    mesh_sink_print(m->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"20\" font-weight=\"600\">", x,
                    MARGIN + 18);
    mesh_sink_xml(m->out, m->p->title != NULL ? m->p->title : "Mesh");
    mesh_sink_print(m->out, "</text>\n");
    (void)snprintf(line, sizeof line, "%s triangles, %d sub-domains",
                   mesh_group_digits(m->triangles, digits), m->p->sub_count);
    double y = draw_wrapped(m, x, MARGIN + 41, line, 46);
    return draw_wrapped(m, x, y, m->p->subtitle != NULL ? m->p->subtitle : "", 46);
}

static int draw(map *m)
{
    double x = 2 * MARGIN + m->map_width;
    mesh_sink_print(m->out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                    "width=\"%.0f\" height=\"%.0f\" font-family=\"Helvetica,Arial,sans-serif\" "
                    "font-size=\"13\" fill=\"#222\">\n"
                    "<style>.s{font-size:12px;fill:#444}</style>\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                    m->width, m->height, m->width, m->height);
    if (draw_map(m) != 0) {
        return -1;
    }
    double lens_y = draw_titles(m, x) + 4.0;
    if (draw_lens(m, x, lens_y) != 0) {
        return -1;
    }
    draw_legend(m, x, lens_y + LENS + 30);
    draw_scale(m, x, m->height - MARGIN);
    mesh_sink_print(m->out, "</svg>\n");
    return 0;
}

int mesh_write_svg(const char *path, const mesh_picture *picture, mesh_log *log)
{
    mesh_sink s;
    map m = {.out = &s, .p = picture, .left = MARGIN, .top = MARGIN};
    find_extent(&m);
    if (m.triangles == 0) {
        return mesh_fail(log, "%s: there are no triangles to draw", path);
    }
    int32_t shown = picture->rank_count < 16 ? picture->rank_count : 16;
    double w = (double)m.high.x - m.low.x, h = (double)m.high.y - m.low.y;
    m.scale = MAP_SIDE_MAX / fmax(w, h);
    m.map_width = w * m.scale;
    m.map_height = h * m.scale;
    m.x0 = m.low.x;
    m.y1 = m.high.y;
    m.width = m.map_width + 3 * MARGIN + PANEL;
    m.height = fmax(m.map_height, 130 + LENS + 30 + 21 * shown + 80) + 2 * MARGIN;
    m.top = (m.height - m.map_height) / 2;
    if (mesh_sink_open(&s, path, log) != 0) {
        return -1;
    }
    int rc = draw(&m);
    if (rc != 0) {
        (void)mesh_fail_memory(log);
    }
    return mesh_sink_close(&s, rc != 0, log);
}
