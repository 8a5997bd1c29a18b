#!/bin/sh
# turns.sh RANKS SEEDS PROGRAM ARGUMENT...: runs a program that is linked with turns.c under the seeds
# 1 to SEEDS. As swarm.sh, make test takes a third of them; with TESTS_WHOLE all. Stops at the first
# that fails, with the command that repeats it. A program whose ranks die may end with status 1.
ranks=$1 seeds=$2
shift 2
[ -n "${TESTS_WHOLE:-}" ] || seeds=$(((seeds + 2) / 3))
export FERRY_THREADS=1 FERRY_RANKS="$ranks" FERRY_HEAP_BYTES=64M
seed=0
while [ $((seed += 1)) -le "$seeds" ]; do
    export TURNS_SEED=$seed FERRY_SIM_SEED=$seed
    out=$(timeout 120 "$@" 2>&1)
    status=$?
    if [ $status -ne 0 ] && { [ $status -ne 1 ] || [ -z "${TURNS_DEATHS:-}" ]; }; then
        echo "$out"
        echo "failed with status $status; repeat with: TURNS_SEED=$seed FERRY_SIM_SEED=$seed" \
            "TURNS_DEATHS=${TURNS_DEATHS:-} FERRY_THREADS=1 FERRY_RANKS=$ranks" \
            "FERRY_HEAP_BYTES=64M $*"
        exit 1
    fi
done
echo "$seeds seeds"
