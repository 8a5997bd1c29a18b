/* Cuts the domain into sub-domains.
 *
 * A coarse mesh of good quality is made first. Its triangles are grouped into `count` parts, by
 * METIS when it is there and by recursive bisection otherwise; edges between parts are the cuts.
 * Corners of parts are never small, so cuts add no small angles. No cut ends within a right angle
 * of the input, and no part keeps a corner of less than 45 degrees next to a cut if that can be
 * avoided. Parts are connected where the domain is, and numbered along a Hilbert curve: consecutive
 * ones are neighbours, so ranks can take contiguous ranges. Threads: no shared state. The same
 * input gives the same decomposition on every rank. */
#ifndef MESH_DECOMPOSE_H
#define MESH_DECOMPOSE_H

#include "pslg.h"
#include "sub.h"

#define MESH_SUBDOMAINS_MAX 65536

typedef struct mesh_cut {
    int32_t a, b;    /* points of the coarse mesh */
    int32_t sub[2];  /* left and right of a to b */
    int32_t segment; /* the input segment it lies on, or -1 */
} mesh_cut;

typedef struct mesh_decomp {
    int32_t count;
    mesh_sub *coarse;
    int32_t *part;       /* of each coarse triangle */
    int32_t *part_start; /* part p's triangles: part_tri[part_start[p] .. part_start[p+1]-1] */
    int32_t *part_tri;
    int32_t *cut_at; /* cut across slot i of coarse triangle t: cut_at[3 t + i], or -1 */
    mesh_cut *cut;
    int32_t cut_count;
    bool used_metis;
} mesh_decomp;

typedef struct mesh_decompose_options {
    int32_t count;        /* sub-domains wanted */
    double work_share;    /* 0: equal areas; 1: equal expected work; between: a mix of both */
    bool avoid_metis;     /* bisect even when METIS is there */
    double triangles_max; /* refuse sizes that need more triangles; 0: no limit */
} mesh_decompose_options;

#define MESH_DECOMPOSE_DEFAULTS                                                                    \
    {                                                                                              \
        64, 0.5, false, 0.0                                                                        \
    }

/* Gives *out (free with mesh_decomp_fini), or returns -1 with log->error: the holes swallow
 * everything, so many sub-domains cannot be made, or the sizes need too many triangles. Borrows the
 * rest. */
int mesh_decompose(const mesh_pslg *pslg, const mesh_sizing *sizing,
                   const mesh_decompose_options *options, mesh_decomp *out, mesh_log *log);

/* Makes sub-domain `index`, its shared edges split to the local size, all triangles queued. Gives
 * it (free with mesh_sub_destroy), or NULL with log->error. */
mesh_sub *mesh_decomp_sub(const mesh_decomp *decomp, const mesh_sizing *sizing, int32_t index,
                          mesh_log *log);

void mesh_decomp_fini(mesh_decomp *decomp);

/* About how many triangles the refined mesh will have, within some ten percent. */
double mesh_decomp_estimate(const mesh_decomp *decomp, const mesh_sizing *sizing);

/* True when this build has METIS. */
bool mesh_have_metis(void);

#endif
