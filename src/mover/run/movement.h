/* Movement: the state of the movement in flight, and whether another one may start. */
#ifndef FY_MOVER_MOVEMENT_H
#define FY_MOVER_MOVEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fy_movement {
    uint64_t epoch;     /* movements started since the mover was bound last */
    uint64_t movements; /* movements before that */
    uint32_t op;        /* the operation of ferry_mover_start; 0: none */
    int error;          /* stays: the mover's binding failed, or a neighbour died (FERRY_EPEER) */
    bool in_flight;     /* a movement has started and has not ended */
    bool flagged;       /* this rank's flags in its channels say that it sleeps */
    bool own_left;      /* the copies within the rank have not been made yet */
    bool told_loss;     /* the neighbours were told of `error` */
    bool unsettled; /* blocks of its xarrays may have moved: ferry_blocks_settle must come first */
} fy_movement;

#endif
