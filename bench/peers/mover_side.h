/* Mover side: the kinds of Ferry's team that are whole programs; `context` begins with the rank. */
#ifndef BENCH_MOVER_SIDE_H
#define BENCH_MOVER_SIDE_H

#include <ferry/ferry.h>

#include "common/team.h"
#include "peers/check.h"

double bench_mover_redblack(void *context, const bench_job *job);
double bench_mover_mg(void *context, const bench_job *job);
double bench_mover_ft(void *context, const bench_job *job);
double bench_mover_summa(void *context, const bench_job *job);
double bench_mover_plan(void *context, const bench_job *job);
double bench_mover_amr(void *context, const bench_job *job);
double bench_mover_laplace(void *context, const bench_job *job); /* where BENCH_MESHES is defined */

#endif
