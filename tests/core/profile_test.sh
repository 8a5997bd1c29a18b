#!/bin/sh
# Goal: FERRY_PROFILE reports what a run did. Method: runs the program in $1, whose ranks send each
# other a known number of requests, as processes and as threads; looks at the report's rows.
set -u
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

for threads in 0 1; do
    FERRY_PROFILE=$folder/report FERRY_RANKS=3 FERRY_THREADS=$threads timeout 60 "$program" ||
        fail "threads $threads: status $?"
    # 3 ranks, 5 rounds, each a tree of 2^11 - 1 requests.
    for verb in sent handled; do
        calls=$(awk -v verb=$verb '$2 == "request" && $3 == verb { print $4 }' "$folder/report")
        [ "$calls" = 30705 ] || fail "threads $threads: $calls requests $verb"
    done
    grep -q '^program *handlers' "$folder/report" || fail "no time of handlers"
    [ "$(grep -c '^[0-9]' "$folder/report")" = 3 ] || fail "not a line per rank"
    awk '$1 == "all" && $5 + $7 + $8 > 100.5 { exit 1 }' "$folder/report" ||
        fail "more than all of the time: $(grep '^all' "$folder/report")"
done

FERRY_PROFILE=1 FERRY_RANKS=2 timeout 60 "$program" 2>"$folder/err" || fail "status $?"
grep -q '^ferry profile: 2 ranks' "$folder/err" || fail "nothing on standard error"
FERRY_PROFILE=$folder/none/report FERRY_RANKS=2 timeout 60 "$program" 2>"$folder/err" ||
    fail "a report that cannot be written changes the status"
grep -q 'No such file' "$folder/err" || fail "a report that cannot be written is not told of"
timeout 60 "$program" 2>"$folder/err" || fail "status $?"
[ -s "$folder/err" ] && fail "a report that nobody wanted"
exit $failed
