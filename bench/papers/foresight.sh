#!/bin/sh
# Figure 6.9 of prema.txt and beyond: what a run on few ranks says of runs on more, one line per
# experiment, as CSV. `ferry scale` replays the trace; `ferry model` has the times of its tasks alone
# (average: of the bounds; played: the schedule task by task). Both differ from the measured time by
# the percents that follow them. The traced run is on 8 ranks and has another seed than the measured
# ones.
#
#     foresight.sh FERRY MESH STEPS UTS
#
# mesh: 512 sub-domains of Great Britain, finer around one place. steps: the loosely synchronous
# benchmark; its phases are nothing for the model. uts: a tree whose nodes count as 10 us each; it
# grows while it is searched, which is nothing for the model either. All on a simulated 100 Mb/s
# Ethernet. PROGRAMS, RANKS and SCHEDULERS say which.
set -eu
ferry=$1 mesh=$2 steps=$3 uts=$4
input=$(dirname "$0")/../../apps/data/great-britain.poly
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'latency 60us\nsend 8us\nreceive 10us\nbyte 80ns\n' >"$work/machine" # ethernet-100m

# run PROGRAM RANKS SEED SCHEDULER: the run time in seconds
run()
{
    FERRY_SCHEDULER=$4
    export FERRY_SCHEDULER
    case $1 in
    mesh)
        "$ferry" sim -n "$2" --seed "$3" --net ethernet-100m "$mesh" --input "$input" \
            --point-cost 60000 --subdomains 512 --size 5 --work-share 0 \
            --feature=-60,5720,200,2 --scheduler "$4" 2>/dev/null |
            sed -n 's/^makespan \([0-9.]*\) s.*/\1/p' ;;
    steps)
        balance=
        [ "$4" != none ] || balance=--no-balance
        "$ferry" sim -n "$2" --seed "$3" --net ethernet-100m "$steps" --refine 100 $balance |
            sed -n 's/.*%: \([0-9.]*\) ms, at least.*/\1/p' | awk '{ print $1 / 1e3 }' ;;
    uts)
        "$ferry" sim -n "$2" --seed "$3" --net ethernet-100m "$uts" --tree T1 --node-ns 10000 \
            --grain 500 | sed -n 's/^.* ranks: \([0-9.]*\) ms.*/\1/p' | awk '{ print $1 / 1e3 }' ;;
    esac
}

# modelled PROGRAM RANKS SCHEDULER: average and played, or two empty columns
modelled()
{
    if [ "$1" = mesh ] && [ "$3" != none ]; then
        "$ferry" model -c -n "$2" -p "$work/machine" -H refine "$work/mesh" |
            awk -F, -v OFS=, -v scheduler="$3" '$2 == scheduler { print $4, $6 }'
    else
        echo ,
    fi
}

echo "program,ranks,scheduler,measured_s,replayed_s,replayed_percent,average_s,average_percent,played_s,played_percent"
for program in ${PROGRAMS:-mesh steps uts}; do
    some="ferry stealing diffusion none"
    [ "$program" != uts ] || some="ferry stealing diffusion" # all begins on one rank
    FERRY_TRACE=$work/$program run "$program" 8 2 ferry >/dev/null
    for ranks in ${RANKS:-16 32 64}; do
        for scheduler in ${SCHEDULERS:-$some}; do
            measured=$(run "$program" "$ranks" 1 "$scheduler")
            replayed=$("$ferry" scale "$work/$program" -n "$ranks" -S "$scheduler" -N ethernet-100m -j |
                sed -n 's/.*"makespan": \([^,]*\),.*/\1/p')
            echo "$measured,$replayed,$(modelled "$program" "$ranks" "$scheduler")" |
                awk -F, -v head="$program,$ranks,$scheduler" '
                    function both(s, error) {
                        error = sprintf("%.1f", 100 * (s / $1 - 1))
                        return s == "" ? "," : sprintf("%.3f,%s", s, error == "-0.0" ? "0.0" : error) }
                    { printf "%s,%.3f,%s,%s,%s\n", head, $1, both($2), both($3), both($4) }'
        done
    done
done
