#!/bin/sh
# Goal: in shared memory, ranks whose calls do not fit are told so, whatever the seed stops. Method:
# tests/core/crashing.sh with the seeds 1 to SEEDS of the simulator, and those of its cases in which
# a rank returns too early: the process of all ranks lives on.
#
#     crashing.sh FERRY PROGRAM SEEDS
ferry=$1 program=$2 seeds=$3 folder=${0%/*}
export CRASHING_CASES='return0:quiesce return3:phase return0:gather return0:allreduce'
seed=0
while [ $((seed += 1)) -le "$seeds" ]; do
    if ! sh "$folder/../core/crashing.sh" 4 30 \
        "$ferry" sim --seed $seed --net memory -n 4 "$program"; then
        echo "seed $seed failed"
        exit 1
    fi
done
