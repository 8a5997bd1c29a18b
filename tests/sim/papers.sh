#!/bin/sh
# Goal: the programs of bench/papers say what docs/papers/README.md says. Method: the model has all
# its rows, and the discipline that waits for nothing never gains less than the one that waits. On
# 16 simulated ranks each discipline runs every task and gains what the page shows. The default
# scheduler does not lose time with messages that are no load. Rows that rows.sh has made are in the
# folder ROWS_MADE; without it they are made here.
set -eu
ferry=$1 papers=$2 here=$3/bench/papers made=${ROWS_MADE:-}

# rows FILE COMMAND...: what COMMAND prints
rows()
{
    file=$1
    shift
    if [ -n "$made" ]; then cat "$made/$file"; else env "$@"; fi
}

rows progressive-model.csv "$papers/progressive_model" | awk -F, '
    NR > 1 { rows++ }
    $1 == "meant" && $2 == "driven" { driven[$3, $4] = $5 }
    $1 == "meant" && $2 == "progressive" && $5 < driven[$3, $4] { print "behind: " $0; bad = 1 }
    END { if (rows != 270) { print rows " rows"; bad = 1 } exit bad }'
rows progressive.csv RANKS=16 THRESHOLDS=100 sh "$here/progressive.sh" "$ferry" \
    "$papers/progressive" | awk -F, '
    $2 == 100 { print; rows++; if ($4 < 15.9 || $4 > 16) bad = 1 }
    END { exit bad || rows != 3 }'

# each forward of a message takes the same time; traces have one message for each number of
# forwards, and these and the moves at their objects
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
FERRY_TRACE=$traces sh "$here/hops.sh" "$ferry" "$papers/hops" | awk -F, '
    NR > 1 { rows++; step = $2 - last; last = $2 }
    NR > 2 && (step < 70 || step > 90) { print "a hop: " step " us"; bad = 1 }
    END { exit bad || rows != 9 }'
cat "$traces"/* | awk '
    $1 == "object" { forwards += $9; in_ += $10; out += $11 }
    sub(/^stat messages_forwarded_/, "") && $1 > 0 { kinds += $2 == 1; wrong += $2 != 1 }
    END { print "of 36: " forwards " forwards, " in_ " and " out " moves; of 8: " kinds " kinds"
        exit !(forwards == 36 && in_ == 36 && out == 36 && kinds == 8 && !wrong) }'
rows hops-histogram.csv sh "$here/hops.sh" "$ferry" "$papers/steps" histogram | awk -F, '
    NR > 1 { all += $3; direct += $2 == 0 ? $3 : 0; once += $2 == 1 ? $3 : 0 }
    END { exit !(all > 10000 && direct > all / 2 && once > all / 10) }'

"$ferry" sim -n 64 "$papers/steps" --refine 100 --percent 10 | awk '
    / complete$/ { sub(/.*%: /, ""); steps = $1 }
    END { if (!(steps > 0 && steps < 2250)) { print "steps: " steps " ms"; exit 1 } }'
