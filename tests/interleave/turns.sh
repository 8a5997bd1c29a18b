#!/bin/sh
# turns.sh RANKS SEEDS PROGRAM ARGUMENT...: runs a program that is linked with turns.c under the seeds
# 1 to SEEDS. As swarm.sh, make test takes a third of them; with TESTS_WHOLE all. Stops at the first
# that fails, with the command that repeats it. A program ends with status
# TURNS_STATUS, which is 0 by default, and after a death with that or TURNS_ENDS.
ranks=$1 seeds=$2 usual=${TURNS_STATUS:-0}
shift 2
[ -n "${TESTS_WHOLE:-}" ] || seeds=$(((seeds + 2) / 3))
export FERRY_THREADS=1 FERRY_RANKS="$ranks" FERRY_HEAP_BYTES=64M
seed=0
while [ $((seed += 1)) -le "$seeds" ]; do
    export TURNS_SEED=$seed FERRY_SIM_SEED=$seed
    out=$(timeout 120 "$@" 2>&1)
    status=$?
    case $out in *"turns: rank "*" dies"*) ends=${TURNS_ENDS:-0} ;; *) ends=$usual ;; esac
    if [ $status -ne "$usual" ] && [ $status -ne "$ends" ]; then
        echo "$out"
        echo "failed with status $status; repeat with: TURNS_SEED=$seed FERRY_SIM_SEED=$seed" \
            "TURNS_DEATHS=${TURNS_DEATHS:-} FERRY_THREADS=1 FERRY_RANKS=$ranks" \
            "FERRY_HEAP_BYTES=64M $*"
        exit 1
    fi
done
echo "$seeds seeds"
