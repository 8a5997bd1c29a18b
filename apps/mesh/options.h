/* The command line of the mesh program. */
#ifndef MESH_OPTIONS_H
#define MESH_OPTIONS_H

#include "sizing.h"

#include <stdint.h>

typedef struct mesh_options {
    const char *input;
    const char *out;       /* folder for the results */
    const char *scheduler; /* NULL: what FERRY_SCHEDULER or the library says */
    long subdomains;
    double angle_deg;
    double size; /* longest edge, in the input's unit */
    mesh_feature feature[MESH_FEATURES_MAX];
    int32_t feature_count;
    double work_share;     /* of sub-domains: 0 equal areas, 1 equal expected work */
    long slice;            /* points that one task makes at most; 0: no limit */
    double point_cost_us;  /* time of a simulated rank for each point */
    uint64_t budget_bytes; /* of sub-domains that a rank holds in memory; 0: no limit */
    bool check;
    bool help;
} mesh_options;

/* Reads the command line. Returns 0, or -1 when something is wrong with it; with `talk` says what
 * on standard error. Strings are lent by `argv`. */
int mesh_options_read(int argc, char **argv, bool talk, mesh_options *out);

/* Prints how the program is called. */
void mesh_options_help(void);

#endif
