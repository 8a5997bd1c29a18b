/* Mesher: another program that fills the surface of one sub-domain with tetrahedra (wire.h). Each
 * rank starts one when it first needs it. */
#ifndef FRONT_MESHER_H
#define FRONT_MESHER_H

#include <sys/types.h>

#include "check.h"

typedef struct front_mesher {
    const char *path;
    pid_t pid; /* 0: not started */
    int socket;
} front_mesher;

/* Meshes the surface. `*seconds` is the processor time that the mesher took. If false, nothing was
 * made, and `error` says why; the next call starts the mesher again. */
bool front_mesher_run(front_mesher *m, const front_surface *surface, const front_spots *spots,
                      const front_sizing *sizing, front_mesh *out, double *seconds,
                      char error[FRONT_TEXT_BYTES]);

/* Ends the mesher, if it was started, and waits until it has gone. */
void front_mesher_stop(front_mesher *m);

#endif
