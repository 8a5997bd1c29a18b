#!/bin/sh
# Tables II-IV of dmcs.txt and Figures 4.3-4.5, 4.15 and 4.16 of prema.txt, as CSV. pingpong.c
# measures them on the simulated Ethernet of 2004, or, with "here", on this machine: in shared
# memory and over Open MPI without it. PREFIX (say, "chrt -r 1") goes before each measured run.
set -eu
ferry=$1 pingpong=$2
echo "network,form,bytes,call_us,mpi_us,half_round_us"
if [ "${3:-}" != here ]; then
    exec "$ferry" sim -n 2 --seed 1 --net ethernet-100m "$pingpong" ethernet-2004 5
fi
# shellcheck disable=SC2086 # words
${PREFIX:-} "$ferry" run -n 2 "$pingpong" shm "${ROUNDS:-500}"
timer=$(dirname "$pingpong")/mpi_time.so # how much of a call is MPI's own
if command -v mpirun.openmpi >/dev/null && [ -f "$timer" ]; then
    # shellcheck disable=SC2086
    FERRY_MPI_SHM=0 ${PREFIX:-} mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 \
        -x LD_PRELOAD="$timer" "$pingpong" openmpi "${ROUNDS:-500}"
fi
