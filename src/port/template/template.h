/* Port template: the smallest port that keeps every promise of port.h, to begin a new one from.
 *
 * Its ranks are threads of one process that put copies of frames into each other's boxes, under one
 * lock. Nothing uses it but the conformance suite, which a new port passes as well
 * (tests/port/conformance.h). template.c says at each operation what a network has to think of.
 *
 * It has one node. A network between nodes needs no port but a binding of port nodes, and
 * port/nodes/loopback is the template of these. */
#ifndef FY_TEMPLATE_H
#define FY_TEMPLATE_H

#include "port/port.h"

typedef struct fy_template_job fy_template_job;

/* A job of `ranks`; freed with fy_template_job_destroy when all ports are closed. NULL without
 * memory. */
fy_template_job *fy_template_job_create(int ranks);
void fy_template_job_destroy(fy_template_job *job);

/* Joins as `rank`, once. How a process finds its job and its rank is the port's own affair: port
 * shm inherits a descriptor, port mpi asks MPI. FERRY_EINVAL, FERRY_ENOMEM. */
int fy_template_join(fy_template_job *job, int rank, fy_port **out);

#endif
