/* Port shm, as its users in boot and launch see it: one segment of a job, and ranks that join it.
 *
 * The segment is a memfd, sized once and sealed against resizing, inherited or passed, never named.
 * Every process of the job maps it once, at the same address; ranks that are threads of one process
 * share that mapping. */
#ifndef FY_SHM_H
#define FY_SHM_H

#include "base/shared.h"
#include "port/port.h"

#define FY_RANKS_MAX 1024

/* Zero means the default of ferry_options (core.h). */
typedef struct fy_shm_options {
    int ranks;
    int ranks_max;       /* with those that may join later; at least `ranks` */
    size_t heap_bytes;   /* per rank; reserved, not committed */
    uint32_t arenas;     /* how many heaps; zero: one per rank, or as many as there is room for */
    uint32_t ring_slots; /* per (source, target, lane, thread); a power of two */
    uint32_t ring_bytes; /* likewise */
} fy_shm_options;

typedef struct fy_segment fy_segment;

/* Makes the segment of a job. On success `*fd` is the caller's. On failure an FERRY_E code, and the
 * reason by fy_error_set (base/error.h). */
FY_SHARED int fy_segment_create(const fy_shm_options *options, int *fd);

/* Maps the segment `fd` refers to, after checking that it is one and of this version. Does not keep
 * `fd`. */
FY_SHARED int fy_segment_map(int fd, fy_segment **out);
FY_SHARED void fy_segment_unmap(fy_segment *segment);

/* Takes `fd`, from which the segment was mapped: `ferry why` looks among a process's descriptors
 * for the job. */
void fy_segment_keep(fy_segment *segment, int fd);

/* Joins as `rank`. The segment must outlive the port. FERRY_EINVAL: no such rank, or it has joined
 * before. */
FY_SHARED int fy_shm_join(fy_segment *segment, int rank, fy_port **out);

/* Sets what `advance` does on this rank; FY_COMPUTE_NONE at the start. [application thread] */
FY_SHARED void fy_shm_compute_set(fy_port *port, fy_compute mode);

/* How many places for ranks the segment has. */
int fy_segment_ranks(const fy_segment *segment);

/* Whether the job has other nodes, whose ranks a relay stands for: the port needs what
 * fy_nodes_table (port/nodes/table.h) adds. */
bool fy_segment_is_relayed(const fy_segment *segment);

/* Has ranks [first, first + count) started, with `argv` or, when that is NULL, as the others were.
 * 0, or an error with fy_error_set: none was. [application thread of any rank] */
typedef int fy_spawner(void *arg, int first, int count, char *const argv[]);

/* Sets how ranks of this process have others started; without, they cannot. Before they do. */
FY_SHARED void fy_segment_spawner_set(fy_segment *segment, fy_spawner *spawner, void *arg);

#endif
