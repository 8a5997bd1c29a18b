#!/bin/sh
# Goal: `ferry model` fits and predicts what can be worked out by hand, agrees with the simulator on
# the step distribution, reads lists and traces, and tells what is wrong with what it cannot use.
# Method: lists with known answers; a traced simulated run, predicted and compared.
. "$(dirname "$0")/common.sh"
ferry=$1 synthetic=$2 traces=$3

# list NAME COUNT FORMULA: NAME with a time per line; i counts from 0.
list() { awk -v n="$2" "BEGIN { for (i = 0; i < n; i++) print $3 }" >"$work/$1"; }

# 2 tasks of 2 s and 6 of 1 s on 2 ranks: the heavy rank has light tasks too, and 5 s are reached.
list few 8 'i < 6 ? 1 : 2'
expect 0 "$ferry" model -n 2 "$work/few"
says out 'diffusion  *5 s .* 6 s .* 5 s'
says out 'stealing  *5 s .* 6 s .* 5 s'

list step 64 'i < 48 ? 1 : 2'
expect 0 "$ferry" model -n 4 -t "$work/step"
says out '64 tasks from 1 s to 2 s, 80 s together'
says out '48 light tasks of 1 s, 16 heavy tasks of 2 s; error 0 s^2'
# 16 tasks of 2 s on one rank; with balancing 20 s each, since 16 = 3 * 2 (given) + 10.
says out 'none  *32 s  *32 s  *32 s  *32 s  *62.5%  *0'
says out 'diffusion  *20 s .* 20 s  *100.0%  *6$'
says out 'ferry  *20 s .* 20 s  *100.0%  *6$'
list linear 64 '1 + i / 63'
expect 0 "$ferry" model -n 2 -c "$work/linear"
expect 0 "$ferry" model -n 2 "$work/linear"
says out '32 light tasks of 1.246 s, 32 heavy tasks of 1.754 s; error 1.375 s^2'

# More than half of the tasks are heavy; a number of tasks that the ranks do not divide.
list heavy 60 'i < 15 ? 1 : 4'
expect 0 "$ferry" model -n 4 -c "$work/heavy"
awk -F, '$2 == "diffusion" && ($3 >= 60 || $7 == 0 || $6 > 54) { exit 1 }' "$work/out" ||
    fail "nothing is balanced when most tasks are heavy"
list odd 17 'i < 13 ? 1 : 2' # the first block has 5 tasks: 4 heavy and 1 light
expect 0 "$ferry" model -n 4 -c "$work/odd"
awk -F, '$2 == "none" && $6 != 9 { exit 1 }' "$work/out" || fail "blocks of 17 tasks on 4 ranks"

# Units, comments, the standard input, one task, equal tasks.
printf '# times\n20ms\n\n 0.02 # seconds\n2e4us\n20000000ns\n' >"$work/units"
expect 0 "$ferry" model -n 2 "$work/units"
says out '4 tasks from 20 ms to 20 ms, 80 ms together'
says out 'all tasks are equal'
echo 3 | timeout 60 "$ferry" model -n 8 - >"$work/out" || fail "the standard input is not read"
says out '1 task from 3 s to 3 s'
expect 0 "$ferry" model -n 1,2,1048576 -j "$work/step"
says out '"gamma": 48, "alpha": 2, "beta": 1, "error": 0}'

# Parameters: from a file, from a network file, on the command line.
printf 'latency 3us\nsend 1us\nreceive 1us\ngap 1us\nbyte 2ns\ntopology flat\nmemory shared\n' \
    >"$work/net"
printf 'quantum 10ms\npoll 300us\nswitch 100us\n' >"$work/thread"
expect 0 "$ferry" model -n 4 -c -p "$work/thread" "$work/step"
awk -F, '$2 == "none" && ($6 < 33.59 || $6 > 33.61) { exit 1 }' "$work/out" ||
    fail "the thread of (6.14) does not cost 5 percent"
expect 0 "$ferry" model -n 4 -c -p "$work/net" -s messages=1000 -s message-bytes=0 "$work/step"
awk -F, '$2 == "none" && ($6 < 32.0799 || $6 > 32.0801) { exit 1 }' "$work/out" ||
    fail "16 tasks do not send 1000 messages of 5 us each"

