#!/bin/sh
# Goal: ferry_main finds its place in any environment, or says why not. Method: runs the program in
# $1 with variables set, and looks at status and message.
set -u
program=$1
failed=0

# expect STATUS TEXT VARIABLE=VALUE...
expect() {
    want=$1 text=$2
    shift 2
    got=$(env "$@" timeout 60 "$program" 10 2>&1)
    status=$?
    case $got in
    *"$text"*) ;;
    *) status="$status without \"$text\": $got" ;;
    esac
    [ "$status" = "$want" ] || { echo "FAILED: $*: $status, expected $want"; failed=1; }
}

expect 0 "half round trip" FERRY_RANKS=1
expect 0 "half round trip" FERRY_RANKS=3
expect 0 "half round trip" FERRY_RANKS=3 FERRY_THREADS=1
expect 0 "half round trip" FERRY_RANKS=2 FERRY_RING_SLOTS=8 FERRY_RING_BYTES=1K
expect 1 "FERRY_RANKS is \"0\"; expected a number from 1 to 1024" FERRY_RANKS=0
expect 1 "FERRY_RANKS is \"two\"" FERRY_RANKS=two
expect 1 "FERRY_RANKS is \"99999999999999999999\"" FERRY_RANKS=99999999999999999999
expect 1 "FERRY_THREADS is \"2\"" FERRY_THREADS=2
expect 1 "FERRY_PORT is \"tcp\"; expected shm, mpi or sim" FERRY_PORT=tcp
expect 1 "FERRY_COMPUTE is \"x\"" FERRY_COMPUTE=x
expect 1 "FERRY_RING_SLOTS is \"1\"" FERRY_RING_SLOTS=1
expect 1 "power of two" FERRY_RING_SLOTS=9
expect 1 "expected a number from 1048576 to 70368744177664; it may end with K, M, G or T" \
    FERRY_HEAP_BYTES=12X
expect 0 "unknown variable FERRY_RANK_S is ignored; the nearest known name is FERRY_RANKS" FERRY_RANK_S=1

# A wrong value is told in every port, also of a variable that this run has no use for.
for port in FERRY_RANKS=1 FERRY_RANKS=2 FERRY_THREADS=1 FERRY_PORT=sim; do
    expect 1 "FERRY_QUANTUM_US is \"0\"; expected a number from 1 to 1000000" "$port" FERRY_QUANTUM_US=0
    expect 1 "FERRY_HELPER is \"no\"; expected a number from 0 to 1" "$port" FERRY_HELPER=no
    expect 1 "FERRY_MPI_SHM is \"2\"" "$port" FERRY_MPI_SHM=2
    expect 1 "FERRY_SIM_SEED is \"-1\"" "$port" FERRY_SIM_SEED=-1
    expect 1 "FERRY_COMPUTE is \"x\"; expected none, sleep or spin" "$port" FERRY_COMPUTE=x
    expect 1 "FERRY_COMPUTE is \"or\"; expected none" "$port" FERRY_COMPUTE=or
    expect 1 "FERRY_COMPUTE is \"slee\"; expected none" "$port" FERRY_COMPUTE=slee
    expect 0 "half round trip" "$port" FERRY_COMPUTE=sleep
done
long=FERRY_SCHEDULE_WITH_A_NAME_THAT_IS_LONGER_THAN_ALL_THOSE_THAT_FERRY_KNOWS
expect 0 "unknown variable $long is ignored" "$long=1"
expect 1 "(OMPI_COMM_WORLD_SIZE) says that this is one of 4 ranks" OMPI_COMM_WORLD_SIZE=4
expect 1 "(PMI_SIZE) says that this is one of 2 ranks" PMI_SIZE=2
expect 1 "(SLURM_NTASKS)" SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=8
expect 1 "(PMIX_RANK) says that this is one of 2 ranks" PMIX_NAMESPACE=job PMIX_RANK=0 FERRY_PORT=shm
expect 1 "(PMIX_RANK) says that this is one of 4 ranks" PMIX_NAMESPACE=job PMIX_RANK=3 FERRY_PORT=shm
expect 0 "half round trip" PMIX_NAMESPACE=job PMIX_RANK=0 OMPI_COMM_WORLD_SIZE=1
expect 0 "half round trip" SLURM_NTASKS=8
expect 0 "half round trip" OMPI_COMM_WORLD_SIZE=1
exit $failed
