#!/bin/sh
# Goal: FERRY_STEER chooses a quantum that costs less, never a smaller one, the same in each run. It
# chooses parameters of the scheduler, and between phases another scheduler, and gains by that. It
# leaves alone what the user or the port has settled, tells what it chose, and refuses what it cannot
# steer. Method: the synthetic benchmark, steps and a program of phases in the simulator, where
# each look of a helper takes 5 us from the task, with the usual quantum of 200 us.
. "$(dirname "$0")/common.sh"
ferry=$1 synthetic=$2 phases=$3 steps=$4
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

# Reports to rank 0 take some time.
is_near()
{
    [ $((span - usual)) -lt $((usual / 10000)) ] && [ $((usual - span)) -lt $((usual / 10000)) ]
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
is_near || fail "with a large quantum $span is not $usual"

# There is nothing to choose.
with --
usual=$span
with FERRY_STEER=1 --
says err 'tasks here, light ones of .* ms, heavy ones of .* ms; no quantum to choose: messages wake the helper thread'
is_near || fail "without a quantum $span is not $usual"
with FERRY_STEER=1 FERRY_QUANTUM_US=300 -- --quantum 200us
says err 'no quantum to choose: FERRY_QUANTUM_US is set'

# Another scheduler is steered. The report tells what was chosen.
with FERRY_STEER=1 FERRY_SCHEDULER=diffusion -- --quantum 200us
says err 'steering: scheduler diffusion;'
with FERRY_STEER=1 FERRY_TRACE="$work/run" -- --quantum 200us
grep -q '^steer [0-9]* quantum [0-9]* us: a look takes' "$work"/run/rank-*.trace ||
    fail "the trace does not say what was chosen"
expect 0 "$ferry" report "$work/run"
grep -q 'What steering chose' "$work/run/report.html" || fail "the report does not say it"

# Between phases rank 0 chooses another scheduler than `none`, where all tasks stay on one rank. The
# scheduler that FERRY_SCHEDULER names stays.
time_of()
{
    sed -n "s/^phase $1: \\([0-9]*\\)\\.\\([0-9]*\\) ms/\\1\\2/p" "$work/out"
}
expect 0 env FERRY_STEER=1 FERRY_TRACE="$work/phases" "$ferry" sim -n 8 --net "$work/net" \
    "$phases" none 4
[ "$(($(time_of 0)))" -gt "$((5 * $(time_of 2)))" ] || fail 'phase 2 is not 5 times as fast'
grep -q '^steer [0-9]* scheduler ferry after phase 1: for 640 tasks of .* the model expects' \
    "$work"/phases/rank-*0.trace || fail 'the trace does not say why the scheduler was chosen'
[ "$(grep -l '^steer [0-9]* scheduler ferry: rank 0' "$work"/phases/rank-*.trace | wc -l)" = 7 ] ||
    fail 'not all ranks have changed the scheduler'
expect 0 env FERRY_STEER=1 FERRY_SCHEDULER=none "$ferry" sim -n 8 --net "$work/net" \
    "$phases" none 4
[ "$(($(time_of 0)))" -lt "$((2 * $(time_of 2)))" ] || fail 'FERRY_SCHEDULER does not stay'

# A change that seems to make things worse is taken back.
expect 0 env FERRY_STEER=1 FERRY_TRACE="$work/back" "$ferry" sim -n 8 --net "$work/net" \
    "$phases" diffusion 4 spoilt
says err 'steering: scheduler diffusion;'
grep -q '^steer [0-9]* scheduler diffusion again: the ranks worked' "$work"/back/rank-*0.trace ||
    fail 'the trace does not say that the former scheduler came back'

# Parameters: with tasks of 100 ms, work stealing gains if it asks no rank before its last task has
# ended. With tasks of 200 us, diffusion gains if it asks earlier.
run_time()
{
    sed -n 's/.*% heavy: makespan \([0-9]*\)\.\([0-9]*\) ms.*/\1\2/p
        s/.*%: \([0-9]*\)\.\([0-9]*\) ms, at least.*/\1\2/p' "$work/out"
}
gains()
{
    parts=$1
    shift
    expect 0 "$@"
    before=$(run_time)
    expect 0 env FERRY_STEER=1 FERRY_TRACE="$work/tuned" "$@"
    after=$(run_time)
    [ $((before - after)) -gt $((before / parts)) ] || fail "$before, steered $after: $*"
}
export FERRY_SCHEDULER=stealing
gains 20 "$ferry" sim -n 64 --net "$work/net" --quantum 200us "$steps" --refine 100
export FERRY_SCHEDULER=diffusion
gains 50 "$ferry" sim -n 16 --net "$work/net" --quantum 200us "$synthetic" --work compute \
    --light 0.2 --tasks 256
grep -q '^steer [0-9]* threshold [0-9.]*: an answer takes' "$work"/tuned/rank-*.trace ||
    fail 'the trace does not say why the threshold was chosen'
unset FERRY_SCHEDULER

# Bad settings are refused.
status=1
with FERRY_STEER=2 --
says err 'FERRY_STEER is "2"; expected .*0 to 1'
with FERRY_STEER=1 FERRY_SCHEDULER=nosuch --
says err 'there is no scheduler "nosuch"'
ends_well
