#!/bin/sh
# Goal: `ferry scale` predicts a program on more ranks as the simulator runs that program, says what
# bounds a run, and tells what is wrong with what it cannot use. Method: traces of 4 ranks, simulated
# and with tasks that sleep, against `ferry sim -n 8` of the same tasks; traces with known answers.
. "$(dirname "$0")/common.sh"
ferry=$1 synthetic=$2 traces=$3

# predicted RANKS SCHEDULER: the run time in ms that JSON in $work/out has.
predicted()
{
    sed -n "s/.*\"ranks\": $1, \"scheduler\": \"$2\", \"makespan\": \([^,]*\),.*/\1/p" "$work/out" |
        awk '{ print $1 * 1000 }'
}

# real SCHEDULER: of the program itself on 8 simulated ranks.
real()
{
    timeout 60 "$ferry" sim -n 8 "$synthetic" --tasks 4 --light 100 --work compute \
        --scheduler "$1" | sed -n 's/.*makespan \([0-9.]*\) ms.*/\1/p'
}

# close PERCENT: every scheduler differs from the program by at most that much.
close()
{
    for scheduler in ferry stealing diffusion none; do
        echo "$scheduler $(predicted 8 "$scheduler") $(real "$scheduler")"
    done | tee "$work/compared.out" | awk -v percent="$1" '
        { d = ($2 - $3) / $3 * 100; if (NF == 3 && d <= percent && d >= -percent) n++ }
        END { exit n != 4 }'
}

FERRY_TRACE=$work/simulated expect 0 "$ferry" sim -n 4 "$synthetic" --tasks 8 --light 100 \
    --work compute
expect 0 "$ferry" scale "$work/simulated" -n 8,64 --json
close 0.5 || fail "a simulated trace predicts other run times than the program has"
cp "$work/out" "$work/first"
expect 0 "$ferry" scale -j -n 8,64 "$work/simulated"
cmp "$work/first" "$work/out" || fail "a second prediction is another one"

# Others take processors from tasks that sleep, so one of three runs must do.
for try in 1 2 3; do
    rm -rf "$work/slept"
    FERRY_TRACE=$work/slept expect 0 "$ferry" run -n 4 "$synthetic" --tasks 8 --light 100 \
        --work sleep
    expect 0 "$ferry" scale "$work/slept" -n 8 --json
    close 5 && break
    [ "$try" -lt 3 ] || fail "a trace of tasks that sleep predicts more than 5% wrong"
done

# Bounds: 24 tasks of 100 ms and 8 of 200 ms. On 64 ranks the heaviest object is all that counts.
expect 0 "$ferry" scale "$work/simulated" -n 4,8,64 -S ferry,none -N ethernet-1g
says out '32 tasks of 32 objects, 4 s together, on 4 ranks; the heaviest object 0.2 s'
says out '4  ferry .* work$'
says out '8  none .* balance$'
says out '64  none .* object$'
says out 'best: 64 ranks'
expect 0 "$ferry" scale "$work/simulated" -n 1 -S none
says out '1  none  *4[.0-9]* s  *4 s  *100.0%  *0  work$'

# trace OBJECT...: a trace of one rank with lines of objects.
trace()
{
    rm -rf "$work/made"
    mkdir "$work/made"
    { printf 'ferry trace 1\nrank 0 1\ntime 0 9000000000\n'
      printf '%s\n' "$@"
      echo end; } >"$work/made/rank-0.trace"
}

# A chain of an object's tasks; what no account has; names of ranks that there were not.
trace 'stat task_ns 5000000000' 'object 0000000000000001 4 2000000000 0 0 0 0 0 0 0 cell' \
    'object 0000000000000002 1 1000000000 0 0 0 0 0 0 0 cell' \
    'object 0000000000000000 7 2000000000 0 0 0 0 0 0 0 -'
expect 0 "$ferry" scale "$work/made" -n 2 -S ferry
says out '5 tasks of 2 objects, 3 s together, on 1 ranks; the heaviest object 2 s'
says out 'not replayed: 2 s of tasks and handlers without an object'
says out '2  ferry .* object$'
trace 'object ffff000000000001 1 1000000000 0 0 0 0 0 0 0 cell' \
    'object 0fff000000000001 1 1000000000 0 0 0 0 0 0 0 cell'
expect 0 "$ferry" scale "$work/made" -n 1,2,3 -S none
says out '2  none  *1[.0-9]* s'

# wrong STATUS TEXT ARGUMENT...
wrong()
{
    status=$1 text=$2
    shift 2
    expect "$status" "$ferry" scale "$@"
    says err "$text"
}
trace 'stat tasks 0'
wrong 1 '0 objects had tasks, of 0 s together; expected a trace with tasks of objects' -n 2 \
    "$work/made"
trace 'object 0000000000000001 999999999 1 0 0 0 0 0 0 0 cell'
wrong 1 '999999999 tasks; expected at most 100000000' -n 2 "$work/made"
trace
sed 's/^ferry trace 1/ferry trace 2/' "$work/made/rank-0.trace" >"$work/2"
mv "$work/2" "$work/made/rank-0.trace"
wrong 1 'expected the line "ferry trace 1"' -n 2 "$work/made"
: >"$work/made/rank-0.trace"
wrong 1 'expected the line "ferry trace 1"' -n 2 "$work/made"
wrong 1 'there is no file rank-0.trace' -n 2 "$work/absent"
for ranks in 0 -1 x 2,,3 2, 65537; do
    wrong 2 "n $ranks: expected at most 32 numbers from 1 to 65536" -n "$ranks" "$work/simulated"
done
wrong 2 'on how many ranks? Expected -n' "$work/simulated"
# What a simulation that is ended had allocated is not freed: that is no leak.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
wrong 2 'there is no scheduler "absent"' -n 2 -S absent "$work/simulated"
wrong 2 'expected at most 32 names of schedulers' -n 2 -S ferry,, "$work/simulated"
wrong 2 'b -1: expected a number of bytes' -n 2 -b -1 "$work/simulated"
wrong 1 '"absent" is no network' -n 2 -S none -N absent "$work/simulated"
wrong 2 '0 traces: expected one' -n 2
wrong 2 'Try `ferry scale --help`' --absent
expect 0 "$ferry" scale --help

ends_well
