/* Bodies: how they begin and how they move, in the unit cube. */
#ifndef FMM_BODIES_H
#define FMM_BODIES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct body {
    double at[3], charge;
    double velocity[3];                /* edges of the domain per step */
    double potential, acceleration[3]; /* sums of q / r and of q (y - x) / r^3 */
    uint64_t id;
} body;

typedef enum distribution {
    UNIFORM,
    HALF,     /* uniform in the half of x < 1/2 */
    CLUSTERS, /* spheres of Plummer's density */
} distribution;

typedef struct scene {
    int distribution;
    long count, clusters;
    double radius; /* of a cluster: that of Plummer's formula */
    double speed;  /* of clusters, in edges of the domain per step */
    double pull;   /* what an acceleration of 1 adds to the velocity in a step */
} scene;

/* Body `id` at the start; the same in each run. All charges together are about 1. */
body body_begin(const scene *s, uint64_t id);

/* Moves a body by a step. Walls reflect it. */
void body_move(const scene *s, body *b);

/* Sorts bodies by what `key` says, from 0 to keys - 1. `ends[k]` is where those of key k end.
 * Bodies of one key keep their order. False: no memory. */
typedef uint32_t body_key(const void *arg, const body *b);
bool bodies_sort(body *bodies, uint32_t count, body_key *key, const void *arg, uint32_t keys,
                 uint32_t *ends);

#endif
