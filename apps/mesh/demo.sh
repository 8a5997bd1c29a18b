#!/bin/sh
# Refines the coast of Great Britain, finer around London, without and with balancing; says how much
# balancing gained and where the pictures are. Called by `make demo` from the top folder.
set -eu

build=${BUILD:-build}
out=${OUT:-demo}
cores=$(nproc)
ranks=${RANKS:-$((cores < 4 ? 4 : cores < 16 ? cores : 16))}
scheduler=${SCHEDULER:-ferry}

# refine SCHEDULER FOLDER
refine() {
    mkdir -p "$out/$2"
    FERRY_TRACE=$out/$2 "$build/bin/ferry" run -n "$ranks" "$build/apps/mesh" \
        --input apps/data/great-britain.poly --subdomains 192 --angle 25 --size 1.2 \
        --work-share 0.2 --feature=-8,5730,40,12 --scheduler "$1" --out "$out/$2" --check
}

# number FOLDER NAME
number() {
    sed -n "s/.*\"$2\": \([0-9.e+-]*\).*/\1/p" "$out/$1/summary.json" | head -n 1
}

echo "Without balancing: each rank keeps the sub-domains it begins with."
refine none unbalanced
echo
echo "With balancing: scheduler $scheduler moves sub-domains while others are being refined."
refine "$scheduler" balanced

echo
awk -v before="$(number unbalanced makespan_s)" -v after="$(number balanced makespan_s)" \
    -v bound="$(number balanced bound_s)" 'BEGIN {
        printf "Balanced %.2f times as fast: %.3f s instead of %.3f s; ", before / after, after, before
        printf "the work divided by the processors is %.3f s.\n", bound }'
"$build/bin/ferry" report --during refine -o "$out" "$out/unbalanced" "$out/balanced"
echo "Pictures: load.svg in $out shows what each rank did in both runs; mesh.svg in $out/unbalanced and"
echo "$out/balanced shows which rank refined what, and mesh.vtu there opens in ParaView."
