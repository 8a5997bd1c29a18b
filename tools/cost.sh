#!/bin/sh
# Runs tests, and says what they cost: cost.sh BUILD COMMAND [ARGUMENT]... The last lines are the
# processor time of COMMAND and of all processes that it waited for, and the ten tests of BUILD and
# of its sanitizer builds that took longest. Ends with the status of COMMAND.
set -u
build=$1
shift
"$@"
status=$?
# The second line of times is that of children: user and system time.
times >"$build/times"
awk 'NR == 2 { gsub(/[ms]/, " "); print "processor time: " int($1 * 60 + $2) " s in programs, " \
    int($3 * 60 + $4) " s in the kernel" }' "$build/times"
rm -f "$build/times"
echo "longest tests, in seconds of the clock:"
for costs in "$build"/Testing/Temporary/CTestCostData.txt \
    "$build"/*/Testing/Temporary/CTestCostData.txt; do
    [ -f "$costs" ] || continue
    folder=${costs%/Testing/*}
    # Lines "NAME RUNS SECONDS" stand before "---".
    awk -v build="${folder##*/}" '/^---/ { exit } { printf "%7.1f  %s  (%s)\n", $3, $1, build }' \
        "$costs"
done | sort -rn | head -n 10
exit $status
