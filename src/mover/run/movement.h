/* Movement: the state of the movement in flight, and whether a further one may start. */
#ifndef FY_MOVER_MOVEMENT_H
#define FY_MOVER_MOVEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fy_movement {
    uint64_t epoch;     /* movements started since the mover was bound last */
    uint64_t movements; /* movements before that */
    uint32_t op;
    int error;      /* permanent: FERRY_EPEER after the death of a neighbour, or of a binding */
    bool in_flight; /* a movement is */
    bool flagged;   /* flags of channels say that this rank sleeps */
    bool own_left;  /* the copies within the rank have not been made yet */
    bool spread;    /* the neighbours were told of `error` */
    bool astray;    /* blocks of its xarrays may have moved: it cannot start before they settle */
} fy_movement;

#endif
