#!/bin/sh
# mpirun.sh MPIRUN RANKS PROGRAM [ARGUMENT...]: as a user would, but that Open MPI lets root run,
# and more ranks than there are processors.
mpirun=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1
exec timeout --kill-after=5 280 "$mpirun" -n "$ranks" "$@"
