/* Solve: a rank's part of Laplace's equation by linear finite elements, and conjugate gradients.
 *
 * On the edge of the domain u = x + 2 y, which is then the solution everywhere, also of the
 * discrete equations. How values travel is the caller's: ghost nodes have to be filled, and what
 * triangles contribute to nodes of other ranks has to be added there. */
#ifndef LAPLACE_SOLVE_H
#define LAPLACE_SOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A triangle: local nodes, and its part of the matrix, as a00 a11 a22 a01 a12 a20. */
typedef struct laplace_element {
    int32_t node[3];
    double a[6];
} laplace_element;

/* A ghost node. */
typedef struct laplace_ghost {
    int32_t owner, index; /* rank, and number among its own nodes */
} laplace_ghost;

typedef struct laplace {
    int64_t nodes, triangles; /* of the whole mesh */
    int64_t own, count;       /* nodes here, without and with ghosts; own ones are first */
    laplace_ghost *ghosts;    /* count - own, by owner, then index */
    int64_t element_count;
    laplace_element *elements;
    char *edge;            /* per own node: on the edge */
    double *exact, *u, *r; /* per own node */
    double rr, first;      /* squared residual: now, and at the beginning */

    /* The caller sets these. */
    double *p, *y;                          /* `count` each; kept until laplace_fini */
    void (*out)(void *arg);                 /* fills the ghosts of p */
    void (*back)(void *arg);                /* adds the ghosts of y to their owners' */
    double (*sum)(void *arg, double value); /* over all ranks */
    void *arg;
} laplace;

/* Reads the mesh and makes a rank's part. An error ends the program. */
void laplace_init(laplace *l, const char *path, int rank, int ranks);
void laplace_fini(laplace *l);

/* Starts from 0 inside the domain. */
void laplace_begin(laplace *l);

/* One iteration; returns the residual as part of the first one. */
double laplace_step(laplace *l);

/* The solution's error as part of the solution, and the true residual, as part of the first. */
double laplace_error(const laplace *l);
double laplace_residual(laplace *l);

#endif
