#!/bin/sh
# Prints what FERRY_STEER gains, one line per experiment, as CSV: run times in ms with the usual
# quantum, with steering that begins there, and with the best of all fixed quanta. The programs are
# those of foresight.sh, and the synthetic benchmark with tasks of 1 and 2 s. They run on a
# simulated 100 Mb/s Ethernet where each look of a helper takes 5 us from the task. A run of uts
# differs by 5% when its tasks have 2% more nodes, so its times are means over nine sizes of tasks.
#
#     steer.sh FERRY SYNTHETIC MESH STEPS UTS
#
# CASES (program:ranks) and QUANTA say which.
set -eu
ferry=$1 synthetic=$2 mesh=$3 steps=$4 uts=$5
input=$(dirname "$0")/../../apps/data/great-britain.poly
net=$(mktemp)
trap 'rm -f "$net"' EXIT
printf 'latency 60us\nsend 8us\nreceive 10us\nbyte 80ns\nlook 5us\n' >"$net" # ethernet-100m

# run PROGRAM RANKS QUANTUM STEER: the run time in milliseconds
run()
{
    sim="$ferry sim -n $2 --seed 1 --net $net --quantum $3"
    FERRY_STEER=$4
    export FERRY_STEER
    case $1 in
    synthetic) $sim "$synthetic" --work compute --light 1000 ;;
    mesh) $sim "$mesh" --input "$input" --point-cost 60000 --subdomains 512 --size 5 \
        --work-share 0 --feature=-60,5720,200,2 ;;
    steps) $sim "$steps" --refine 100 ;;
    uts) for grain in ${GRAINS:-460 470 480 490 500 510 520 530 540}; do
        $sim "$uts" --tree T1 --node-ns 10000 --grain "$grain"
    done ;;
    esac 2>/dev/null | sed -n 's/.*makespan \([0-9.]*\) ms, bound.*/\1/p
        s/^makespan \([0-9.]*\) s.*/\1e3/p
        s/.*%: \([0-9.]*\) ms, at least.*/\1/p
        s/^.* ranks: \([0-9.]*\) ms.*/\1/p' | awk '{ sum += $1 } END { print sum / NR }'
}

echo "program,ranks,usual_ms,steered_ms,best_ms,best_quantum"
for case in ${CASES:-synthetic:64 mesh:32 mesh:64 steps:32 steps:64 uts:16 uts:32 uts:64}; do
    program=${case%:*} ranks=${case#*:}
    usual=$(run "$program" "$ranks" 200us 0)
    steered=$(run "$program" "$ranks" 200us 1)
    for quantum in ${QUANTA:-50us 100us 150us 200us 300us 500us 1ms 2ms 5ms 10ms 20ms 50ms}; do
        echo "$(run "$program" "$ranks" "$quantum" 0) $quantum"
    done | awk -v OFS=, -v program="$program" -v ranks="$ranks" -v usual="$usual" \
        -v steered="$steered" 'NR == 1 || $1 + 0 < best + 0 { best = $1; quantum = $2 }
        END { print program, ranks, usual + 0, steered + 0, best + 0, quantum }'
done
