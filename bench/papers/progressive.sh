#!/bin/sh
# Figures 6.1-6.3 of progressive-messages.txt with programs instead of a model, as CSV: the three
# disciplines on Ferry, simulated with the thesis's latency. RANKS and THRESHOLDS say which.
set -eu
ferry=$1 progressive=$2
net=$(dirname "$0")/thesis.net

# One after the other: with 16,384 ranks each takes some GiB. No control messages here, so no
# helper.
echo "discipline,threshold,ranks,speedup,messages"
for ranks in ${RANKS:-16 64 256 1024 4096 16384}; do
    for threshold in ${THRESHOLDS:-10 100 1000}; do
        for discipline in passing driven progressive; do
            FERRY_HELPER=0 "$ferry" sim -n "$ranks" --net "$net" "$progressive" \
                --discipline $discipline --threshold "$threshold"
        done
    done
done
