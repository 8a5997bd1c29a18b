#!/bin/sh
# Figures 6.1-6.3 of progressive-messages.txt with programs instead of a model, as CSV: the three
# disciplines on Ferry, simulated with the thesis's latency. RANKS says at which numbers of ranks.
set -eu
ferry=$1 progressive=$2
net=$(dirname "$0")/thesis.net
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# one DISCIPLINE: no control messages here, so no helper
one()
{
    FERRY_HELPER=0 "$ferry" sim -n "$ranks" --net "$net" "$progressive" --discipline "$1" \
        --threshold "$threshold" >"$scratch/$1"
}

echo "discipline,threshold,ranks,speedup,messages"
for ranks in ${RANKS:-16 64 256 1024}; do
    for threshold in ${THRESHOLDS:-10 100 1000}; do
        one passing &
        first=$!
        one driven &
        second=$!
        one progressive
        wait $first
        wait $second
        cat "$scratch/passing" "$scratch/driven" "$scratch/progressive"
    done
done
