#!/bin/sh
# Goal: equal seeds give the same bytes, of output, report and trace, from every compiler and build
# type. Method: the workload and a balanced program, built by gcc and clang, for release and for
# debugging, run on the same places with the same seeds and compared with the first build's. A
# compiler that is absent is left out, and said so.
#
#     compilers.sh FERRY SOURCE
set -u
ferry=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/first" "$scratch/now"
first=

# build COMPILER TYPE: both programs, always under the same names: traces tell them
build()
{
    cmake -S "$source" -B "$scratch/$1-$2" -DCMAKE_C_COMPILER="$1" -DCMAKE_BUILD_TYPE="$2" \
        -DFERRY_TESTS=OFF -DFERRY_BENCH=OFF >"$scratch/log" 2>&1 &&
        cmake --build "$scratch/$1-$2" --target example_synthetic --parallel 2 \
            >"$scratch/log" 2>&1 &&
        cp "$scratch/$1-$2/examples/synthetic" "$scratch/synthetic" &&
        "$1" -std=c11 -O1 -w -I"$source/include" "$source/tests/sim/workload.c" \
            "$scratch/$1-$2/lib/libferry.a" -lm -lpthread -ldl -o "$scratch/workload" \
            >"$scratch/log" 2>&1
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

mkdir "$scratch/traces"
for compiler in gcc clang; do
    if ! command -v $compiler >/dev/null; then
        echo "$compiler: absent, left out"
        continue
    fi
    for type in Release Debug; do
        build $compiler $type || { tail -5 "$scratch/log"; exit 1; }
        for seed in 1 2 3 4 5; do
            run "workload-$seed" -n 6 --seed $seed --faults random --net cloud ./workload
        done
        for scheduler in ferry stealing diffusion gradient multilist; do
            run "synthetic-$scheduler" -n 32 --net ethernet-100m ./synthetic --work compute \
                --tasks 8 --scheduler $scheduler
        done
        for result in "$scratch"/now/*; do
            [ -s "$result" ] || { echo "$compiler $type: no ${result##*/}"; exit 1; }
        done
        if [ -z "$first" ]; then
            first="$compiler $type"
            mv "$scratch"/now/* "$scratch/first/"
        elif ! diff -rq "$scratch/first" "$scratch/now"; then
            echo "$compiler $type differs from $first"
            exit 1
        else
            echo "$compiler $type: $(ls "$scratch/now" | wc -l) results as $first"
        fi
    done
done
grep -q 'hash' "$scratch/first/workload-1" && grep -q 'status 0' "$scratch/first/workload-1"
