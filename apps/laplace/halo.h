/* Halo: how the values of solve.h travel with Ferry: arrays in the shared heap, one mover from
 * nodes to their ghosts, and one from ghosts to their nodes, which adds. An error ends the program.
 */
#ifndef LAPLACE_HALO_H
#define LAPLACE_HALO_H

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "laplace/solve.h"

typedef struct laplace_halo {
    ferry *f;
    ferry_grid p, y;
    ferry_mover *out, *back;
} laplace_halo;

/* Sets what the caller sets in `l`; lends it until laplace_halo_free. Collective, both. */
void laplace_halo_bind(laplace_halo *h, ferry *f, laplace *l);
void laplace_halo_free(laplace_halo *h);

#endif
