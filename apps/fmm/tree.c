/* Tree: building, the pass upwards and the pass downwards. */
#include "fmm/tree.h"

#include <stdlib.h>
#include <string.h>

cell cell_child(const cell *c, int octant)
{
    cell child = {.level = c->level + 1};
    for (int d = 0; d < 3; d++)
        child.at[d] = 2 * c->at[d] + (octant >> (2 - d) & 1);
    return child;
}

void cell_centre(const cell *c, double out[3])
{
    const double side = 1 / (double)(1L << c->level);
    for (int d = 0; d < 3; d++)
        out[d] = side * ((double)c->at[d] + 0.5);
}

/* The centre of `c`, seen from that of `from`. */
static void cell_offset(const cell *c, const cell *from, double out[3])
{
    double other[3];
    cell_centre(c, out);
    cell_centre(from, other);
    for (int d = 0; d < 3; d++)
        out[d] -= other[d];
}

/* The octant of the cell with the centre `arg`. */
static uint32_t octant_of(const void *arg, const body *b)
{
    const double *centre = arg;
    return 4u * (b->at[0] >= centre[0]) + 2u * (b->at[1] >= centre[1]) + (b->at[2] >= centre[2]);
}

static bool append_cell(tree *t, uint32_t *capacity, cell c)
{
    if (t->cell_count == *capacity) {
        uint32_t more = 2 * *capacity + 8;
        cell *cells = realloc(t->cells, more * sizeof *cells);
        if (cells == NULL)
            return false;
        t->cells = cells;
        *capacity = more;
    }
    t->cells[t->cell_count++] = c;
    return true;
}

/* Divides cell `index`, if it has too many bodies. */
static bool divide(tree *t, uint32_t *capacity, const method *m, uint32_t index)
{
    const cell c = t->cells[index];
    uint32_t ends[8], begin = 0;
    double centre[3];
    if (c.count <= m->leaf || c.level == LEVEL_MAX ||
        1 / (double)(1L << (c.level + 1)) < m->softening)
        return true;
    cell_centre(&c, centre);
    if (!bodies_sort(t->bodies + c.first, c.count, octant_of, centre, 8, ends))
        return false;
    t->cells[index].child = t->cell_count;
    for (int o = 0; o < 8; begin = ends[o], o++) {
        cell child = cell_child(&c, o);
        child.first = c.first + begin;
        child.count = ends[o] - begin;
        if (child.count == 0)
            continue;
        if (!append_cell(t, capacity, child))
            return false;
        t->cells[index].child_count++;
    }
    return true;
}

static bool allocate_expansions(tree *t, const method *m)
{
    size_t count = t->cell_count * expansion_terms(m->order);
    t->multipoles = calloc(count, sizeof *t->multipoles);
    t->locals = calloc(count, sizeof *t->locals);
    return t->multipoles != NULL && t->locals != NULL;
}

bool tree_fill_sources(tree *t)
{
    const uint32_t count = t->body_count;
    t->sources = malloc((4 * (size_t)count + 1) * sizeof *t->sources);
    for (uint32_t i = 0; t->sources != NULL && i < count; i++) {
        for (uint32_t d = 0; d < 3; d++)
            t->sources[d * count + i] = t->bodies[i].at[d];
        t->sources[3 * count + i] = t->bodies[i].charge;
    }
    return t->sources != NULL;
}

static void add_bodies(tree *t, const method *m, const cell *c, double complex *multipole)
{
    double centre[3], at[3];
    cell_centre(c, centre);
    for (const body *b = t->bodies + c->first; b < t->bodies + c->first + c->count; b++) {
        for (int d = 0; d < 3; d++)
            at[d] = b->at[d] - centre[d];
        expansion_add_charge(m->order, multipole, at, b->charge);
    }
}

