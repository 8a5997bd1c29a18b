/* Root: the square root, since Ferry needs no mathematical library. */
#ifndef FY_STEER_ROOT_H
#define FY_STEER_ROOT_H

/* `square` is not negative. Newton's method, from a first value that is too large. */
static inline double fy_root_of(double square)
{
    double root = square > 1 ? square : 1;
    for (double next; (next = (root + square / root) / 2) < root;)
        root = next;
    return root;
}

#endif
