#!/bin/sh
# Figure 6.8 of prema.txt: what `ferry model` predicts beside what was measured, one line per
# experiment, as CSV. The distributions are those of 6.4: linear-2, linear-4 and step, with a fourth
# of the tasks heavy. The last column is the error of the schedule that is played through, in percent
# of the measured time.
#
#     model.sh FERRY SYNTHETIC [sim|run]
#
# sim: in the simulator, on a 100 Mb/s Ethernet, medians of 3 seeds. run: on this machine, with tasks
# that sleep, medians of 3 runs, and with the messages that `ferry calibrate` measured (where many
# ranks share few processors: chrt -r 1). RANKS, TASKS, SHAPES and SCHEDULERS say which.
set -eu
ferry=$1 synthetic=$2 how=${3:-sim}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$how" = sim ]; then
    light=1000 ranks_all="32 64"
    cat >"$work/machine" <<'END'
# The network ethernet-100m of the simulator; a message wakes the helper thread.
latency 60us
send 8us
receive 10us
byte 80ns
END
else
    light=${LIGHT:-25} ranks_all="2 4 8 16 32"
    "$ferry" calibrate -o "$work/machine"
fi

# measure RANKS ARGUMENT...: the median makespan in seconds
measure()
{
    ranks=$1
    shift
    for seed in 1 2 3; do
        if [ "$how" = sim ]; then
            "$ferry" sim -n "$ranks" --seed $seed --net ethernet-100m "$synthetic" --work compute "$@"
        else
            FERRY_SEED=$seed "$ferry" run -n "$ranks" "$synthetic" --work sleep "$@"
        fi
    done | sed -n 's/.*makespan \([0-9.]*\) ms.*/\1/p' | sort -n | sed -n 2p
}

# list_times SHAPE COUNT: the tasks, in milliseconds
list_times()
{
    awk -v shape="$1" -v count="$2" -v light="$light" 'BEGIN {
        for (i = 0; i < count; i++) {
            split(shape, part, "-")
            place = count > 1 ? i / (count - 1) : 0
            if (part[1] == "linear") factor = part[2] - (part[2] - 1) * place
            else factor = i < int(count / 4 + 0.5) ? 2 : 1
            printf "%.9fms\n", light * factor
        } }'
}

echo "shape,ranks,tasks,scheduler,measured_s,lower_s,average_s,upper_s,played_s,error_percent"
for shape in ${SHAPES:-linear-2 linear-4 step}; do
    case $shape in
    step) form="--shape step --heavy 25 --factor 2" ;;
    *) form="--shape linear --factor ${shape#linear-}" ;;
    esac
    for ranks in ${RANKS:-$ranks_all}; do
        for tasks in ${TASKS:-2 4 8 16}; do
            list_times "$shape" $((ranks * tasks)) >"$work/tasks"
            "$ferry" model -n "$ranks" -p "$work/machine" --csv "$work/tasks" >"$work/model"
            for scheduler in ${SCHEDULERS:-none diffusion stealing ferry}; do
                balance="--scheduler $scheduler"
                [ "$scheduler" != none ] || balance=--no-balance
                # shellcheck disable=SC2086 # words
                took=$(measure "$ranks" $form --light "$light" --tasks "$tasks" $balance)
                awk -F, -v head="$shape,$ranks,$tasks,$scheduler" -v took="$took" \
                    -v scheduler="$scheduler" '$2 == scheduler { took /= 1e3
                        printf "%s,%.3f,%.3f,%.3f,%.3f,%.3f,%.1f\n", head, took, $3, $4, $5, $6,
                            100 * ($6 / took - 1) }' "$work/model"
            done
        done
    done
done
