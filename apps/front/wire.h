/* Wire: the protocol between a rank and its mesher, over the mesher's standard input and output.
 * Included by C and by C++.
 *
 * A request is a front_request, then `points` times 3 doubles, `triangles` times 3 int32_t, and
 * `spots` times 4 doubles (a place and the size that is wanted there). An answer is a front_answer;
 * if its status is 0, `points` times 3 doubles and `tets` times 4 int32_t follow. All points of the
 * request come first in the answer, unchanged. A mesher answers until its input ends. */
#ifndef FRONT_WIRE_H
#define FRONT_WIRE_H

#include <stdint.h>

#define FRONT_REQUEST UINT32_C(0x46715631)
#define FRONT_ANSWER UINT32_C(0x46615631)

typedef struct front_request {
    uint32_t magic;
    int32_t points, triangles, spots;
    double largest, grading; /* of the sizes */
} front_request;

typedef struct front_answer {
    uint32_t magic;
    int32_t status; /* 0, or the mesher's own number of the failure */
    int32_t points, tets;
    double seconds; /* of processor time */
} front_answer;

#endif
