#!/bin/sh
# Goal: a rank that leaves writes its trace, as one that closes does. leave_trace_test.sh FERRY
# LEAVING
set -eu
ferry=$1 leaving=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

FERRY_TRACE=$folder "$ferry" run -n 3 "$leaving" 3 >"$folder/out"
for rank in 0 1 2; do
    [ -s "$folder/rank-$rank.trace" ] || { echo "rank $rank has written no trace"; exit 1; }
done
if "$ferry" report "$folder" | grep 'left no trace'; then
    exit 1
fi
