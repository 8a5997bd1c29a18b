#!/bin/sh
# Goal: --check passes for any number of sub-domains from 1 to 512 and of ranks from 1 to 16, with
# every scheduler, many runs in a row. Method: runs them all and stops at the first that fails. For
# `make soak`.
#
# usage: sweep.sh FERRY MESH DATA TURNS
set -eu

ferry=$1 mesh=$2 data=$3 turns=$4
log=$(mktemp)
trap 'rm -f "$log"' EXIT INT TERM

count=0
for turn in $(seq "$turns"); do
    for input in great-britain jutland; do
        for subdomains in 1 2 5 16 61 128 300 512; do
            for ranks in 1 2 3 4 8 16; do
                [ "$ranks" -le "$subdomains" ] || continue
                for scheduler in none stealing diffusion; do
                    "$ferry" run -n "$ranks" "$mesh" --input "$data/$input.poly" --size 8 \
                        --angle $((20 + (turn + subdomains) % 11)) --slice $((turn * 100)) \
                        --subdomains "$subdomains" --scheduler "$scheduler" --check >"$log" 2>&1 || {
                        cat "$log"
                        echo "sweep: $input, $subdomains sub-domains, $ranks ranks, $scheduler, turn $turn"
                        exit 1
                    }
                    count=$((count + 1))
                done
            done
        done
    done
done
echo "sweep: $count runs passed their check"
