#!/bin/sh
# Figures 7.1-7.4 and 7.7-7.10 of prema.txt rank by rank, as CSV: how long each rank worked in the
# synthetic benchmark (synthetic.sh has its conditions). Each rank was idle for the rest of the
# makespan. RANKS, HEAVY, TASKS and SCHEDULERS say which.
set -eu
ferry=$1 synthetic=$2
echo "ranks,tasks,heavy,scheduler,rank,busy_s,makespan_s"
for ranks in ${RANKS:-32 64}; do
    for heavy in ${HEAVY:-25 10}; do
        for tasks in ${TASKS:-4 8 16}; do
            for scheduler in ${SCHEDULERS:-none diffusion stealing multilist gradient ferry}; do
                "$ferry" sim -n "$ranks" --seed 1 --net ethernet-100m "$synthetic" \
                    --work compute --light 1000 --tasks "$tasks" --heavy "$heavy" \
                    --scheduler "$scheduler" |
                    awk -v head="$ranks,$tasks,$heavy,$scheduler" -v ranks="$ranks" '
                        $1 ~ /^[0-9]+$/ { busy[$1] = $3 / 1e3 }
                        /makespan/ { sub(/.*makespan /, ""); makespan = $1 / 1e3 }
                        END { for (i = 0; i < ranks; i++)
                                  printf "%s,%d,%.3f,%.3f\n", head, i, busy[i], makespan }'
            done
        done
    done
done
