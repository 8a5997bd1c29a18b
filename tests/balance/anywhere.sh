#!/bin/sh
# Goal: the default scheduler never costs much, whatever runs where. Method: the synthetic benchmark
# with random ranks, tasks, lengths, loads and bytes, on random simulated networks, with balancing
# and without. With balancing it may take a twentieth more, and five times what an object takes to
# arrive and 1 ms. Where no balancing is far from the bound, balancing must be nearer to it on
# average. anywhere.sh FERRY SYNTHETIC [RUNS [SEED]]
set -eu
ferry=$1 synthetic=$2 runs=${3:-100} random=${4:-1}

# choose WORD...: puts one of the words into `chosen`
choose()
{
    random=$(((random * 1103515245 + 12345) % 2147483648))
    shift $((random / 65536 % $#))
    chosen=$1
}

# makespan SCHEDULER ARGUMENT...: it and the bound, in milliseconds
makespan()
{
    FERRY_SCHEDULER=$1
    export FERRY_SCHEDULER
    shift
    "$ferry" sim "$@" | sed -n 's/.*makespan \([0-9.]*\) ms, bound \([0-9.]*\) ms.*/\1 \2/p'
}

run=0
while [ $run -lt "$runs" ]; do
    run=$((run + 1))
    choose shm:10000 infiniband-hdr:20000 cloud:3000 ethernet-1g:117 ethernet-100m:11.7
    net=${chosen%:*} rate=${chosen#*:} # MB/s
    choose 2 3 8 16 33 64 100 && ranks=$chosen
    choose 1 2 4 8 16 32 64 && tasks=$chosen
    choose 0 100 4000 20000 200000 2000000 && bytes=$chosen
    set -- -n "$ranks" --net "$net" "$synthetic" --tasks "$tasks" --bytes "$bytes"
    choose 0.05 0.2 1 5 20 && set -- "$@" --light "$chosen"
    choose 3 10 25 50 80 && set -- "$@" --heavy "$chosen"
    choose 1 2 4 20 100 && set -- "$@" --factor "$chosen"
    choose step linear && set -- "$@" --shape "$chosen"
    choose no --loads && [ "$chosen" = no ] || set -- "$@" "$chosen"
    echo "$rate $bytes $(makespan ferry "$@") $(makespan none "$@") $*"
done | awk '
    NF < 7 { print "no result: " $0; bad = 1; next }
    { travel = $2 / $1 / 1000 + 1; extra = ($3 - 1.05 * $5) / travel }
    extra > 5 { print $3 " ms, " $5 " ms without balancing: " $0; bad = 1 }
    extra > worst { worst = extra }
    $5 > 1.3 * $4 { far++; ferry += log($3 / $4); none += log($5 / $4) }
    END {
        printf "%d runs, at most %.2f travels more than without balancing\n", NR, worst
        if (far) printf "%d far from the bound: %.3f of it, %.3f without balancing\n", far,
            exp(ferry / far), exp(none / far)
        exit bad || !(far > 0 && ferry < 0.7 * none) }'