# A study: the best value, the same work in other numbers of tasks, parameters with own values.
expect 0 "$ferry" model -n 4 -y quantum=1ms,10ms,100s -p "$work/thread" "$work/step"
says out '^  quantum  *none  *diffusion  *stealing  *ferry'
says out '^  best  *100s  *10ms  *10ms  *100s'
expect 0 "$ferry" model -n 4 -c -y tasks=1,16,32 "$work/step"
awk -F, '$4 == "none" && ($8 < 31.9999 || $8 > 32.0001) || $2 == 16 && $4 == "ferry" && $8 > 20.01 ||
    $2 == 1 && $9 > 0 { exit 1 } END { exit NR != 13 }' "$work/out" || fail "a study of tasks"
cp "$work/out" "$work/studied"
printf '16\n16\n16\n32\n' >"$work/four"
expect 0 "$ferry" model -n 4 -c -y tasks=1,16,32 "$work/four" # the same staircase
cmp "$work/studied" "$work/out" || fail "four tasks have not the shape of 64"
expect 0 "$ferry" model -n 2,4 -j -y startup "$work/step"
says out '"parameter": "startup", "runs": \['
says out '"value": "10ms", "ranks": 4, "scheduler": "ferry", .*}\]}'
expect 0 "$ferry" model -n 4 -c -y message-work=0s,1s -s messages=1 "$work/step"
awk -F, '$4 == "none" { took[$2] = $8 } END { exit !(took["1s"] - took["0s"] == 16) }' "$work/out" ||
    fail "16 messages of 1 s of work do not take 16 s"

# A trace, and what the simulator took for the tasks in it.
for scheduler in diffusion stealing ferry; do
    for tasks in 4 8 16; do
        expect 0 env FERRY_TRACE="$work/run" "$ferry" sim -n 16 "$synthetic" --tasks $tasks \
            --light 50 --heavy 25 --scheduler $scheduler
        took=$(sed -n 's/.*makespan \([0-9.]*\) ms.*/\1/p' "$work/out")
        expect 0 "$ferry" model -c --handler unit "$work/run"
        awk -F, -v s=$scheduler -v took="$took" '$2 == s { found = 1
            if ($6 * 1e3 > took * 1.08 || $6 * 1e3 < took * 0.92) exit 1 } END { exit !found }' \
            "$work/out" || fail "$scheduler took $took ms for $tasks tasks per rank"
        rm -rf "$work/run"
    done
done
expect 0 "$ferry" model "$traces"
says out '^2 ranks'

# Errors name what is wrong.
wrong() { # STATUS PATTERN ARGUMENT...
    status=$1 pattern=$2
    shift 2
    expect "$status" "$ferry" model "$@"
    says err "$pattern"
}
: >"$work/empty"
wrong 1 'empty: it has no tasks; expected one or more' -n 2 "$work/empty"
printf '0\n0s\n' >"$work/zero"
wrong 1 'its 2 tasks take 0 s together; expected more than 0 s' -n 2 "$work/zero"
for word in -1 inf nan 1e999 0x10 '1 2' 1h abc; do
    printf '1\n%s\n' "$word" >"$work/bad"
    wrong 1 "bad:2: \"$word\": expected the time of a task" -n 2 "$work/bad"
done
printf '1e308\n1e308\n' >"$work/huge"
wrong 1 'expected more than 0 s and a sum' -n 2 "$work/huge"
wrong 1 'absent": No such file or directory; expected a list' -n 2 "$work/absent"
wrong 1 'has no handlers; expected the folder of a trace' -n 2 -H unit "$work/step"
wrong 1 'no task of a handler "absent" is in this run; handlers with tasks: unit, a name' -H absent "$traces"
wrong 2 'does not tell how many ranks; expected -n' "$work/step"
for ranks in 0 -1 x 2,,3 2, 1048577 99999999999999999999; do
    wrong 2 "n $ranks: expected at most 32 numbers from 1 to 1048576" -n "$ranks" "$work/step"
