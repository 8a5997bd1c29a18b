#!/bin/sh
# Runs newcomer_sends.c, whose ranks tell each other by files.
#
#   newcomer_sends.sh FERRY PROGRAM request|object run|sim          after ferry_leave
#   newcomer_sends.sh FERRY PROGRAM request|object sim FIRST LAST STEP   at many times before
set -eu

ferry=$1 program=$2 kind=$3 command=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() {
    rm -f "$folder"/*
    "$ferry" "$command" -n 3 -m 4 "$program" "$kind" "$folder/newcomer" "$@" || {
        echo "newcomer_sends.sh: $kind $command $*: status $?" >&2
        exit 1
    }
}
if [ $# -eq 4 ]; then
    run
    exit 0
fi
delay=$5
while [ "$delay" -le "$6" ]; do
    run "$delay"
    delay=$((delay + $7))
done
