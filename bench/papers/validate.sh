#!/bin/sh
# The simulator against the machine, as CSV: tasks that sleep (LIGHT ms and twice that) on port shm,
# and the same program simulated on the network that `ferry calibrate` measured here. Makespans are
# medians over RUNS runs and as many seeds; status 1 when one differs by more than 5%.
set -eu
ferry=$1 synthetic=$2
runs=${RUNS:-5}
light=${LIGHT:-20} # longer on a machine that is busy with other things
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$ferry" calibrate -o "$scratch/here.net"

median() { sed -n 's/.*makespan \([0-9.]*\) ms.*/\1/p' | sort -n | sed -n "$(((runs + 1) / 2))p"; }

# many COMMAND...: the median makespan; the run's number is added to FERRY_SEED
many()
{
    for run in $(seq "$runs"); do
        FERRY_SEED=$run FERRY_SIM_SEED=$run "$@"
    done | median
}

echo "ranks,tasks,scheduler,shm_ms,sim_ms,difference_percent" | tee "$scratch/table"
for ranks in 2 4 8 16; do
    for tasks in ${TASKS:-4 8}; do
        for scheduler in off ferry stealing diffusion; do
            balance="--scheduler $scheduler"
            [ $scheduler != off ] || balance=--no-balance
            # shellcheck disable=SC2086 # two words
            shm=$(many "$ferry" run -n $ranks "$synthetic" --work sleep --light "$light" \
                --tasks $tasks $balance)
            # shellcheck disable=SC2086
            sim=$(many "$ferry" sim -n $ranks --net "$scratch/here.net" "$synthetic" \
                --work compute --light "$light" --tasks $tasks $balance)
            awk -v head="$ranks,$tasks,$scheduler" -v shm="$shm" -v sim="$sim" 'BEGIN {
                printf "%s,%s,%s,%.1f\n", head, shm, sim, 100 * (sim / shm - 1) }'
        done
    done
done | tee -a "$scratch/table"
awk -F, 'NR > 1 && ($6 > 5 || $6 < -5) { bad = 1 } END { exit bad }' "$scratch/table"
