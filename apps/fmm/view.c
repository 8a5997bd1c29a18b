/* Views: what a tree must show to the cells that touch its root.
 *
 * A cell that does not touch the target interacts by its expansion with all cells in the target. So
 * the target needs the children and the bodies of only those cells that touch it. */
#include <stdlib.h>
#include <string.h>

#include "fmm/part.h"

typedef struct packed_view {
    uint32_t cell_count, body_count;
} packed_view;

static bool touches_any(const cell *c, const cell *targets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (cell_touches(c, &targets[i]))
            return true;
    return false;
}

/* Chooses the cells: `places` gets their numbers in the tree, `cells` those cells as the target
 * sees them. Children and bodies are numbered anew. */
static packed_view choose(const tree *t, const cell *targets, uint32_t target_count,
                          uint32_t *places, cell *cells)
{
    packed_view v = {.cell_count = 1};
    places[0] = 0;
    for (uint32_t i = 0; i < v.cell_count; i++) {
        const cell *from = &t->cells[places[i]];
        const bool touches = touches_any(from, targets, target_count);
        cells[i] = *from;
        cells[i].child = v.cell_count;
        cells[i].first = v.body_count;
        if (!touches)
            cells[i].child_count = 0;
        for (uint32_t k = 0; k < cells[i].child_count; k++)
            places[v.cell_count++] = from->child + k;
        if (touches && from->child_count == 0 && !from->is_cut)
            v.body_count += from->count;
    }
    return v;
}

/* Copies the bodies of cell `to` of the view, which is `from` in the tree, if it has them. */
static void copy_bodies(const tree *t, const cell *from, const cell *next, packed_view v,
                        const cell *to, double *sources)
{
    const uint32_t end = next != NULL ? next->first : v.body_count;
    if (end == to->first)
        return;
    for (uint32_t d = 0; d < 4; d++)
        memcpy(sources + d * (size_t)v.body_count + to->first,
               t->sources + d * (size_t)t->body_count + from->first, from->count * sizeof *sources);
}

static bool append(const tree *t, const method *m, packed_view v, const uint32_t *places,
                   const cell *cells, bytes *out)
{
    const size_t terms = expansion_terms(m->order);
    const size_t expansions = v.cell_count * terms * sizeof(double complex);
    const size_t sources = 4 * (size_t)v.body_count * sizeof(double);
    const size_t all = sizeof v + v.cell_count * sizeof *cells + expansions + sources;
    unsigned char *at = bytes_append(out, NULL, all);
    if (at == NULL)
        return false;
    memcpy(at, &v, sizeof v);
    memcpy(at + sizeof v, cells, v.cell_count * sizeof *cells);
    double complex *multipoles = (void *)(at + sizeof v + v.cell_count * sizeof *cells);
    double *bodies = (void *)((unsigned char *)multipoles + expansions);
    for (uint32_t i = 0; i < v.cell_count; i++) {
        memcpy(multipoles + i * terms, t->multipoles + places[i] * terms,
               terms * sizeof *multipoles);
        copy_bodies(t, &t->cells[places[i]], i + 1 < v.cell_count ? &cells[i + 1] : NULL, v,
                    &cells[i], bodies);
    }
    return true;
}

bool view_pack(const tree *t, const method *m, const cell *targets, uint32_t target_count,
               bytes *out)
{
    if (t->cells[0].count == 0)
        return true;
    uint32_t *places = malloc(t->cell_count * sizeof *places);
    cell *cells = malloc(t->cell_count * sizeof *cells);
    bool made = places != NULL && cells != NULL &&
                append(t, m, choose(t, targets, target_count, places, cells), places, cells, out);
    free(places);
    free(cells);
    return made;
}

view view_unpack(const method *m, const unsigned char **at)
{
    packed_view head;
    memcpy(&head, *at, sizeof head);
    view v = {.cell_count = head.cell_count, .body_count = head.body_count};
    v.cells = (const void *)(*at + sizeof head);
    v.multipoles = (const void *)(v.cells + v.cell_count);
    v.x = (const void *)(v.multipoles + v.cell_count * expansion_terms(m->order));
    v.y = v.x + v.body_count;
    v.z = v.y + v.body_count;
    v.charge = v.z + v.body_count;
    *at = (const void *)(v.charge + v.body_count);
    return v;
}
