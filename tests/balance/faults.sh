#!/bin/sh
# faults.sh PROGRAM FAULT TEXT: passes if PROGRAM ends well with the fault, and each rank names it in
# one line at most, and one rank at least.
set -u
output=$("$1" "$2" 2>&1)
ended=$?
printf '%s\n' "$output"
if [ "$ended" -ne 0 ]; then
    echo "faults: the program ended with status $ended"
    exit 1
fi
lines=$(printf '%s\n' "$output" | grep -E -e "$3")
if [ -z "$lines" ] || [ -n "$(printf '%s\n' "$lines" | cut -d: -f2 | sort | uniq -d)" ]; then
    echo "faults: expected one line from a rank: $3"
    exit 1
fi
