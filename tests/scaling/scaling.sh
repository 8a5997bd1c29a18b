#!/bin/sh
# The instructions of a case grow no faster than its items: scaling.sh PROGRAM CASE ITEMS. Counts
# ITEMS, twice and four times as many. The second step has twice the items of the first, so it may
# take twice the instructions, and 30 % more for tables that grow. A walk for each item makes it
# four times as many. Status 77: instructions cannot be counted here.
set -u
program=$1 case=$2 items=$3

command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

count() # items
{
    valgrind --tool=callgrind --callgrind-out-file="$scratch/out" "$program" "$case" "$1" \
        >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; return 1; }
    sed -n 's/^summary: //p; s/^totals: //p' "$scratch/out" | head -n 1
}

once=$(count "$items") && twice=$(count $((items * 2))) && fourfold=$(count $((items * 4))) ||
    exit 1
first=$((twice - once)) second=$((fourfold - twice))
echo "$case: $first more instructions for $items more, $second for $((items * 2)) more"
[ "$first" -gt 0 ] && [ $((second * 10)) -le $((first * 26)) ]
