/* Movement: how far the movement in flight has come, and whether there may be another. */
#ifndef FY_MOVER_MOVEMENT_H
#define FY_MOVER_MOVEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fy_movement {
    uint64_t epoch;     /* movements started since the mover was bound last */
    uint64_t movements; /* before that */
    uint32_t op;
    int error;               /* for ever: FERRY_EPEER once a neighbour died; that of a binding */
    bool in_flight, flagged; /* a sleeps flag may be set */
    bool own_left;           /* the copies within the rank have not been made yet */
    bool spread;             /* neighbours know that it is lost */
    bool astray;             /* blocks of its xarrays may be anywhere: it cannot be started */
} fy_movement;

#endif
