#!/bin/sh
# Kills ranks of the stealing program at random times, RUNS times: kills.sh PROGRAM RUNS DEATHS [SEED].
# Each run must end well by itself, lose no unit and do none twice, and leave no process behind.
set -u
program=$1 runs=$2 deaths=$3 seed=${4:-1}
i=0
while [ "$i" -lt "$runs" ]; do
    i=$((i + 1))
    # One of four ranks, or with DEATHS = 2 sometimes two, at times within the run.
    set -- $(awk -v deaths="$deaths" -v s="$((seed * 100003 + i))" 'BEGIN { srand(s); r = int(rand() * 4)
        printf "--kill %d@%d", r, int(rand() * 60)
        if (deaths > 1 && rand() < 0.5) printf " --kill %d@%d", (r + 1 + int(rand() * 3)) % 4, int(rand() * 60) }')
    out=$(FERRY_RANKS=4 timeout 20 "$program" --units 300 --unit-us 200 "$@" 2>&1)
    status=$?
    if [ "$status" -ne 0 ] || ! echo "$out" | grep -q 'lost 0, done twice 0'; then
        echo "run $i ($*) ended with status $status:"
        echo "$out"
        exit 1
    fi
done
if pgrep -f "^$program" >/dev/null 2>&1; then
    echo "processes are left"
    exit 1
fi
echo "$runs runs with deaths: nothing lost, nothing done twice, nothing left behind"
