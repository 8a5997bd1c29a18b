#!/bin/sh
# Figures 7.36 and 7.37 of prema.txt, and the same with 20 steps, as CSV: the loosely synchronous
# benchmark of 512 sub-domains on 64 ranks of a simulated 100 Mb/s Ethernet. bound: no rank can be
# done sooner, whatever it knows. thesis: what it gained. CASES says which.
set -eu
ferry=$1 steps=$2

# one STEPS PERCENT ARGUMENT...: "makespan bound", in milliseconds
one()
{
    count=$1 percent=$2
    shift 2
    "$ferry" sim -n 64 --seed 1 --net ethernet-100m "$steps" --refine 100 --steps "$count" \
        --percent "$percent" "$@" |
        sed -n 's/.*%: \([0-9.]*\) ms, at least *\([0-9.]*\), complete/\1 \2/p' | grep .
}

echo "steps,refined_percent,scheduler,makespan_ms,bound_ms,none_ms,gain_percent,thesis_percent"
for case in ${CASES:-10,10,54 10,50,23 20,10,57 20,50,24}; do
    count=${case%%,*} thesis=${case##*,} percent=${case#*,}
    percent=${percent%,*}
    none=$(one "$count" "$percent" --no-balance)
    for scheduler in ${SCHEDULERS:-ferry stealing diffusion}; do
        FERRY_SCHEDULER=$scheduler one "$count" "$percent" | awk -v none="${none% *}" \
            -v head="$count,$percent,$scheduler" -v thesis="$thesis" '
            { printf "%s,%s,%s,%s,%.1f,%s\n", head, $1, $2, none, 100 * (1 - $1 / none), thesis }'
    done
done
