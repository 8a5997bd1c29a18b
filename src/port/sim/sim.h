/* Port sim, as boot sees it: a job of any size in one process, in virtual time.
 *
 * Each rank is a fiber of the calling thread. A run depends on the options and the program
 * alone: equal seeds give equal runs, told by a hash over every event. docs/simulator.md. */
#ifndef FY_SIM_H
#define FY_SIM_H

#include "base/shared.h"
#include "port/port.h"

#define FY_SIM_RANKS_MAX 65536

/* Exit statuses of runs that the simulator ends. */
enum {
    FY_SIM_STUCK = 120,  /* ranks wait and nothing will ever happen */
    FY_SIM_BROKEN = 121, /* an oracle saw a promise broken, or a stack was overrun */
};

/* Zero and NULL mean the default. Texts are lent until fy_sim_run returns. */
typedef struct fy_sim_options {
    int ranks;              /* 1 */
    int ranks_max;          /* with those that may join later; `ranks` */
    uint64_t seed;          /* 0 */
    const char *net;        /* preset or file; "shm" */
    const char *faults;     /* plan; none */
    const char *speeds;     /* of ranks; all 1 */
    const char *disk;       /* times of disks; none */
    const char *tape;       /* file to write the faults that struck to; none */
    uint64_t quantum_ns;    /* the helper looks every so often; 0: a control frame wakes it */
    uint32_t cpu_permille;  /* measured processor time of the program counts so much; 0: nothing */
    size_t stack_bytes;     /* per fiber; 64 KiB, 256 KiB under sanitizers */
    size_t heap_bytes;      /* per rank, of alloc; no limit */
    uint32_t ring_slots;    /* per (source, target, lane, thread); 256 */
    uint32_t ring_bytes;    /* likewise; 64 KiB */
    uint64_t time_limit_ns; /* virtual; ends the run as stuck; none */
    uint64_t memory_bytes;  /* the run is broken once it has so much more in use; no limit */
    bool report;            /* prints what the run was, and its hash, on standard error */
} fy_sim_options;

/* Reads FERRY_RANKS and FERRY_SIM_* over `options`. FERRY_EINVAL with fy_error_set. */
int fy_sim_options_read(fy_sim_options *options);

/* Whether a run with `options` could be made; it runs nothing. FERRY_E... with fy_error_set. */
int fy_sim_check(const fy_sim_options *options);

/* Runs all ranks to their end and returns the job's exit status: 0, that of the first rank that
 * failed, which ends the job, or FY_SIM_STUCK or FY_SIM_BROKEN after a report on standard error.
 * Memory of ranks that did not end is not freed. FERRY_E...: nothing was started, or the
 * tape not written; fy_error_set. */
int fy_sim_run(const fy_sim_options *options, fy_port_main *rank_main, void *arg);

/* The simulator as boot finds it: in the same file, or in the plug-in "port-sim" (port/plugin.h).
 */
FY_SHARED extern const fy_port_entry fy_port_table;

/* FERRY_ENOTSUP with fy_error_set: there is no plug-in. */
int fy_sim_find(const fy_port_entry **out);

#endif