done
wrong 2 '0 lists of tasks: expected one' -n 2
wrong 2 'Try `ferry model --help`' --absent
wrong 2 'y absent: expected tasks, quantum, neighbours or startup, or a parameter' -n 2 -y absent \
    "$work/step"
for values in '' 1ms,,2ms , "$(printf '%0300d' 0 | sed 's/0/1s,/g')1s"; do
    wrong 2 'expected at most 256 values' -n 2 -y "quantum=$values" "$work/step"
done
for value in 0 -1 x 1000001 1.5 99999999999999999999; do
    wrong 2 "tasks \"$value\": expected a number of tasks per rank" -n 2 -y tasks=$value "$work/step"
done
wrong 2 'quantum "1": expected a time' -n 2 -y quantum=1ms,1 "$work/step"
wrong 1 '1000000 tasks on each of 1000 ranks' -n 1000 -y tasks=1000000 "$work/step"
wrong 2 'startup "2": expected a time with its unit' -n 2 -s startup=2 "$work/step"
wrong 2 'neighbours "0": expected a number of ranks, 1 or more' -n 2 -s neighbours=0 "$work/step"
wrong 2 '"speed" is not a parameter; expected quantum, poll' -n 2 -s speed=1 "$work/step"
wrong 2 'expected NAME=VALUE' -n 2 -s quantum "$work/step"
printf 'poll 1us\npoll\n' >"$work/bad"
wrong 1 'bad:2: "poll": expected a name and a value' -n 2 -p "$work/bad" "$work/step"
sed 's/^ferry-trace.*/ferry-trace 999/;1s/[0-9][0-9]*/999/' "$traces/rank-0.trace" >"$work/rank-0.trace"
expect 1 "$ferry" model "$work"
says err 'xpected'

# The file that calibrate writes has every parameter, and model and sim take it. The last five
# belong to the program, and a helper that is woken has no quantum. Older files have the parts of a
# start-up only. Others take processors from the ranks that are measured, so one of three runs must
# do. measured: every parameter of the machine has a figure above 0.
measured()
{
    for name in startup byte poll switch reply decide uninstall pack unpack install \
        request-bytes task-bytes neighbours; do
        awk -v name="$name" '$1 == name && $2 + 0 > 0 && $2 ~ /^[0-9]+(ns|ps)?$/ { n++ }
            END { exit n != 1 }' "$work/here.net" && continue
        echo "calibrate: $name is not there, or is 0" >"$work/why"
        return 1
    done
}
for try in 1 2 3; do
    expect 0 "$ferry" calibrate --quick -o "$work/here.net"
    measured && break
    [ "$try" -lt 3 ] || fail "$(cat "$work/why")"
done
for name in quantum messages message-bytes message-work overlap; do
    grep -q "^$name 0" "$work/here.net" || fail "calibrate: $name is not there"
done
# sends: what 64 messages without data take, in ns, and so 64 start-ups.
sends() { sed -n '/"none"/s/.*"messages": *\([^,]*\),.*/\1/p' "$work/out" | awk '{ printf "%.0f", $1 * 1e9 }'; }
expect 0 "$ferry" model -n 1 -j -p "$work/here.net" -s messages=1 "$work/step"
startup=$(sed -n 's/^startup \(.*\)ns/\1/p' "$work/here.net")
[ "$(sends)" -eq $((64 * startup)) ] || fail "$(sends) ns are not 64 start-ups of $startup ns"
expect 0 "$ferry" sim -n 2 -N "$work/here.net" "$synthetic" --tasks 2 --work compute
printf 'topology flat\nlatency 1us\nsend 2us\nreceive 4us\ngap 5ns\nbyte 3ps\n' >"$work/old.net"
expect 0 "$ferry" model -n 1 -j -p "$work/old.net" -s messages=1 "$work/step"
[ "$(sends)" -eq 448000 ] || fail "$(sends) ns are not 64 start-ups of 7 us"
echo 'poll 1us 2us' >>"$work/old.net"
expect 2 "$ferry" sim -n 2 -N "$work/old.net" "$synthetic"
says err 'unknown key: "poll"'

ends_well
