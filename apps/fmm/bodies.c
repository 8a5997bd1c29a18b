/* Bodies, see bodies.h. */
#include "fmm/bodies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number from 0 to 1, other ones for other `id` and `what`. */
static double noise(uint64_t id, uint64_t what)
{
    uint64_t z = (16 * id + what + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

enum { AT, CHARGE = 3, DISTANCE, HEIGHT, TURN, DIRECTION, CENTRE = 10 };

/* A point of the unit sphere. */
static void direct(uint64_t id, uint64_t height, uint64_t turn, double out[3])
{
    const double angle = 6.283185307179586 * noise(id, turn), z = 2 * noise(id, height) - 1;
    const double across = sqrt(1 - z * z);
    out[0] = across * cos(angle);
    out[1] = across * sin(angle);
    out[2] = z;
}

/* Keeps a coordinate in the domain. */
static void reflect(double *at, double *velocity)
{
    if (*at < 0 || *at >= 1) {
        *at = *at < 0 ? -*at : 2 - *at;
        *velocity = -*velocity;
    }
    const double last = nextafter(1, 0);
    *at = *at < 0 ? 0 : *at > last ? last : *at;
}

/* Clusters stand apart, at places of their own, and move in directions of their own. The numbers of
 * a cluster are those of an id that no body has. */
static void begin_in_cluster(const scene *s, body *b)
{
    const uint64_t cluster = b->id % (uint64_t)s->clusters, own = cluster | UINT64_C(1) << 40;
    const double far = 3, part = pow(1 + 1 / (far * far), -1.5); /* none beyond `far` radii */
    const double distance =
        s->radius / sqrt(pow(part * noise(b->id, DISTANCE), -2.0 / 3) - 1 + 1e-12);
    double away[3], way[3];
    direct(b->id, HEIGHT, TURN, away);
    direct(own, DIRECTION, DIRECTION + 1, way);
    for (int d = 0; d < 3; d++) {
        b->velocity[d] = s->speed * way[d];
        b->at[d] = 0.25 + 0.5 * noise(own, CENTRE + (uint64_t)d) + distance * away[d];
        reflect(&b->at[d], &b->velocity[d]);
    }
}

body body_begin(const scene *s, uint64_t id)
{
    body b = {.id = id, .charge = (0.5 + noise(id, CHARGE)) / (double)s->count};
    if (s->distribution == CLUSTERS) {
        begin_in_cluster(s, &b);
        return b;
    }
    for (int d = 0; d < 3; d++)
        b.at[d] = noise(id, AT + (uint64_t)d);
    if (s->distribution == HALF)
        b.at[0] /= 2;
    return b;
}

void body_move(const scene *s, body *b)
{
    for (int d = 0; d < 3; d++) {
        b->velocity[d] += s->pull * b->acceleration[d];
        b->at[d] += b->velocity[d];
        reflect(&b->at[d], &b->velocity[d]);
    }
}

bool bodies_sort(body *bodies, uint32_t count, body_key *key, const void *arg, uint32_t keys,
                 uint32_t *ends)
{
    body *sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return false;
    memset(ends, 0, keys * sizeof *ends);
    for (uint32_t i = 0; i < count; i++)
        ends[key(arg, &bodies[i])]++;
    uint32_t begin = 0;
    for (uint32_t k = 0; k < keys; k++) {
        const uint32_t here = ends[k];
        ends[k] = begin;
        begin += here;
    }
    for (uint32_t i = 0; i < count; i++)
        sorted[ends[key(arg, &bodies[i])]++] = bodies[i];
    if (count != 0)
        memcpy(bodies, sorted, count * sizeof *bodies);
    free(sorted);
    return true;
}