static void ascend(tree *t, const method *m)
{
    const size_t terms = expansion_terms(m->order);
    double offset[3];
    for (uint32_t i = t->cell_count; i-- > 0;) {
        const cell *c = &t->cells[i];
        if (c->child_count == 0 && !c->is_cut)
            add_bodies(t, m, c, t->multipoles + i * terms);
        for (uint32_t k = c->child; k < c->child + c->child_count; k++) {
            cell_offset(&t->cells[k], c, offset);
            expansion_shift_multipole(m->order, t->multipoles + k * terms, offset,
                                      t->multipoles + i * terms);
        }
    }
}

bool tree_build(tree *t, const method *m, cell root, body *bodies, uint32_t count)
{
    uint32_t capacity = 0;
    *t = (tree){.bodies = bodies, .body_count = count};
    root.count = count;
    bool made = append_cell(t, &capacity, root);
    for (uint32_t i = 0; made && i < t->cell_count; i++)
        made = divide(t, &capacity, m, i);
    made = made && allocate_expansions(t, m) && tree_fill_sources(t);
    if (made)
        ascend(t, m);
    return made;
}

bool tree_build_cut(tree *t, const method *m, cell root)
{
    uint32_t capacity = 0;
    *t = (tree){0};
    root.child = 1;
    root.child_count = 8;
    bool made = append_cell(t, &capacity, root);
    for (int o = 0; made && o < 8; o++) {
        cell child = cell_child(&root, o);
        child.is_cut = 1;
        made = append_cell(t, &capacity, child);
    }
    return made && allocate_expansions(t, m) && tree_fill_sources(t);
}

void tree_combine(tree *t, const method *m)
{
    for (uint32_t i = 1; i < t->cell_count; i++)
        t->cells[0].count += t->cells[i].count;
    ascend(t, m);
}

void tree_free(tree *t)
{
    free(t->cells);
    free(t->multipoles);
    free(t->locals);
    free(t->sources);
    *t = (tree){0};
}

view tree_view(const tree *t)
{
    const double *x = t->sources;
    return (view){.cell_count = t->cell_count,
                  .body_count = t->body_count,
                  .cells = t->cells,
                  .multipoles = t->multipoles,
                  .x = x,
                  .y = x + t->body_count,
                  .z = x + 2 * (size_t)t->body_count,
                  .charge = x + 3 * (size_t)t->body_count};
}

/* Adds the local expansion of leaf `c` to its bodies. */
static void evaluate(tree *t, const method *m, const cell *c, const double complex *local)
{
    double centre[3], at[3], value[4];
    cell_centre(c, centre);
    for (body *b = t->bodies + c->first; b < t->bodies + c->first + c->count; b++) {
        double complex here[3] = {0};
        for (int d = 0; d < 3; d++)
            at[d] = b->at[d] - centre[d];
        expansion_shift_local(m->order, local, at, 1, here);
        expansion_value(here, value);
        b->potential += value[0];
        for (int d = 0; d < 3; d++)
            b->acceleration[d] += value[d + 1];
    }
}

void tree_descend(tree *t, const method *m)
{
    const size_t terms = expansion_terms(m->order);
    double offset[3];
    for (uint32_t i = 0; i < t->cell_count; i++) {
        const cell *c = &t->cells[i];
        if (c->child_count == 0 && !c->is_cut)
            evaluate(t, m, c, t->locals + i * terms);
        for (uint32_t k = c->child; k < c->child + c->child_count; k++) {
            cell_offset(&t->cells[k], c, offset);
            expansion_shift_local(m->order, t->locals + i * terms, offset, m->order,
                                  t->locals + k * terms);
        }
    }
}

static double shifts_flops(const tree *t, const method *m)
{
    return (t->cell_count - 1) * expansion_shift_flops(m->order, m->order);
}

double tree_build_flops(const tree *t, const method *m)
{
    return t->body_count * expansion_charge_flops(m->order) + shifts_flops(t, m);
}

double tree_descend_flops(const tree *t, const method *m)
{
    return t->body_count * expansion_shift_flops(m->order, 1) + shifts_flops(t, m);
}
