#!/bin/sh
# Goal: the parallel program makes a mesh that its checker accepts, whatever the number of ranks and
# sub-domains and the scheduler; and it says what is wrong with bad input. Method: runs it whole,
# with --check.
#
# usage: program_test.sh FERRY MESH DATA CASE [RANKS SUBDOMAINS SCHEDULER ...]
set -eu

ferry=$1 mesh=$2 data=$3 case=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export FERRY_HEAP_BYTES=256M

fail() {
    echo "program_test: $*" >&2
    exit 1
}

# refine RANKS SUBDOMAINS SCHEDULER [FERRY'S OPTIONS]: a coarse mesh with one fine place.
# budget=BYTES: with so much of it in a rank's memory.
budget=
refine() {
    ranks=$1 subdomains=$2 scheduler=$3
    shift 3
    "$ferry" run -n "$ranks" "$@" "$mesh" --input "$data/jutland.poly" --size 12 --angle 25 \
        --feature=560,6220,15,8 --subdomains "$subdomains" --scheduler "$scheduler" --slice 300 \
        ${budget:+--budget "$budget"} --out "$work/out" --check >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "the program failed"; }
    grep -q '^ok   Euler' "$work/log" || { cat "$work/log"; fail "the check did not run to its end"; }
    for file in mesh.vtu mesh.svg summary.json; do
        [ -s "$work/out/$file" ] || fail "$file is missing or empty"
    done
}

# refuse WORDS ARGUMENTS: the program ends with a failure and says WORDS.
refuse() {
    words=$1
    shift
    if "$ferry" run -n 2 "$mesh" "$@" >"$work/log" 2>&1; then
        cat "$work/log"
        fail "accepted: $*"
    fi
    grep -q -- "$words" "$work/log" || { cat "$work/log"; fail "did not say '$words': $*"; }
}

case $case in
refine) refine "$@" ;;
budget)
    budget=40K
    refine "$@"
    # All ranks write. A rank holds the budget and one sub-domain at most, which is 100 KB or less.
    awk '$2 == "0.04" { ranks++; if ($5 > 0 && $3 <= 0.14) good++ }
        END { exit !(ranks == '"$1"' && good == ranks) }' "$work/log" ||
        { cat "$work/log"; fail "the stores did not write, or passed their budget"; }
    ;;
refuse)
    refuse 'none.poly' --input "$work/none.poly"
    refuse '--input is missing' --size 3
    refuse '--size is "-1"' --input "$data/jutland.poly" --size -1
    refuse '--angle is "60"' --input "$data/jutland.poly" --angle 60
    refuse '--feature is "1,2"' --input "$data/jutland.poly" --feature 1,2
    refuse 'fewer than the 2 ranks' --input "$data/jutland.poly" --subdomains 1
    refuse 'there is no scheduler "lazy"' --input "$data/jutland.poly" --scheduler lazy
    refuse '--budget is "1X"' --input "$data/jutland.poly" --budget 1X
    refuse '--budget is "0"' --input "$data/jutland.poly" --budget 0
    refuse '"more" is not an option' --input "$data/jutland.poly" more
    head -c 3000 "$data/jutland.poly" >"$work/short.poly"
    refuse 'short.poly' --input "$work/short.poly"
    sed '4s/.*/2 nan 1/' "$data/jutland.poly" >"$work/nan.poly"
    refuse 'nan.poly' --input "$work/nan.poly"
    refuse 'cannot be made' --input "$data/jutland.poly" --size 20 --out /dev/null/folder
    refuse 'need about .* triangles' --input "$data/jutland.poly" --size 1e-6
    refuse 'need about .* triangles' --input "$data/jutland.poly" --feature=560,6220,9,1e300
    ;;
link)
    # A folder of another user, with a link of that user's to a file of ours.
    if [ "$(id -u)" != 0 ]; then
        echo "program_test: skipped: only root can make a link of another user"
        exit 77
    fi
    mkdir "$work/out"
    echo ours >"$work/ours"
    ln -s "$work/ours" "$work/out/mesh.svg"
    chown -h 12345 "$work/out" "$work/out/mesh.svg"
    refuse 'symbolic link of another user' --input "$data/jutland.poly" --size 20 --out "$work/out"
    [ "$(cat "$work/ours")" = ours ] || fail "a planted link was followed"
    ;;
*) fail "unknown case $case" ;;
esac
