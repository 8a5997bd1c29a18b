#!/bin/sh
# Goal: FERRY_STEER is never more than 1% worse than the usual settings, and within 2% of the best
# fixed one. Method: bench/papers/steer.sh, with those settings that are best in its full sweeps.
# steering.sh BUILD ROOT.
set -eu
build=$1 here=$2/bench/papers

# bounds CASES SETTINGS QUANTA: the rows, and whether they are within the bounds
bounds()
{
    CASES=$1 SETTINGS=$2 QUANTA=$3 sh "$here/steer.sh" "$build/bin/ferry" \
        "$build/bench/papers/synthetic" "$build/apps/mesh" "$build/bench/papers/steps" \
        "$build/apps/uts" | awk -F, -v cases="$1" '
        { print }
        NR > 1 {
            rows++
            if (!($4 > 0 && $6 > 0)) { print "no time"; bad = 1 }
            if ($5 > 1.01 * $4) { print "steered is " 100 * ($5 / $4 - 1) "% worse than usual"; bad = 1 }
            if ($5 > 1.02 * $6) { print "steered is " 100 * ($5 / $6 - 1) "% off the best"; bad = 1 }
        }
        END { exit bad || rows != split(cases, all, " ") }'
}

status=0
bounds "synthetic:64 steps:64" \
    'ferry,.*(SHORT_US=200|CHILDREN=64)|NEIGHBOURS=4,.*THRESHOLD=0|AHEAD_US=0' \
    "500us 1ms" || status=1
GRAINS="460 480 500 520 540" bounds "uts:16" 'ferry,.*SHORT_US=(200|10000)' 200us || status=1
exit $status
