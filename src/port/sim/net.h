/* Net: what a frame's way between two ranks costs, by LogGP over a topology.
 *
 * A frame of k bytes costs its sender `send`. It leaves when the sender's adapter is free, and
 * occupies it for the longer of `gap` and k * `byte`. It arrives `latency` + k * `byte` later, and
 * costs its receiver `receive` when it is taken. Constant after it was made. docs/simulator.md
 * describes the file format. */
#ifndef FY_NET_H
#define FY_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fy_sim_link {
    uint64_t latency_ns, send_ns, receive_ns, gap_ns;
    uint64_t byte_ps; /* picoseconds per byte */
} fy_sim_link;

typedef enum fy_topology { FY_FLAT, FY_NODES, FY_TORUS } fy_topology;

/* A pair of ranks with a link of its own, in one direction. */
typedef struct fy_net_pair {
    int source, target;
    fy_sim_link link;
} fy_net_pair;

typedef struct fy_net {
    fy_topology topology;
    int node_ranks;   /* FY_NODES: ranks per node */
    int extent[3];    /* FY_TORUS */
    bool shared;      /* all ranks share memory */
    bool direct;      /* likewise, with boards; a frame is there as soon as it was sent */
    fy_sim_link far;  /* between nodes; the only one of other topologies */
    fy_sim_link near; /* within a node */
    uint64_t hop_ns;  /* FY_TORUS: for each hop after the first */
    uint64_t wake_ns; /* from an arrival to the waiting rank's first step */
    uint64_t look_ns; /* that a task is longer by for each quantum, since a helper looks */
    fy_net_pair *pairs;
    size_t pair_count;
} fy_net;

/* Reads the preset or, with a '/' or '.' in its name, the file `name`. Freed with fy_net_fini.
 * FERRY_EINVAL, FERRY_ESYSTEM, FERRY_ENOMEM, with fy_error_set: file and line. */
int fy_net_open(const char *name, int ranks, fy_net *net);

/* As fy_net_open, from `text`, called `name` in errors. */
int fy_net_parse(const char *name, const char *text, int ranks, fy_net *net);
void fy_net_fini(fy_net *net);

/* The preset called `name`, or number `index` when that is NULL: its text in the format of files;
 * NULL for none. */
const char *fy_net_preset(const char *name, size_t index, const char **name_out);

/* The link from `source` to `target`, the topology's distance included. */
void fy_net_link(const fy_net *net, int source, int target, fy_sim_link *link);

/* Reads a time such as 1.5us or 40ps, in picoseconds; without a unit nanoseconds. Whether it was
 * one. `*end` is what follows. */
bool fy_net_time(const char *text, uint64_t *ps, const char **end);

#endif
