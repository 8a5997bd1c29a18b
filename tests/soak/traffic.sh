#!/bin/sh
# Goal: what the simulator's swarm shows of messages to objects that move, or of all features at
# once, holds on real ranks too. Method: runs tests/sim/traffic.c or tests/mixed, which check
# themselves, with one seed after the other for some time, on 2 to 16 ranks as processes and as
# threads. A run that fails, or does not end in time, ends the soak with the command that repeats it.
#
#     traffic.sh PROGRAM SECONDS [FIRST_SEED [LIMIT_SECONDS]]
set -u
program=$1 seconds=$2 seed=${3:-1} limit=${4:-300}
end=$(($(date +%s) + seconds))
runs=0
while [ "$(date +%s)" -lt "$end" ]; do
    ranks=$((2 + seed * 7 % 15))
    threads=$((seed % 2))
    if ! out=$(FERRY_RANKS=$ranks FERRY_THREADS=$threads FERRY_HEAP_BYTES=256M FERRY_STALL_S=60 \
        timeout "$limit" "$program" "$seed" 2>&1); then
        echo "$out"
        echo "failed after $runs runs; repeat with: FERRY_RANKS=$ranks FERRY_THREADS=$threads" \
            "FERRY_HEAP_BYTES=256M $program $seed"
        exit 1
    fi
    runs=$((runs + 1))
    seed=$((seed + 1))
done
echo "$runs runs in $seconds s, the last with seed $((seed - 1))"
