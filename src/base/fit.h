/* Fit: two classes of task times (prema.txt 6.1 to 6.5), for `ferry model` and for steering. */
#ifndef FY_FIT_H
#define FY_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* The first `gamma` of the sorted tasks take `beta` each, the others `alpha`. */
typedef struct fy_fit {
    bool uniform; /* all tasks are equal; gamma is 0 and every task is of class alpha */
    size_t gamma;
    double alpha, beta;
    double error; /* the sum of squares of (6.4) and (6.5), in square seconds */
} fy_fit;

/* The fit of `count` times, at least one, the shortest first; `total` is their sum. */
fy_fit fy_fit_classes(const double *seconds, size_t count, double total);

#endif
