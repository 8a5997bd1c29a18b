#!/bin/sh
# Goal: on a slow network the default scheduler comes close to the bound of the loosely synchronous
# benchmark (prema.txt 7.5), though the tasks of a step reach a rank one after the other. Method:
# 64 simulated ranks on an Ethernet of 100 Mb/s; the whole run may take little more than the bound.
set -eu
ferry=$1 steps=$2

# within STEPS PERCENT MOST: the run takes at most MOST times its bound.
within()
{
    "$ferry" sim -n 64 --net ethernet-100m "$steps" --refine 100 --steps "$1" --percent "$2" |
        awk -v most="$3" '
            / complete$/ { sub(/.*%: /, ""); print; took = $1; bound = $5 + 0 }
            END { if (!(took > 0 && took <= most * bound)) {
                print "more than " most " times the bound"; exit 1 } }'
}

within 10 50 1.02
within 20 50 1.02
within 10 10 1.19
