/* Tree: the cells of a cube of the domain, their expansions, and interactions between two trees.
 *
 * The domain is the unit cube. A cell of level l is one of its 8^l equal cubes. A leaf has bodies;
 * any other cell has children, of which only those with bodies stand in the tree. Cells stand in
 * order of levels, so the children of a cell stand together, after it.
 *
 * Two cells interact by expansions if they do not touch, and are of one level or one is a leaf. Two
 * leaves that touch interact body by body. The tree of a cell above the boxes (layout.h) is a root
 * with cells that are *cut*: their bodies are elsewhere, and so are their interactions with cells
 * that they touch. */
#ifndef FMM_TREE_H
#define FMM_TREE_H

#include "fmm/bodies.h"
#include "fmm/expansion.h"

enum { LEVEL_MAX = 20 };

typedef struct cell {
    int32_t level, at[3]; /* in cells of that level */
    uint32_t child, child_count;
    uint32_t first, count; /* bodies */
    uint32_t is_cut, unused;
} cell;

/* A tree as it is read: this rank's own, or one that came in a message. */
typedef struct view {
    uint32_t cell_count, body_count;
    const cell *cells;
    const double complex *multipoles; /* of each cell */
    const double *x, *y, *z, *charge; /* of each body */
} view;

typedef struct tree {
    uint32_t cell_count, body_count;
    cell *cells;                         /* NULL: there is no tree now */
    double complex *multipoles, *locals; /* of each cell */
    body *bodies;                        /* borrowed */
    double *sources;                     /* x, y, z and charge of each body, as a view has them */
} tree;

/* How all trees are made and used. */
typedef struct method {
    int order;
    uint32_t leaf;    /* a cell with more bodies is divided */
    double softening; /* radius of a body, which is a ball */
    expansion_space *space;
} method;

/* Builds the tree of `count` bodies in the cell `root`, sorts them and computes all multipole
 * expansions. False: no memory. */
bool tree_build(tree *t, const method *m, cell root, body *bodies, uint32_t count);

/* Makes a tree of `root` and its eight children, which are cut and have expansions of zero. */
bool tree_build_cut(tree *t, const method *m, cell root);

/* Computes the multipole expansion of the root of a cut tree from those of its children. */
void tree_combine(tree *t, const method *m);

void tree_free(tree *t);
view tree_view(const tree *t);

/* Makes `sources` from the bodies. False: no memory. */
bool tree_fill_sources(tree *t);

/* Moves all local expansions down to the leaves, and their values to the bodies. */
void tree_descend(tree *t, const method *m);

/* The operations of tree_build, or of tree_descend. */
double tree_build_flops(const tree *t, const method *m);
double tree_descend_flops(const tree *t, const method *m);

bool cell_touches(const cell *a, const cell *b);

/* Octant `octant` of `c`. */
cell cell_child(const cell *c, int octant);
void cell_centre(const cell *c, double out[3]);

/* Adds what the bodies of `source` do to `target`: to the local expansions of its cells and to its
 * bodies. Both roots are of one level; they touch or are the same. Returns the operations; with
 * `dry` it only counts them. */
double tree_interact(tree *target, const view *source, const method *m, bool dry);

/* The potential and acceleration of a body at `at` by bodies first to first + count - 1 of `v`, and
 * by the body itself, if it is one of them. */
void bodies_attract(const view *v, uint32_t first, uint32_t count, const double at[3],
                    double softening, double sums[4]);

/* The potential that bodies_attract adds for a body itself. */
double body_own_potential(double charge, double softening);

#endif
