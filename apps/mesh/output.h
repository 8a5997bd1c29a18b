/* Files for people and programs: mesh.vtu, mesh.svg, summary.json.
 *
 * Every function writes one file, returns 0, or -1 with log->error naming the file; a file that
 * could not be written whole is removed. Arguments are borrowed. Threads: no shared state. */
#ifndef MESH_OUTPUT_H
#define MESH_OUTPUT_H

#include "check.h"
#include "pslg.h"
#include "sub.h"

/* The refined sub-domains; head.rank of each says which rank refined it. */
typedef struct mesh_picture {
    const mesh_pslg *pslg;
    mesh_sub *const *sub;
    int32_t sub_count;
    int32_t rank_count;
    const char *title;    /* may be NULL */
    const char *subtitle; /* may be NULL */
    const char *unit;     /* of the input's coordinates, for the scale bar: "km" */
} mesh_picture;

/* For ParaView: all triangles, with `rank` and `subdomain` as cell data; binary, as base64. */
int mesh_write_vtu(const char *path, const mesh_picture *picture, mesh_log *log);

/* A map coloured by rank. All triangles are drawn while there are at most 60,000; in larger meshes
 * those whose edges are longer than 2.5 pixels are, and a magnified part shows the rest. */
int mesh_write_svg(const char *path, const mesh_picture *picture, mesh_log *log);

typedef struct mesh_rank_summary {
    double busy_s, runtime_s, idle_s;
    int64_t triangles, messages, splits, migrations_in, migrations_out;
} mesh_rank_summary;

typedef struct mesh_summary {
    const char *input, *scheduler;
    int32_t ranks, cores, subdomains;
    double angle_deg, size;
    int32_t feature_count;
    const mesh_feature *feature; /* in the input's units */
    double makespan_s, bound_s;  /* bound: total busy time / min(ranks, cores) */
    double decompose_s;
    int64_t triangles, points, splits, memory_bytes;
    const mesh_rank_summary *rank;
    const mesh_check_result *check; /* NULL: not checked */
} mesh_summary;

int mesh_write_summary(const char *path, const mesh_summary *summary, mesh_log *log);

#endif
