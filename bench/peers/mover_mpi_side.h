/* Mover MPI side: the kinds of the MPI teams that are whole programs. */
#ifndef BENCH_MOVER_MPI_SIDE_H
#define BENCH_MOVER_MPI_SIDE_H

#include <stdbool.h>

#include "common/team.h"

/* The context of a team points at this. */
typedef struct bench_mpi_state {
    int rank, ranks;
    bool types; /* derived datatypes take the place of packing */
} bench_mpi_state;

double bench_mpi_redblack(void *context, const bench_job *job);
double bench_mpi_mg(void *context, const bench_job *job);
double bench_mpi_ft(void *context, const bench_job *job);
double bench_mpi_summa(void *context, const bench_job *job);
double bench_mpi_amr(void *context, const bench_job *job);
double bench_mpi_laplace(void *context, const bench_job *job); /* where BENCH_MESHES is defined */

#endif
