#!/bin/sh
# Figure 6.8 of prema.txt for the step distribution: what `ferry model` predicts beside what the
# simulator measured (synthetic.csv), one line per experiment, as CSV. Error: of the schedule that
# is played through, in percent of the simulated time.
#
#     model.sh FERRY SYNTHETIC.CSV
set -eu
ferry=$1 measured=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/machine" <<'END'
# The network ethernet-100m of the simulator; a message wakes the helper thread.
latency 60us
send 8us
receive 10us
byte 80ns
quantum 0us
task-bytes 1100
END

echo "ranks,tasks,heavy,scheduler,simulated_s,lower_s,average_s,upper_s,played_s,error_percent"
grep ',1,[0-9.]*,[0-9.]*,[0-9.]*,[-0-9.]*$' "$measured" | while IFS=, read -r ranks tasks heavy scheduler \
    helper makespan bound none gain; do
    case $scheduler in ferry | stealing | diffusion) ;; *) continue ;; esac
    awk -v count=$((ranks * tasks)) -v heavy="$heavy" 'BEGIN {
        for (i = 1; i <= count; i++) print i <= int(count * heavy / 100 + 0.5) ? "2s" : "1s" }' \
        >"$work/tasks"
    "$ferry" model -n "$ranks" -p "$work/machine" --csv "$work/tasks" |
        awk -F, -v head="$ranks,$tasks,$heavy" -v scheduler="$scheduler" -v measured="$makespan" '
            $2 == scheduler { printf "%s,%s,%.3f,%.3f,%.3f,%.3f,%.3f,%.1f\n", head, scheduler,
                measured, $3, $4, $5, $6, 100 * ($6 / measured - 1) }'
done
