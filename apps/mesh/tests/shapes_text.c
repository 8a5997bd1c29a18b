/* A shape as a .poly text. */
#include "shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    char *text;
    size_t used, room;
    int vertices, segments;
    shape_point *vertex;
    int (*segment)[2];
} writer;

static int find_vertex(writer *w, const shape *s, shape_point p)
{
    for (int i = 0; s->shared && i < w->vertices; i++) {
        if (w->vertex[i].x == p.x && w->vertex[i].y == p.y) {
            return i;
        }
    }
    w->vertex[w->vertices] = p;
    return w->vertices++;
}

static void add_segment(writer *w, int a, int b)
{
    w->segment[w->segments][0] = a;
    w->segment[w->segments++][1] = b;
}

static void collect(writer *w, const shape *s)
{
    for (int r = 0; r < s->ring_count; r++) {
        int first = find_vertex(w, s, s->ring[r].at[0]), from = first;
        for (int i = 1; i < s->ring[r].count; i++) {
            int to = find_vertex(w, s, s->ring[r].at[i]);
            add_segment(w, from, to);
            from = to;
        }
        add_segment(w, from, first);
    }
    for (int i = 0; i < s->extra_count; i++) {
        int a = find_vertex(w, s, s->extra[i][0]);
        add_segment(w, a, find_vertex(w, s, s->extra[i][1]));
    }
}

static void mix(writer *w, shape_dice *d)
{
    for (int i = w->segments - 1; i > 0; i--) {
        int other = (int)shape_roll(d, (uint32_t)i + 1);
        int swap[2] = {w->segment[i][0], w->segment[i][1]};
        memcpy(w->segment[i], w->segment[other], sizeof swap);
        memcpy(w->segment[other], swap, sizeof swap);
    }
}

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    w->used += (size_t)vsnprintf(w->text + w->used, w->room - w->used, format, args);
    va_end(args);
}

static void put_all(writer *w, const shape *s)
{
    put(w, "%d 2 0 0\n", w->vertices);
    for (int i = 0; i < w->vertices; i++) {
        put(w, "%d %.*g %.*g\n", i + 1, s->digits, w->vertex[i].x, s->digits, w->vertex[i].y);
    }
    put(w, "%d 0\n", w->segments);
    for (int i = 0; i < w->segments; i++) {
        put(w, "%d %d %d\n", i + 1, w->segment[i][0] + 1, w->segment[i][1] + 1);
    }
    put(w, "%d\n", s->hole_count);
    for (int i = 0; i < s->hole_count; i++) {
        put(w, "%d %.17g %.17g\n", i + 1, s->hole[i].x, s->hole[i].y);
    }
}

char *shape_text(const shape *s, shape_dice *d)
{
    size_t points = 2 * SHAPE_EXTRAS_MAX + SHAPE_HOLES_MAX + 4;
    for (int r = 0; r < s->ring_count; r++) {
        points += (size_t)s->ring[r].count;
    }
    writer w = {.room = points * 160};
    w.text = malloc(w.room);
    w.vertex = malloc(points * sizeof *w.vertex);
    w.segment = malloc(points * sizeof *w.segment);
    if (w.text != NULL && w.vertex != NULL && w.segment != NULL) {
        collect(&w, s);
        if (s->shuffled) {
            mix(&w, d);
        }
        put_all(&w, s);
    } else {
        free(w.text);
        w.text = NULL;
    }
    free(w.vertex);
    free(w.segment);
    return w.text;
}
