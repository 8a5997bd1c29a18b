/* The parallel program: sub-domains as mobile objects, meshed by tasks wherever they are.
 *
 * Every rank knows the domain and the sizing, so a sub-domain that is not meshed is no more than
 * its number. A "mesh" message makes its only task, which has the mesher fill it. The balancer
 * moves waiting sub-domains while meshers work. ferry_quiesce finds the end. With --check each
 * sub-domain then checks its mesh and sends its upper interfaces to its neighbours, which compare.
 */
#ifndef FRONT_PROGRAM_H
#define FRONT_PROGRAM_H

#include <ferry/ferry.h>

#include "mesher.h"

typedef struct front_options {
    front_domain domain;
    front_sizing sizing;
    const char *mesher;    /* path of the program; NULL: the one beside this program */
    const char *scheduler; /* NULL: what FERRY_SCHEDULER or the library says */
    const char *replay;    /* a file of costs: tasks take these times and make no mesh */
    const char *record;    /* a file for the costs */
    const char *out;       /* a folder for the mesh */
    double factor;         /* of the times that are replayed */
    long threshold;        /* fewer waiting sub-domains than this stop all ranks */
    long stops;            /* at most so many */
    bool repartition, hint, check;
} front_options;

/* Counts of one rank, or sums over all. */
typedef struct front_totals {
    uint64_t meshed, failed, tets, points, interfaces, checked, wrong;
    double volume;
} front_totals;

/* The state of one rank: its ferry_user_data. */
typedef struct front_program {
    front_options options;
    ferry_object_type type;
    ferry_handler mesh, check, compare, stop;
    ferry_object *objects; /* by sub-domain, the same on every rank */
    double *seconds;       /* by sub-domain: replayed, or taken on this rank */
    int32_t *waiting_here; /* by sub-domain: 1 if it is here and waits for its mesh */
    int64_t *weights;      /* by sub-domain: the spots, before which nothing is known of its time */
    front_mesher mesher;
    front_totals totals;
    int32_t waiting; /* sub-domains on this rank that wait for their mesh */
    int32_t stops;   /* stops that ranks have asked for */
    int32_t rounds;  /* stops that were made */
    uint64_t took_ns;
    double busy_s; /* in meshers */
    ferry_stats before, after;
} front_program;

/* A sub-domain: an object's data. */
typedef struct front_part {
    int32_t index;
    bool meshed, failed;
    front_mesh mesh;
} front_part;

/* Reads the command line. Returns -1 to go on, else the exit status. */
int front_options_read(ferry *f, int argc, char **argv, front_options *out);

/* Registers the object type and all handlers. 0 or FERRY_E... */
int front_register(ferry *f, front_program *p);
int front_register_check(ferry *f, front_program *p);
int front_register_stop(ferry *f, front_program *p);

/* Makes the objects of this rank; all ranks learn their names. Collective. 0 or FERRY_E... */
int front_create(ferry *f, front_program *p);

/* Meshes a sub-domain that is here. */
void front_mesh_part(ferry *f, front_program *p, front_part *part);

/* Meshes all sub-domains: by tasks that the scheduler moves. Collective. 0 or FERRY_E... */
int front_run(ferry *f, front_program *p);

/* The same without a scheduler: a rank that has few left stops all of them, and METIS divides what
 * is left. Collective. 0 or FERRY_E... */
int front_run_repartition(ferry *f, front_program *p);

/* Divides the sub-domains of which `owner` is not negative anew among the ranks. False: METIS
 * failed or is not built in. */
bool front_repartition(const front_domain *d, const int64_t *weights, int ranks, int32_t *owner);
bool front_can_repartition(void);

/* Checks all meshes and their interfaces. Collective. 0 or FERRY_E... */
int front_check_all(ferry *f, front_program *p);

/* Reads p->seconds from the file of costs, on every rank; rank 0 says what is wrong. Collective.
 * False: it failed. */
bool front_costs_read(ferry *f, front_program *p);

/* Rank 0 writes the costs that all ranks have. Collective. False: it failed. */
bool front_costs_write(ferry *f, front_program *p);

/* Writes the mesh to the folder that the options say; ranks say what is wrong. Collective. False:
 * it failed. */
bool front_out_write(ferry *f, const front_program *p);

/* Rank 0 prints what was made. Collective. Returns the exit status. */
int front_report(ferry *f, front_program *p);

#endif
