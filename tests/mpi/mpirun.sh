#!/bin/sh
# mpirun.sh MPIRUN RANKS PROGRAM [ARGUMENT...]: as a user would, but that Open MPI lets root run,
# and more ranks than there are processors. MPIRUN may be the word loopback: port loopback, whose
# ranks are one node, or with FERRY_MPI_SHM=0 each a node.
mpirun=$1 ranks=$2
shift 2
if [ "$mpirun" = loopback ]; then
    [ "${FERRY_MPI_SHM:-1}" = 0 ] || export FERRY_LOOPBACK_NODES=1
    export FERRY_PORT=loopback FERRY_RANKS="$ranks"
    exec timeout --kill-after=5 280 "$@"
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1
exec timeout --kill-after=5 280 "$mpirun" -n "$ranks" "$@"
