#!/bin/sh
# Goal: on a slow network the default scheduler comes close to the bound of the loosely synchronous
# benchmark (prema.txt 7.5), though the tasks of a step reach a rank one after the other. Method:
# 64 simulated ranks on an Ethernet of 100 Mb/s, tasks of nine lengths; the median of the whole runs
# may take little more than the bound.
set -eu
ferry=$1 steps=$2

# within STEPS PERCENT MOST: the runs take at most MOST times their bounds.
within()
{
    for refine in 80 85 90 95 100 105 110 115 120; do
        "$ferry" sim -n 64 --net ethernet-100m "$steps" --refine $refine --steps "$1" \
            --percent "$2" | awk '/ complete$/ { sub(/.*%: /, ""); print $1 / ($5 + 0) }'
    done | sort -n | awk -v most="$3" -v what="$1 steps, $2 %" '
        { took[NR] = $1 }
        END {
            print what ": " took[5] " of the bound, from " took[1] " to " took[9]
            if (!(NR == 9 && took[5] <= most)) {
                print "more than " most " times the bound"
                exit 1
            }
        }'
}

within 10 50 1.02
within 20 50 1.02
within 10 10 1.03
within 20 10 1.04
