#!/bin/sh
# Goal: a program runs under mpirun without a flag, and no job begins in which ranks are alone.
# Method: runs whole programs, and breaks the environment. programs.sh MPIRUN BUILD PINGPONG
# INPUT [OTHER], the name of an MPI library that mpirun does not belong to.
set -u
mpirun=$1 build=$2 pingpong=$3 input=$4 other=${5:-}
run="$(dirname "$0")/mpirun.sh"
failed=0

# expect STATUS TEXT COMMAND...; any other than 0 is 1.
expect() {
    want=$1 text=$2
    shift 2
    # On a busy machine MPICH's mpirun loses all that ranks write which end immediately, of plain C
    # programs too (9 of 250 runs). No output at all says nothing of the rank: it is run again.
    for try in 1 2 3 4 5; do
        got=$("$@" 2>&1)
        status=$?
        [ -z "$got" ] || break
    done
    [ "$status" -eq 0 ] || status=1
    case $got in
    *"$text"*) ;;
    *) status="$status without \"$text\": $got" ;;
    esac
    [ "$status" = "$want" ] || { echo "FAILED: $*: $status, expected $want"; failed=1; }
}

expect 0 "rank 0: rank 3 says 42" "$run" "$mpirun" 4 "$build/examples/hello"
expect 0 "rank 0: rank 0 says 42" "$run" "$mpirun" 1 "$build/examples/hello"
expect 0 "half round trip" "$run" "$mpirun" 2 "$pingpong" 100
for shm in 1 0; do
    expect 0 "4 ranks" env FERRY_MPI_SHM=$shm "$run" "$mpirun" 4 "$build/bench/papers/synthetic" --light 2
    expect 0 "ok   Euler" env FERRY_MPI_SHM=$shm "$run" "$mpirun" 4 \
        "$build/apps/mesh" --input "$input" --size 40 --subdomains 8 --check
done

expect 0 "lost 0, done twice 0" env FERRY_RANKS_MAX=12 "$run" "$mpirun" 2 "$build/apps/elastic"
# Nobody may come: the farm goes on with those that are there.
expect 0 "1 workers at most, 0 came" "$run" "$mpirun" 2 "$build/apps/elastic"
expect 0 "lost 0, done twice 0" \
    env FERRY_MPI_SHM=0 FERRY_RANKS_MAX=12 FERRY_HEAP_BYTES=64M "$run" "$mpirun" 2 "$build/apps/elastic"
expect 1 "at most 2 ranks (FERRY_RANKS_MAX): must be 3 to 1024" \
    env FERRY_RANKS_MAX=2 "$run" "$mpirun" 3 "$build/examples/hello"

expect 1 'FERRY_MPI is "none"; expected openmpi or mpich: ferry-port-none.so is missing' \
    env FERRY_MPI=none "$run" "$mpirun" 2 "$build/examples/hello"
for port in shm sim loopback; do
    expect 1 "FERRY_PORT=$port cannot reach the others" \
        env FERRY_PORT=$port "$run" "$mpirun" 2 "$build/examples/hello"
done
expect 1 "FERRY_RANKS=3 starts no ranks of port mpi" \
    env FERRY_PORT=mpi FERRY_RANKS=3 "$build/examples/hello"
for us in 0 1000001 5ms; do
    expect 1 "FERRY_QUANTUM_US is \"$us\"; expected a number from 1 to 1000000" \
        env FERRY_QUANTUM_US=$us "$run" "$mpirun" 2 "$build/examples/hello"
done
expect 0 "4 ranks" env FERRY_MPI_SHM=0 FERRY_QUANTUM_US=5000 \
    "$run" "$mpirun" 4 "$build/bench/papers/synthetic" --light 2
expect 1 "FERRY_MPI_SHM is \"2\"" env FERRY_MPI_SHM=2 "$run" "$mpirun" 2 "$build/examples/hello"
expect 1 "power of two" env FERRY_RING_SLOTS=9 "$run" "$mpirun" 2 "$build/examples/hello"
[ -z "$other" ] ||
    expect 1 "knows of 1" env FERRY_MPI="$other" "$run" "$mpirun" 2 "$build/examples/hello"
exit $failed
