#!/bin/sh
# Figure 5.13 of prema.txt, as CSV: 512 tasks on 32 ranks, a quarter of them 4.25 times as long as
# the rest; how long each rank was busy, with the helper thread and without.
set -eu
ferry=$1 synthetic=$2
echo "scheduler,helper,rank,busy_s,makespan_s"
for scheduler in ${SCHEDULERS:-diffusion stealing ferry}; do
    for helper in 1 0; do
        FERRY_HELPER=$helper "$ferry" sim -n 32 --seed 1 --net ethernet-100m "$synthetic" \
            --work compute --light 1000 --factor 4.25 --tasks 16 --heavy 25 --scheduler $scheduler |
            awk -v head="$scheduler,$helper" '
                $1 ~ /^[0-9]+$/ { busy[$1] = $3 / 1e3 }
                /makespan/ { sub(/.*makespan /, ""); makespan = $1 / 1e3 }
                END { for (i = 0; i < 32; i++)
                          printf "%s,%d,%.3f,%.3f\n", head, i, busy[i], makespan }'
    done
done
