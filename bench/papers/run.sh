#!/bin/sh
# Repeats the papers' experiments: CSV files and, where gnuplot is, plots into docs/papers.
#
#     make && bench/papers/run.sh [FOLDER]
#
# BUILD is the build folder; RANKS and THRESHOLDS choose among the runs of progressive.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-$root/build}
out=${1:-$root/docs/papers}
ferry=$build/bin/ferry
mkdir -p "$out"

"$build/bench/papers/progressive_model" >"$out/progressive-model.csv"
sh "$here/hops.sh" "$ferry" "$build/bench/papers/hops" >"$out/hops.csv"
sh "$here/hops.sh" "$ferry" "$build/examples/steps" histogram >"$out/hops-histogram.csv"
sh "$here/preemption.sh" "$ferry" "$build/examples/synthetic" >"$out/preemption.csv"
sh "$here/synthetic.sh" "$ferry" "$build/examples/synthetic" >"$out/synthetic.csv"
sh "$here/progressive.sh" "$ferry" "$build/bench/papers/progressive" >"$out/progressive.csv"
if command -v gnuplot >/dev/null; then
    gnuplot -e "dir='$out'" "$here/plot.gp"
else
    echo "papers: no gnuplot (Debian: gnuplot-nox): plots are as they were" >&2
fi
echo "papers: $out; bench/papers/validate.sh compares the simulator with this machine"
