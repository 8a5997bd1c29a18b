#!/bin/sh
# Goal: on 64 simulated ranks no scheduler is worse than no balancing, with preemption or without,
# and the default one is at the bound. Method: the synthetic benchmark of docs/papers/README.md,
# whose makespans are compared.
set -eu
ferry=$1 synthetic=$2
for helper in 1 0; do
    for scheduler in ferry stealing diffusion diffusion-sender gradient multilist master; do
        for tasks in 4 8; do
            FERRY_HELPER=$helper "$ferry" sim -n 64 --net ethernet-100m "$synthetic" \
                --work compute --light 1000 --tasks $tasks --scheduler $scheduler |
                awk -v tasks=$tasks -v which=$scheduler$helper '
                    /makespan/ { sub(/.*makespan /, ""); ran = 1; bound = $4
                        good = $1 <= 2004 * tasks && (which != "ferry1" || $1 < 1.002 * bound)
                        if (!good) print which ", " tasks " tasks: " $0 }
                    END { exit !(ran && good) }'
        done
    done
done
