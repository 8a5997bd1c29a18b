#!/bin/sh
# Goal: what goes wrong in a simulated run is noticed, named and repeatable. Method: programs that
# are wrong on purpose; exit status and report of each.
set -u
ferry=$1 canary=$2
out=$(mktemp)
net=$(mktemp)
trap 'rm -f "$out" "$net"' EXIT
failures=0
# A run that is ended does not free its memory: that is no leak of its program.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# expect STATUS PATTERN COMMAND...: the command's status, and a line of its output.
expect()
{
    status=$1 pattern=$2
    shift 2
    "$@" >"$out" 2>&1
    got=$?
    if [ "$got" -ne "$status" ] || ! grep -q "$pattern" "$out"; then
        echo "$*: status $got, expected $status and \"$pattern\":"
        cat "$out"
        failures=$((failures + 1))
    fi
}

expect 120 'rank 1: sim: waits in ferry_wait' "$ferry" sim -n 3 "$canary" stuck
expect 120 'rank 2: sim: waits in barrier' "$ferry" sim -n 3 "$canary" stuck
expect 120 'rank 2: sim:   waits for rank 0, which has not sent' "$ferry" sim -n 3 "$canary" deadlock
expect 120 'sim: deadlock: rank 0 waits for rank 2, which waits for rank 0$' \
    "$ferry" sim -n 3 "$canary" deadlock
expect 120 'sim: deadlock: rank 97 waits for rank 99, which waits for rank 97$' \
    "$ferry" sim -n 100 "$canary" deadlock
expect 120 'nothing was done for 10 s' "$ferry" sim -n 3 "$canary" restless
expect 120 'nothing was done for 10 s' "$ferry" sim -n 3 "$canary" spinning
expect 120 'the time limit has passed' "$ferry" sim -n 3 --time-limit 1ms "$canary" restless
# Packets that are sent again and again, as long as ranks ask for work, are nothing done.
expect 120 'stuck at 1[0-2][.][0-9]* s, seed 1: nothing was done for 10 s' \
    "$ferry" sim --seed 1 -n 4 --faults random "$canary" crowded
# So many looks, between which almost no time passes.
for ranks in 1 2; do
    expect 120 'stuck at 0[.][0-9]* s, .*: rank [0-2] looked 4000000 times within 160 ms, and' \
        timeout 60 "$ferry" sim -n $ranks "$canary" sleepless
done
# Ranks whose calls end do something.
expect 0 'sim: 2 ranks' "$ferry" sim --report -n 2 "$canary" meetings
expect 0 'sim: 2 ranks' "$ferry" sim --report -n 2 --net memory "$canary" meetings
# A rank that waits for 2 s in steps of a microsecond does not look too often.
expect 0 'sim: 1 ranks' "$ferry" sim --report -n 1 "$canary" steps
# A message that is 15 s on its way is no reason to end, with and without losses.
printf '%s\n' 'memory private' 'latency 15s' 'byte 10us' >"$net"
for faults in '' drop=0.01; do
    expect 0 'sim: 3 ranks' "$ferry" sim --report -n 3 --net "$net" ${faults:+--faults "$faults"} "$canary" patient
done
# One fault, and perhaps how long senders are patient.
expect 1 'ferry sim --seed [0-9]* -n [0-9]* --faults [a-z0-9=@.:-]*\(,[a-z0-9=@.:]*\)\{0,1\} ' \
    "$ferry" swarm -n 4 --seeds 1..50 "$canary" hasty
expect 1 'ferry sim --seed 1 -n [0-9]* -C 2.5 ' \
    "$ferry" swarm -n 3 -C 2.5 --seeds 1..1 --effort 1 "$canary" stuck
# Where the faults that happened are too many for a command, it has the plan of the seed, and repeats
# the failure.
expect 1 'ferry sim --seed 1 -n [0-9]* --faults random ' \
    "$ferry" swarm -n 4 --seeds 1..1 --effort 0.001 "$canary" crowded
expect 120 'nothing was done for 10 s' sh -c "$(sed -n "s|^  ferry sim|'$ferry' sim|p" "$out")"
case $(uname -m) in
x86_64 | aarch64)
    # Sanitizers' stacks are larger, and they notice more.
    if ! nm "$canary" | grep -qE '__(asan|tsan)_init'; then
        expect 121 "rank 1: sim: the program's stack of 65536 bytes was overrun" \
            "$ferry" sim -n 3 --stack 65536 "$canary" deep 1 24
        # Below the first stack there is nothing to overrun: the program crashes.
        for what in 'deep 0 24' 'deep 0 400' 'deep 2 400' wide; do
            expect 121 "rank [02]: sim: the program's stack of 65536 bytes was overrun" \
                "$ferry" sim -n 3 --stack 65536 "$canary" $what
        done
    fi
    ;;
esac
exit "$failures"
