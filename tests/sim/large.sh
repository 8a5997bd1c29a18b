#!/bin/sh
# Goal: thousands of ranks run in seconds, in memory that goes with who talks to whom. Method: 4,096
# ranks meet and leave; resident memory below 128 KiB per rank.
set -u
ferry=$1 canary=$2
ranks=4096
if nm "$canary" | grep -qE '__(asan|tsan)_init'; then
    ranks=256
    ulimit -v unlimited
else
    ulimit -v $((ranks * 1024))
fi
"$ferry" sim -n $ranks -r --faults "" "$canary" 2>&1 | tail -3
"$ferry" sim -n $ranks "$canary"
