#!/bin/sh
# Repeats the papers' experiments: CSV files and, where gnuplot is, plots into docs/papers.
#
#     make && bench/papers/run.sh [FOLDER]
#
# BUILD is the build folder. ONLY says which files, by name without .csv. The scripts of the single
# files take further variables. Experiments that depend on the machine are not among them: ping.sh,
# `pingpong.sh ... here`, `model.sh ... run` and validate.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-$root/build}
out=${1:-$root/docs/papers}
ferry=$build/bin/ferry
papers=$build/bench/papers
apps=$build/apps
mkdir -p "$out"

# make NAME COMMAND...: NAME.csv, which is replaced only when it is complete
make_csv()
{
    name=$1
    shift
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    "$@" >"$out/$name.new"
    mv "$out/$name.new" "$out/$name.csv"
}

make_csv progressive-model "$papers/progressive_model"
make_csv hops sh "$here/hops.sh" "$ferry" "$papers/hops"
make_csv hops-histogram sh "$here/hops.sh" "$ferry" "$papers/steps" histogram
make_csv pingpong-simulated sh "$here/pingpong.sh" "$ferry" "$papers/pingpong"
make_csv dmcs sh "$here/dmcs.sh" "$ferry" "$apps"
make_csv steps sh "$here/steps.sh" "$ferry" "$papers/steps"
make_csv fmm sh "$here/fmm.sh" "$ferry" "$apps/fmm"
make_csv mesh sh "$here/mesh.sh" "$ferry" "$apps/mesh"
make_csv front sh "$here/front.sh" "$ferry" "$apps/front"
make_csv overheads sh "$here/overheads.sh" "$ferry" "$papers/synthetic" "$apps/front" "$apps/fmm"
make_csv preemption sh "$here/preemption.sh" "$ferry" "$papers/synthetic"
make_csv synthetic sh "$here/synthetic.sh" "$ferry" "$papers/synthetic"
make_csv model sh "$here/model.sh" "$ferry" "$papers/synthetic"
make_csv studies sh "$here/studies.sh" "$ferry"
make_csv foresight sh "$here/foresight.sh" "$ferry" "$apps/mesh" "$papers/steps" "$apps/uts"
make_csv synthetic-ranks sh "$here/ranks.sh" "$ferry" "$papers/synthetic"
make_csv cds sh "$here/cds.sh" "$ferry" "$papers/handoff"
make_csv kelp sh "$here/kelp.sh" "$ferry" "$apps"
make_csv progressive sh "$here/progressive.sh" "$ferry" "$papers/progressive"
if command -v gnuplot >/dev/null; then
    for plot in plot plot_ranks plot_more plot_model; do
        gnuplot -e "dir='$out'" "$here/$plot.gp"
    done
else
    echo "papers: no gnuplot (Debian: gnuplot-nox): plots are as they were" >&2
fi
echo "papers: $out; bench/papers/validate.sh compares the simulator with this machine"
