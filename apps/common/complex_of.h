/* A complex number of its parts. */
#ifndef APPS_COMPLEX_OF_H
#define APPS_COMPLEX_OF_H

#include <complex.h>

/* As CMPLX, which not every compiler has. */
static inline double complex complex_of(double real, double imaginary)
{
    union {
        double part[2];
        double complex whole;
    } value = {{real, imaginary}};
    return value.whole;
}

#endif
