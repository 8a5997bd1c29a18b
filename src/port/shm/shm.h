/* Port shm, as its users in boot and launch see it: one segment of a job, and ranks that join it.
 *
 * The segment is a memfd, sized once and sealed against resizing, inherited or passed, never named.
 * Every process of the job maps it once, at the same address; ranks that are threads of one process
 * share that mapping. */
#ifndef FY_SHM_H
#define FY_SHM_H

#include "port/port.h"

typedef struct fy_shm_options {
    int ranks;
    size_t heap_bytes;   /* per rank */
    uint32_t ring_slots; /* per (source, target, lane, thread) */
    uint32_t ring_bytes;
} fy_shm_options;

typedef struct fy_segment fy_segment;

/* Makes the segment of a job. On success `*fd` is the caller's. On failure an FERRY_E code, and the
 * reason by fy_error_set (base/error.h). */
int fy_segment_create(const fy_shm_options *options, int *fd);

/* Maps the segment `fd` refers to, after checking that it is one and of this version. Does not keep
 * `fd`. */
int fy_segment_map(int fd, fy_segment **out);
void fy_segment_unmap(fy_segment *segment);

/* Joins as `rank`. The segment must outlive the port. FERRY_EINVAL: no such rank, or it has joined
 * before. */
int fy_shm_join(fy_segment *segment, int rank, fy_port **out);

#endif
