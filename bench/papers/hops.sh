#!/bin/sh
# Figures 4.17 and 4.18 of prema.txt, as CSV. hops.sh FERRY HOPS prints the round trip of a message
# that is forwarded so often, on the simulated Ethernet of 2004 (hops.c). hops.sh FERRY STEPS
# histogram prints how many messages to objects were forwarded how often. It runs the loosely
# synchronous benchmark of 512 sub-domains, 20 steps, on 32 ranks.
set -eu
ferry=$1 program=$2
if [ "${3:-}" = histogram ]; then
    echo "refined_percent,forwards,messages"
    for percent in 10 50; do
        FERRY_PROFILE=1 "$ferry" sim -n 32 --seed 1 --net ethernet-100m "$program" --steps 20 \
            --percent $percent 2>&1 | sed -n 's/^messages to objects by forwards: *//p' |
            sed 's/ or more//' |
            tr -s ' ' '\n' | sed 's/:$//' | paste -d, - - | sed "s/^/$percent,/"
    done
else
    echo "forwards,round_trip_us"
    "$ferry" sim -n 10 --seed 1 --net ethernet-100m "$program"
fi
