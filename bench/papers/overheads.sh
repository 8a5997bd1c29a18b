#!/bin/sh
# Tables 7.1 and 7.2 of prema.txt, as CSV: what the runtime takes on 128 ranks, by category, from
# FERRY_PROFILE; the mean over the ranks, in milliseconds. The program is the synthetic benchmark,
# whose runs take as long as the thesis's meshes (some 700 s), instead of its two programs. Sending
# and taking messages cost what the simulated network says, 8 us each; what the runtime computes
# costs nothing there, so `scheduler` and `callbacks` are counted by the clock's own steps alone.
# SCHEDULERS says which.
set -eu
ferry=$1 synthetic=$2
echo "scheduler,ranks,send_ms,callbacks_ms,scheduler_ms,poll_ms,helper_ms,makespan_s,overhead_percent"
for scheduler in ${SCHEDULERS:-none stealing diffusion multilist master ferry}; do
    FERRY_PROFILE=1 "$ferry" sim -n "${RANKS:-128}" --seed 1 --net ethernet-100m "$synthetic" \
        --work compute --light 30000 --tasks 16 --heavy 25 --scheduler "$scheduler" 2>&1 |
        awk -v head="$scheduler" '
            /send ms +pack ms/ { table = 1; next }
            table && NF == 9 && $1 ~ /^[0-9]+$/ {
                n++; send += $2; calls += $3 + $4; sched += $5; poll += $6; helper += $7
                sum += $8 }
            /^messages to/ { table = 0 }
            /makespan/ { sub(/.*makespan /, ""); makespan = $1 / 1e3 }
            END { printf "%s,%d,%.3f,%.3f,%.3f,%.3f,%.3f,%.2f,%.4f\n", head, n, send / n, calls / n,
                      sched / n, poll / n, helper / n, makespan, sum / n / makespan / 10
                  exit n == 0 }'
done
