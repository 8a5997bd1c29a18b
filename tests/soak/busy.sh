#!/bin/sh
# Goal: no call waits forever where processors are busy. Method: repeats the tests of ranks that
# die, leave, or make calls that do not fit, beside twice as many computing processes as there are
# processors. Ends with the output of the first test that fails.
#
#     busy.sh BUILD SECONDS
set -u
build=$1 end=$(($(date +%s) + $2))
[ -f "$build/CTestTestfile.cmake" ] || { echo "$build: expected the folder of a build"; exit 2; }
computing=
trap 'kill $computing' EXIT
trap 'exit 130' INT TERM
for _ in $(seq $((2 * $(nproc)))); do
    sh -c 'while :; do :; done' &
    computing="$computing $!"
done
rounds=0
while [ "$(date +%s)" -lt "$end" ]; do
    ctest --test-dir "$build" --no-tests=error --output-on-failure --stop-on-failure --parallel 4 --quiet \
        --output-log "$build/busy.log" --repeat until-fail:4 \
        --tests-regex 'death|crashing|leaving|elastic|survive|loss|kill|closing|misuse' \
        --exclude-regex 'swarm|^sim_|^house|^install|^mpi_|^[at]san_|^loopback_' || {
        cat "$build/busy.log"
        echo "failed after $rounds rounds beside computing processes"
        exit 1
    }
    rounds=$((rounds + 1))
done
echo "$rounds rounds beside computing processes"
