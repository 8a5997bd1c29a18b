/* Domain: a box of unit cubes, divided into sub-domains that are boxes of whole cubes.
 *
 * Coordinates on the surfaces of sub-domains are whole numbers of 2^-20 of a cube's side. They are
 * exact in a double, so both sides of an interface have the same bits. */
#ifndef FRONT_DOMAIN_H
#define FRONT_DOMAIN_H

#include <stdint.h>

enum { FRONT_UNIT = 1 << 20, FRONT_CUBES_MAX = 1000, FRONT_COUNT_MAX = 1000000 };

typedef struct front_domain {
    int32_t cubes[3]; /* along each axis */
    int32_t parts[3]; /* sub-domains along each axis, no more than cubes */
} front_domain;

/* A box of cubes, `low` inclusive and `high` exclusive. */
typedef struct front_box {
    int32_t low[3], high[3];
} front_box;

int32_t front_domain_count(const front_domain *d);

/* The cubes of the sub-domain `index`. The last axis varies fastest. */
front_box front_domain_box(const front_domain *d, int32_t index);

/* The sub-domain that is next to `index` in the direction of `axis`, upwards or downwards; -1 at
 * the surface of the domain. */
int32_t front_domain_neighbour(const front_domain *d, int32_t index, int axis, int up);

/* The sub-domain with the least index that the point, which is on its surface or within it,
 * belongs to. */
int32_t front_domain_owner(const front_domain *d, const double point[3]);

#endif
