#!/bin/sh
# Prints what FERRY_STEER gains, one line per experiment, as CSV: run times in ms as usual, with
# steering that begins there, and with the best of all fixed settings. A setting is a scheduler,
# its parameters and a quantum. The programs are those of foresight.sh, and the synthetic benchmark
# with tasks of 1 and 2 s. They run on a simulated 100 Mb/s Ethernet where each look of a helper
# takes 5 us from the task. A run of uts differs by 5% when its tasks have 2% more nodes, and so
# do runs of the others. So times are means over nine sizes of tasks, over five sizes of elements,
# and over five lengths of a refinement.
#
#     steer.sh FERRY SYNTHETIC MESH STEPS UTS
#
# CASES says which: program:ranks, where all schedulers are compared, or program:ranks:scheduler,
# where FERRY_SCHEDULER names the one. QUANTA and SETTINGS say what is swept.
set -eu
ferry=$1 synthetic=$2 mesh=$3 steps=$4 uts=$5
input=$(dirname "$0")/../../apps/data/great-britain.poly
net=$(mktemp)
trap 'rm -f "$net"' EXIT
printf 'latency 60us\nsend 8us\nreceive 10us\nbyte 80ns\nlook 5us\n' >"$net" # ethernet-100m

# run PROGRAM RANKS QUANTUM VARIABLE,...: the run time in milliseconds
run()
{
    sim="env $(echo "$4" | tr , ' ') $ferry sim -n $2 --seed 1 --net $net --quantum $3"
    case $1 in
    synthetic) $sim "$synthetic" --work compute --light 1000 ;;
    mesh) for size in ${SIZES:-4.8 4.9 5 5.1 5.2}; do
        $sim "$mesh" --input "$input" --point-cost 60000 --subdomains 512 --size "$size" \
            --work-share 0 --feature=-60,5720,200,2
    done ;;
    steps) for refine in ${REFINES:-96 98 100 102 104}; do
        $sim "$steps" --refine "$refine"
    done ;;
    uts) for grain in ${GRAINS:-460 470 480 490 500 510 520 530 540}; do
        $sim "$uts" --tree T1 --node-ns 10000 --grain "$grain"
    done ;;
    esac 2>/dev/null | sed -n 's/.*makespan \([0-9.]*\) ms, bound.*/\1/p
        s/^makespan \([0-9.]*\) s.*/\1e3/p
        s/.*%: \([0-9.]*\) ms, at least.*/\1/p
        s/^.* ranks: \([0-9.]*\) ms.*/\1/p' | awk '{ sum += $1 } END { print sum / NR }'
}

# settings SCHEDULER: the parameters to try with it, one set a line; all schedulers without it.
settings()
{
    case $1 in
    ferry) echo SHORT_US=200 SHORT_US=0 SHORT_US=10000 CHILDREN=8 CHILDREN=64 SLICE_US=2000 ;;
    diffusion) for threshold in 0 1 4; do
        for neighbours in 1 2 4 8 16 32; do
            echo "NEIGHBOURS=$neighbours,FERRY_SCHEDULER_THRESHOLD=$threshold"
        done
    done ;;
    stealing) echo AHEAD_US=0 AHEAD_US=200 AHEAD_US=1000 AHEAD_US=5000 ;;
    multilist) echo TIMEOUT_US=100000 ;;
    gradient) echo NEIGHBOURS=4 NEIGHBOURS=16 ;;
    none) echo NONE=1 ;;
    esac | tr ' ' '\n' | sed "s/^/FERRY_SCHEDULER=$1,FERRY_SCHEDULER_/"
}

echo "program,ranks,scheduler,usual_ms,steered_ms,best_ms,best_quantum,best_setting"
for case in ${CASES:-synthetic:64 mesh:32 mesh:64 steps:32 steps:64 uts:16 uts:32 uts:64 \
    mesh:64:diffusion mesh:64:stealing steps:64:diffusion steps:64:stealing}; do
    program=${case%%:*} scheduler=${case#*:}
    ranks=${scheduler%:*}
    scheduler=$(expr "$scheduler" : '[0-9]*:\(.*\)' || true)
    begin=${scheduler:+FERRY_SCHEDULER=$scheduler}
    usual=$(run "$program" "$ranks" 200us "${begin:-FERRY_STEER=0}")
    steered=$(run "$program" "$ranks" 200us "FERRY_STEER=1${begin:+,$begin}")
    for one in ${scheduler:-ferry diffusion stealing multilist gradient none}; do
        settings "$one"
    done | grep -E "${SETTINGS:-.}" | while read -r setting; do
        for quantum in ${QUANTA:-50us 100us 150us 200us 300us 500us 1ms 2ms 5ms 10ms 20ms 50ms}; do
            echo "$(run "$program" "$ranks" "$quantum" "$setting") $quantum $setting"
        done
    done | awk -v OFS=, -v program="$program" -v ranks="$ranks" -v usual="$usual" \
        -v scheduler="${scheduler:-any}" -v steered="$steered" '
        NR == 1 || $1 + 0 < best + 0 { best = $1; quantum = $2; setting = $3 }
        END {
            gsub("FERRY_SCHEDULER[_=]", "", setting)
            gsub(",", " ", setting)
            print program, ranks, scheduler, usual + 0, steered + 0, best + 0, quantum, setting
        }'
done
