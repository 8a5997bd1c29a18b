#!/bin/sh
# Goal: the table of docs/guide/balance.md has the figures of today. Method: runs what row $3 of the
# table says on simulated ranks, which repeats exactly, and compares ratio, moves and messages.
set -eu
source=$1 build=$2 row=$3
line=$(grep "^| $row |" "$source/docs/guide/balance.md") || { echo "no row $row"; exit 1; }
set --
scheduler=${row#\`}
case $row in *"16 neighbours"*) export FERRY_SCHEDULER_NEIGHBOURS=16 ;; esac
case $row in *"--load step"*) set -- --load step ;; esac
got=$(FERRY_SCHEDULER=${scheduler%%\`*} "$build/bin/ferry" sim -n 64 "$build/apps/pic" \
    --particle-ns 1000 "$@")
want=$(echo "$got" | sed -n \
    's/.*ratio \([0-9.]*\), \([0-9]*\) moves, .* \([0-9.]*%\) of messages leave, valid$/\1 | \2 | \3/p')
line=$(echo "${line#"| $row | "}" | tr -d ,)
[ "${line% |}" = "$want" ] || { echo "the page says ${line% |}, the run $want"; exit 1; }
