#!/bin/sh
# Goal: `ferry scale` predicts a program on more ranks as the simulator runs that program, says what
# bounds a run, and tells what is wrong with what it cannot use. Method: traces of 4 ranks, simulated
# and with tasks that sleep, against `ferry sim -n 8` of the same tasks; traces with known answers.
. "$(dirname "$0")/common.sh"
ferry=$1 synthetic=$2 steps=$3 uts=$4

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

# A chain through three objects; the messages of a task go out when it ends.
a=0000000000000001 b=0000000000000002 c=0000000000000003
trace "x $a -2 0 8" "x $b -1 0 1000000" "x $a 0 0 1000000000 10 0" "x $c -1 0 8" \
    "x $b 0 0 1000000000 1000000010 0" "x $c 0 0 1000000000 2000000010 0"
expect 0 "$ferry" scale "$work/made" -n 3 -S none
says out '3 tasks of 3 objects, 3 s together, on 1 ranks; the heaviest object 1 s'
says out '2 messages between tasks, 1 phase; the longest chain 3 s'
says out '3  none  *3[.0-9]* s .*chain$'
printf 'topology flat\nlatency 1us\nbyte 2us\n' >"$work/slow.net"
expect 0 "$ferry" scale "$work/made" -n 3 -S none -N "$work/slow.net" # 1 MB takes 2 s
says out '3  none  *5[.0-9]* s .*messages$'

# The second phase begins when the first is over, though its object is idle. A phase without
# messages does not count. An object begins where its first task ran, not where it was made.
trace "x $a -2 0 8" "x $a 0 0 1000000000 10 0" "x $b -7 0 8" "x $b 0 0 1000000000 1000000010 0"
expect 0 "$ferry" scale "$work/made" -n 2 -S none
says out '0 messages between tasks, 2 phases; the longest chain 2 s'
says out '2  none  *2[.0-9]* s .*chain$'
trace "x $a -2 0 8" "x $b -2 0 8" "x $a 0 0 1000000000 10 0"
sed 's/^rank 0 1/rank 0 2/' "$work/made/rank-0.trace" >"$work/0"
mv "$work/0" "$work/made/rank-0.trace"
printf 'ferry trace 1\nrank 1 2\ntime 0 9000000000\n%s\nend\n' "x $b 0 0 1000000000 20 0" \
    >"$work/made/rank-1.trace"
expect 0 "$ferry" scale "$work/made" -n 2,1 -S none
says out '2  none  *1[.0-9]* s .*work$'
says out '1  none  *2[.0-9]* s .*work$'

# A task creates b. So b begins on the rank of that task: on 2 ranks too, a and b share one.
trace "x $a -2 4294967295 0" "x $a -2 0 8" "x $b -1 4294967295 0" "x $b -1 0 8" "x $a -1 1 8" \
    "x $a 0 0 1000000000 10 0 1" "x $b 0 0 1000000000 1000000010 0 1" \
    "x $a 0 1 1000000000 2000000010 0 1"
expect 0 "$ferry" scale "$work/made" -n 2 -S none
says out 'the longest chain 2 s'
says out 'tasks create 1 of the 2 objects'
says out '2  none  *3[.0-9]* s'
# A message to b, from c, waits until a has created b. An object can be created by no task alone.
trace "x $a -2 0 8" "x $c -2 0 8" "x $b -1 4294967295 0" "x $a 0 0 1000000000 10 0 1" \
    "x $b -1 0 8" "x $c 0 0 100000000 1000000010 0 1" "x $b 0 0 1000000000 1100000010 0 1" \
    "x $b -1 4294967295 0"
expect 0 "$ferry" scale "$work/made" -n 3 -S none
says out '3  none  *2[.0-9]* s'
! grep -q 'did not run' "$work/out" || fail "a message to an object that is created later is lost"

# Messages to different handlers: that of c starts the task of its own handler, though it is first.
trace "x $a -2 0 8" "x $c -2 0 8" "x $b -1 0 8" "x $a 0 0 2000000000 10 0 1" "x $b -1 1 8" \
    "x $c 0 0 1000000000 20 0 1" "x $b 0 0 0 2000000010 0 1" "x $b 0 1 1000000000 2000000020 0 2"
expect 0 "$ferry" scale "$work/made" -n 3 -S none
says out 'the longest chain 2 s'
says out '3  none  *2[.0-9]* s'

# An object that counts: the second message, whichever it is, starts the long task.
trace "x $a -2 0 8" "x $b -2 0 8" "x $c -1 0 8" "x $a 0 0 2000000000 10 0" "x $c -1 1 8" \
    "x $b 0 0 1000000000 2000000010 0" "x $c 0 0 0 3000000010 0" "x $c 0 1 1000000000 3000000020 0"
expect 0 "$ferry" scale "$work/made" -n 3 -S none
says out '3  none  *3[.0-9]* s' # b's message comes first here

# Tasks that the trail lacks come from the accounts: here two tasks of 1 s together.
trace "x $a -2 0 8" "x $a 0 0 1000000000 10 0" "object $a 3 2000000000 0 0 0 0 0 0 0 cell" \
    'stat trail_missed 4'
expect 0 "$ferry" scale "$work/made" -n 1 -S none
says out '3 tasks of 1 objects, 2 s together'
says out 'the trace lacks 4 messages; their tasks wait from the start'

