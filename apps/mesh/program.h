/* The parallel program: sub-domains as mobile objects, refined by tasks wherever they are.
 *
 * Rank 0 reads and decomposes the input, makes one object per sub-domain and sends each to the rank
 * that owns its number; consecutive numbers are neighbours, so a rank begins with one piece of
 * land. A "refine" message makes a sub-domain's first task. A task that halves a shared edge tells
 * the neighbouring object, wherever it is. ferry_quiesce finds the end. A "measure" message then
 * counts what each object has. To be drawn or checked, the objects come home to rank 0.
 *
 * With a budget each rank has a store, which keeps sub-domains without work on disk until the
 * refinement has ended. */
#ifndef MESH_PROGRAM_H
#define MESH_PROGRAM_H

#include "decompose.h"
#include "options.h"
#include "output.h"

#include <ferry/ferry.h>

/* Ranks must agree on this before they begin; broadcast as it stands. */
typedef struct mesh_start {
    int32_t failed; /* rank 0 has said why */
    int32_t subdomains;
    mesh_sizing sizing;
    mesh_quality quality;
    int64_t slice;
    double point_cost_s;
} mesh_start;

/* The work of a rank while the mesh was refined. Sent to rank 0 as it stands. */
typedef struct mesh_account {
    ferry_stats stats; /* of the refinement alone */
    ferry_store_stats store;
    uint64_t splits;
    uint64_t peak_bytes; /* the most memory of the rank's process until the refinement's end */
    int64_t triangles, points, memory_bytes; /* of sub-domains that it has in the end */
} mesh_account;

/* One rank's state: its ferry_user_data. */
typedef struct mesh_program {
    mesh_options options;
    mesh_start start;
    ferry_object *objects; /* by sub-domain, the same on every rank */
    ferry_object_type type;
    ferry_handler refine, split, measure; /* of objects */
    ferry_handler progress, account;      /* of ranks */
    ferry_store *store;                   /* NULL: there is no budget */
    mesh_splits splits;                   /* of the task that runs */
    uint64_t splits_sent;
    uint64_t begin_ns, end_ns; /* of the refinement */

    /* Rank 0 alone. */
    mesh_poly poly;
    mesh_pslg pslg;
    mesh_decomp decomp;
    double decompose_s;
    int32_t refined, shown; /* sub-domains whose first refinement is done; as last printed */
    mesh_account *accounts; /* by rank */
    int32_t account_count;
} mesh_program;

/* Registers the object type and every handler. 0 or FERRY_E... */
int mesh_register(ferry *f, mesh_program *p);

int mesh_register_collect(ferry *f, mesh_program *p);

/* Rank 0: reads the input, decomposes it, fills p->start. On failure says why and sets
 * start.failed. */
void mesh_prepare(ferry *f, mesh_program *p);

/* Makes the objects and brings them where they begin. Collective. 0 or FERRY_E... */
int mesh_distribute(ferry *f, mesh_program *p);

/* Refines until nothing is left to do anywhere. Collective. 0 or FERRY_E... */
int mesh_refine_all(ferry *f, mesh_program *p);

/* Whether sub-domains are drawn or checked, for which all come to rank 0. */
static inline bool mesh_comes_home(const mesh_program *p)
{
    return p->options.check || p->options.out != NULL;
}

/* Counts what the sub-domains of each rank have. Collective. 0 or FERRY_E... */
int mesh_measure(ferry *f, mesh_program *p);

/* Brings accounts to rank 0, and sub-domains into its memory if they come home. Collective. 0 or
 * FERRY_E... */
int mesh_collect(ferry *f, mesh_program *p);

/* Rank 0: prints the table, writes the files, checks. The exit status. */
int mesh_report(ferry *f, mesh_program *p);

/* A sub-domain that is on this rank; NULL when it is elsewhere. */
mesh_sub *mesh_local(ferry *f, const mesh_program *p, int32_t index);

/* The rank that a sub-domain begins on. */
int mesh_home(const ferry *f, const mesh_program *p, int32_t index);

#endif
