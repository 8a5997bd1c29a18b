#include "object/affinity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

fy_affinity *fy_affinity_create(uint32_t priority_count, uint32_t dependency_count)
{
    size_t priorities = priority_count * sizeof(double);
    size_t dependencies = dependency_count * sizeof(uint64_t);
    size_t places = dependency_count * sizeof(fy_place);
    fy_affinity *affinity = fy_calloc(1, sizeof *affinity + priorities + dependencies + places);
    if (affinity == NULL)
        return NULL;
    affinity->priority_count = priority_count;
    affinity->dependency_count = dependency_count;
    affinity->priorities = (double *)(void *)(affinity + 1);
    affinity->dependencies = (uint64_t *)(void *)(affinity->priorities + priority_count);
    affinity->places = (fy_place *)(void *)(affinity->dependencies + dependency_count);
    return affinity;
}

size_t fy_affinity_bytes(const fy_affinity *affinity)
{
    if (affinity == NULL)
        return 0;
    return sizeof(double) + affinity->priority_count * sizeof(double) +
           affinity->dependency_count * sizeof(uint64_t);
}

unsigned char *fy_affinity_write(const fy_affinity *affinity, unsigned char *at)
{
    if (affinity == NULL)
        return at;
    size_t priorities = affinity->priority_count * sizeof(double);
    size_t dependencies = affinity->dependency_count * sizeof(uint64_t);
    memcpy(at, &affinity->granularity, sizeof(double));
    at += sizeof(double);
    memcpy(at, affinity->priorities, priorities);
    memcpy(at + priorities, affinity->dependencies, dependencies);
    return at + priorities + dependencies;
}

int fy_affinity_read(const unsigned char **at, const unsigned char *end, uint32_t priority_count,
                     uint32_t dependency_count, fy_affinity **out)
{
    uint64_t words = UINT64_C(1) + priority_count + dependency_count;
    if ((uint64_t)(end - *at) / sizeof(uint64_t) < words)
        return FERRY_EINVAL;
    fy_affinity *affinity = fy_affinity_create(priority_count, dependency_count);
    if (affinity == NULL)
        return FERRY_ENOMEM;
    memcpy(&affinity->granularity, *at, sizeof(double));
    *at += sizeof(double);
    memcpy(affinity->priorities, *at, priority_count * sizeof(double));
    *at += priority_count * sizeof(double);
    memcpy(affinity->dependencies, *at, dependency_count * sizeof(uint64_t));
    *at += dependency_count * sizeof(uint64_t);
    for (uint32_t i = 0; i < priority_count; i++)
        if (!isfinite(affinity->priorities[i]))
            goto malformed;
    if (!isfinite(affinity->granularity))
        goto malformed;
    *out = affinity;
    return 0;
malformed:
    free(affinity);
    return FERRY_EINVAL;
}

void fy_affinity_place(fy_affinity *affinity, int (*locate)(const void *context, uint64_t object),
                       const void *context)
{
    affinity->place_count = 0;
    for (uint32_t i = 0; i < affinity->dependency_count; i++) {
        int rank = locate(context, affinity->dependencies[i]);
        uint32_t at = 0;
        while (at < affinity->place_count && affinity->places[at].rank != rank)
            at++;
        if (rank < 0)
            continue;
        if (at == affinity->place_count)
            affinity->places[affinity->place_count++] = (fy_place){.rank = rank};
        affinity->places[at].count++;
    }
}

uint32_t fy_affinity_there(const fy_affinity *affinity, int rank)
{
    for (uint32_t i = 0; affinity != NULL && i < affinity->place_count; i++)
        if (affinity->places[i].rank == rank)
            return affinity->places[i].count;
    return 0;
}
