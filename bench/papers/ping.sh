#!/bin/sh
# The ping tests of progressive-messages.txt 6.2.4 beside MPI, on this machine: ping.csv, and where
# gnuplot is, ping.svg. Prints the half-power points: the size from which on a test has half of its
# largest bandwidth, between two measured sizes on a straight line.
#
#     bench/papers/ping.sh EVENTS [FOLDER]
#
# EVENTS is build/bench/events; PREFIX (say, "chrt -r 1") goes before each of its runs, RUNS is how
# often each side is measured.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
events=$1
out=${2:-$here/../../docs/papers}
names=$("$events" --list | grep -E '^(pong|ping|put|get)-')
echo "test,bytes,peer,ours_us,theirs_us" >"$out/ping.csv"
for name in $names; do
    # shellcheck disable=SC2086 # words
    ${PREFIX:-} "$events" --quick --runs "${RUNS:-9}" --json --case "$name"
done | sed -n 's/.*"case":"\([a-z-]*\)-\([0-9]*\)\([KM]*\)i*B","ours":\([^,]*\),"theirs":\([^,]*\),"peer":"\([a-z]*\)".*/\1 \2 \3 \6 \4 \5/p' |
    awk '{ unit = 1
        if ($3 ~ /^K/) unit = 1024
        if ($3 ~ /^M/) unit = 1048576
        if (NF == 5) { print $1 "," $2 "," $3 "," $4 "," $5 } else { print $1 "," $2 * unit "," $4 "," $5 "," $6 } }' |
    grep -v null >>"$out/ping.csv"

# half COLUMN PEER: the half-power points of one side.
half()
{
    awk -F, -v column="$1" -v peer="$2" -v name="$3" '
        NR > 1 && $3 == peer { n[$1]++; size[$1, n[$1]] = $2; rate[$1, n[$1]] = $2 / $column
            if ($2 / $column > most[$1]) most[$1] = $2 / $column
            if (n[$1] == 1) order[++tests] = $1 }
        END { for (t = 1; t <= tests; t++) { test = order[t]
            for (i = 1; i <= n[test] && rate[test, i] < most[test] / 2; i++) {}
            at = size[test, i]
            if (i > 1) at = size[test, i - 1] + (size[test, i] - size[test, i - 1]) * \
                (most[test] / 2 - rate[test, i - 1]) / (rate[test, i] - rate[test, i - 1])
            printf "%s,%s,%.1f,%.0f\n", name, test, most[test] / 1000, at } }' "$out/ping.csv"
}
echo "side,test,largest_gb_per_s,half_power_bytes"
half 4 openmpi ferry
half 5 openmpi openmpi
half 5 mpich mpich
if command -v gnuplot >/dev/null; then
    gnuplot -e "dir='$out'" "$here/ping.gp"
else
    echo "ping: no gnuplot (Debian: gnuplot-nox): the plot is as it was" >&2
fi
