/* Port template: a small port that keeps the promises of port.h, to begin a new one from. Its ranks
 * do not die, and none joins.
 *
 * Its ranks are threads of one process, divided into nodes. The ranks of a node put copies of
 * frames into each other's boxes (template.c) and see each other's boards. Ranks of different nodes
 * share no memory: their frames travel between nodes as bytes (node.c). It passes the conformance
 * suite, as a new port does (tests/port/conformance.h), and runs programs (table.c). Each operation
 * says what a network has to think of. */
#ifndef FY_TEMPLATE_H
#define FY_TEMPLATE_H

#include "port/port.h"

typedef struct fy_template_job fy_template_job;

/* A job of `ranks` on `nodes`, 1 to `ranks`; the ranks of a node follow each other. Freed with
 * fy_template_job_destroy when all ports are closed. NULL without memory. */
fy_template_job *fy_template_job_create(int ranks, int nodes);
void fy_template_job_destroy(fy_template_job *job);

/* Joins as `rank`, once. How a process finds its job and its rank is the port's own affair: port
 * shm inherits a descriptor, port mpi asks MPI. FERRY_EINVAL, FERRY_ENOMEM. */
int fy_template_join(fy_template_job *job, int rank, fy_port **out);

#endif
