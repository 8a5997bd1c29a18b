/* Fmm: what a rank knows of the program, and its parts: the beginning (begin.c), the steps
 * (steps.c), the check (direct.c) and the command line (main.c). An error ends the program. */
#ifndef FMM_FMM_H
#define FMM_FMM_H

#include "common/check.h"
#include "common/cost.h"
#include "fmm/part.h"

typedef struct fmm {
    ferry *f;
    scene scene;
    method method;
    layout layout;
    long steps;
    cost cost;
    ferry_collection *parts;
    body *begun;         /* that begin here, by chunk */
    uint32_t *begun_end; /* of each chunk */
    double *flops;       /* of each chunk's work that ran here, with the parents that begin there */
    uint64_t work_ns;    /* of this rank */
} fmm;

/* Ends the program if `got` is false. */
void fmm_need(ferry *f, bool got);

/* Makes the bodies and brings each to the rank where its box begins. Collective. */
void fmm_begin(fmm *s);

/* Runs all time steps, with the parts where the layout says or, not `fixed`, where the scheduler
 * moves them. In the end the bodies of `parts` have the values of the last step, at the places that
 * these belong to. Returns the nanoseconds. Collective. */
uint64_t fmm_run(fmm *s, bool fixed);

/* Compares up to `samples` bodies with direct sums over all. `errors` get those of the potentials
 * and of the accelerations: root of the sum of squares, as a part of that of the true values.
 * Whether each body is there once. Collective. */
bool fmm_compare(fmm *s, long samples, double errors[2]);

#endif