# Ranks that share processors; loads that the scheduler was told.
expect 0 "$ferry" scale "$work/simulated" -n 8 -S none -C 4
says out '8  none  *1.6[.0-9]* s  *1[.0-9]* s  *62.5%'
FERRY_TRACE=$work/loaded expect 0 "$ferry" sim -n 4 "$synthetic" --tasks 4 --light 10 \
    --work compute --loads
awk '$1 == "x" && $3 >= 0 && $7 != 0.01 && $7 != 0.02 && $7 != 10 && $7 != 20 { exit 1 }' \
    "$work/loaded/rank-0.trace" || fail "the trace has not the loads of the program"

# A program of steps, whose tasks send messages, and whose messages have loads, of some 0.
if [ -x "$steps" ]; then
    FERRY_TRACE=$work/steps expect 0 "$ferry" sim -n 4 -N ethernet-100m "$steps" --refine 100
    expect 0 "$ferry" scale "$work/steps" -n 8,32 -S ferry,diffusion,none -N ethernet-100m -j
    cp "$work/out" "$work/predicted.out"
    for ranks in 8 32; do
        for scheduler in ferry diffusion none; do
            balance= # none: the program balances nothing
            [ $scheduler != none ] || balance=--no-balance
            took=$(FERRY_SCHEDULER=$scheduler timeout 60 "$ferry" sim -n $ranks -N ethernet-100m \
                "$steps" --refine 100 $balance | sed -n 's/.*%: \([0-9.]*\) ms, at least.*/\1/p')
            cp "$work/predicted.out" "$work/out"
            echo "$ranks $scheduler $(predicted $ranks $scheduler) $took"
        done
    done >"$work/steps.out"
    awk '{ d = $3 / $4 - 1; if (NF == 4 && d < 0.05 && d > -0.05) n++ } END { exit n != 6 }' \
        "$work/steps.out" || { cat "$work/steps.out"; fail "steps: more than 5% wrong"; }
fi

# A program whose tasks create most objects.
if [ -x "$uts" ]; then
    set -- -N ethernet-100m "$uts" --tree T1 --node-ns 10000 --grain 500
    FERRY_TRACE=$work/uts expect 0 "$ferry" sim -n 8 "$@"
    expect 0 "$ferry" scale "$work/uts" -n 32 -S ferry,diffusion -N ethernet-100m -j
    for scheduler in ferry diffusion; do
        took=$(FERRY_SCHEDULER=$scheduler timeout 60 "$ferry" sim -n 32 "$@" |
            sed -n 's/^.* ranks: \([0-9.]*\) ms.*/\1/p')
        echo "$scheduler $(predicted 32 "$scheduler") $took"
    done >"$work/uts.out"
    awk '{ d = $2 / $3 - 1; if (NF == 3 && d < 0.05 && d > -0.05) n++ } END { exit n != 2 }' \
        "$work/uts.out" || { cat "$work/uts.out"; fail "uts: more than 5% wrong on 32 ranks"; }
fi

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
wrong 1 '999999999 tasks; expected at most 20000000' -n 2 "$work/made"
# An object whose accounts have 2^63 messages and more together.
many=$(awk 'BEGIN { for (i = 0; i < 2049; i++)
    print "object 0000000000000001 4503599627370495 1 0 0 0 0 0 0 0 cell" }')
trace "$many"
wrong 1 'tasks; expected at most 20000000' -n 2 "$work/made"
trace
sed 's/^ferry trace 1/ferry trace 2/' "$work/made/rank-0.trace" >"$work/2"
mv "$work/2" "$work/made/rank-0.trace"
wrong 1 'expected the line "ferry trace 1"' -n 2 "$work/made"
: >"$work/made/rank-0.trace"
wrong 1 'expected the line "ferry trace 1"' -n 2 "$work/made"
wrong 1 'there is no file rank-0.trace' -n 2 "$work/absent"
wrong 2 'C 0: expected a number from 1 to 65536' -n 2 -C 0 "$work/simulated"
for line in "x $a" "x $a 0" 'x 1 0 0 0 0 0' "x $a - 0 0" "x $a 0 -1 0 0 0" "x $a 0 0 x 0 0" \
    "x $a 0 0 0 0" "x $a 0 0 0 0 inf" "x $a 0 0 0 0 0 65536" "x $a 0 0 0 0 0 1 1" "x $a 99999 0 0 0 0" "x $a 0 4294967296 0 0 0" \
    "x $a -1 0 8 9"; do
    trace "$line"
    wrong 1 "rank-0.trace:4: .*xpected" -n 2 "$work/made"
done
for ranks in 0 -1 x 2,,3 2, 65537; do
    wrong 2 "n $ranks: expected at most 32 numbers from 1 to 65536" -n "$ranks" "$work/simulated"
done
wrong 2 'expected -n with one or more numbers of ranks' "$work/simulated"
# A simulation that is ended does not free its memory: that is no leak.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
wrong 2 'there is no scheduler "absent"' -n 2 -S absent "$work/simulated"
wrong 2 'expected at most 32 names of schedulers' -n 2 -S ferry,, "$work/simulated"
wrong 2 'b -1: expected a number from 0 to 1073741824' -n 2 -b -1 "$work/simulated"
wrong 2 'ferry scale: "absent" is no network; expected' -n 2 -S none -N absent "$work/simulated"
wrong 2 '0 traces: expected one' -n 2
wrong 2 'Try `ferry scale --help`' --absent
expect 0 "$ferry" scale --help

ends_well
