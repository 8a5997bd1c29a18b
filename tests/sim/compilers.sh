#!/bin/sh
# Goal: equal seeds give the same bytes, of output, report and trace, from every compiler and build
# type. Method: the workload and a balanced program, built by gcc and clang, for release and for
# debugging, run on the same places with the same seeds and compared with those of this build. A
# compiler that is absent is left out, and said so. `make test` compares one build, which differs
# from this one in compiler, type and optimisation; `make soak` all.
#
#     compilers.sh FERRY SOURCE WORKLOAD SYNTHETIC [all]
set -u
ferry=$1 source=$2 all=${5:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/first" "$scratch/now" "$scratch/traces"

# build COMPILER TYPE FLAGS: both programs, always under the same names: traces tell them; and of
# the library what they need
build()
{
    folder=$scratch/$1-$2
    cmake -S "$source" -B "$folder" -DCMAKE_C_COMPILER="$1" -DCMAKE_BUILD_TYPE="$2" \
        -DCMAKE_C_FLAGS_DEBUG= -DCMAKE_C_FLAGS_RELEASE="$3" -DFERRY_TESTS=OFF -DFERRY_EXAMPLES=OFF -DFERRY_BENCH=OFF &&
        cmake --build "$folder" --target ferry ferry_port_sim ferry_bundle ferry_report --parallel 2 || return
    # shellcheck disable=SC2086
    set -- "$1" -std=c11 $3 -w -D_GNU_SOURCE -I"$source/include" -I"$source/apps" \
        -L"$folder/lib" -Wl,-rpath,"$folder/lib"
    "$@" "$source/tests/sim/workload.c" -lferry -o "$scratch/workload" &&
        "$@" "$source/bench/papers/synthetic.c" "$source/apps/common/parameters.c" -lferry -lm \
            -o "$scratch/synthetic"
}

# run NAME ARGUMENT...: output, report without its times, and traces, into now/
run()
{
    name=$1
    shift
    (cd "$scratch" && FERRY_TRACE="$scratch/traces" "$ferry" sim -r "$@" >"now/$name" 2>&1)
    echo "status $?" >>"$scratch/now/$name"
    sed -i '/ ns per event/d' "$scratch/now/$name"
    (cd "$scratch/traces" && cat ./*) >"$scratch/now/$name.trace"
    rm -rf "$scratch/traces"
    mkdir "$scratch/traces"
}

# results BUILD: of all runs, which are as those of the first build
results()
{
    for seed in 1 2 3 4 5; do
        run "workload-$seed" -n 6 --seed $seed --faults random --net cloud ./workload
    done
    for scheduler in ferry stealing diffusion gradient multilist; do
        run "synthetic-$scheduler" -n 32 --net ethernet-100m ./synthetic --work compute \
            --tasks 8 --scheduler $scheduler
    done
    for result in "$scratch"/now/*; do
        [ -s "$result" ] || { echo "$1: no ${result##*/}"; exit 1; }
    done
    if [ -z "$(ls "$scratch/first")" ]; then
        mv "$scratch"/now/* "$scratch/first/"
    elif ! diff -rq "$scratch/first" "$scratch/now"; then
        echo "$1 differs from this build"
        exit 1
    else
        echo "$1: $(ls "$scratch/now" | wc -l) results as of this build"
    fi
}

cp "$3" "$scratch/workload" && cp "$4" "$scratch/synthetic" || exit 1
results "this build"
other=clang
command -v clang >/dev/null || other=gcc
for compiler in gcc clang; do
    if ! command -v $compiler >/dev/null; then
        echo "$compiler: absent, left out"
        continue
    fi
    for type in 'Debug -O0' 'Release -O3 -DNDEBUG'; do
        [ -n "$all" ] || [ "$compiler $type" = "$other Debug -O0" ] || continue
        build $compiler "${type%% *}" "${type#* }" >"$scratch/log" 2>&1 ||
            { tail -5 "$scratch/log"; exit 1; }
        results "$compiler ${type%% *}"
    done
done
grep -q 'hash' "$scratch/first/workload-1" && grep -q 'status 0' "$scratch/first/workload-1"
