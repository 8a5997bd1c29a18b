#!/bin/sh
# Goal: FERRY_STEER chooses a quantum that costs less, never a smaller one, the same in each run. It
# leaves alone what the user or the port has settled, tells what it chose, and refuses what it cannot
# steer. Method: the synthetic benchmark in the simulator, where each look of a helper takes 5 us
# from the task, with the usual quantum of 200 us.
. "$(dirname "$0")/common.sh"
ferry=$1 synthetic=$2
printf 'latency 60us\nsend 8us\nreceive 10us\nbyte 80ns\nlook 5us\n' >"$work/net"

# with VARIABLE... -- ARGUMENT...: a simulated run of 16 ranks. Its makespan in ns is $span.
with()
{
    set_them=
    while [ "$1" != -- ]; do
        set_them="$set_them $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # words
    expect "${status:-0}" env $set_them "$ferry" sim -n 16 --net "$work/net" "$@" "$synthetic" \
        --work compute --light 500
    span=$(sed -n 's/.*makespan \([0-9]*\)\.\([0-9]*\) ms.*/\1\2/p' "$work/out")
}

with -- --quantum 200us
usual=$span
with FERRY_STEER=1 -- --quantum 200us
steered=$span
says err 'steering: scheduler ferry; .* tasks here, .*; quantum [0-9]* us, 200 us at the start'
[ $((usual - steered)) -gt $((usual / 100)) ] || fail "$steered is not 1% below $usual"
with FERRY_STEER=1 -- --quantum 200us
[ "$span" = "$steered" ] || fail "equal runs take $span and $steered"

# A quantum that is larger than the best one stays.
with -- --quantum 50ms
usual=$span
with FERRY_STEER=1 -- --quantum 50ms
[ "$span" = "$usual" ] || fail "with a large quantum $span is not $usual"

# There is nothing to choose.
with --
usual=$span
with FERRY_STEER=1 --
says err 'nothing to choose: messages wake the helper thread'
[ "$span" = "$usual" ] || fail "without a quantum $span is not $usual"
with FERRY_STEER=1 FERRY_QUANTUM_US=300 -- --quantum 200us
says err 'nothing to choose: FERRY_QUANTUM_US is set'

# Another scheduler is steered. The report tells what was chosen.
with FERRY_STEER=1 FERRY_SCHEDULER=diffusion -- --quantum 200us
says err 'steering: scheduler diffusion;'
with FERRY_STEER=1 FERRY_TRACE="$work/run" -- --quantum 200us
grep -q '^steer [0-9]* quantum [0-9]* us: a look takes' "$work"/run/rank-*.trace ||
    fail "the trace does not say what was chosen"
expect 0 "$ferry" report "$work/run"
grep -q 'What steering chose' "$work/run/report.html" || fail "the report does not say it"

# Bad settings are refused.
status=1
with FERRY_STEER=2 --
says err 'FERRY_STEER is "2"; expected .*0 to 1'
with FERRY_STEER=1 FERRY_SCHEDULER=nosuch --
says err 'there is no scheduler "nosuch"'
ends_well
