#!/bin/sh
# Goal: a process joins a running job by its socket, and nobody else does; whatever arrives there
# harms nobody, and nothing named is left behind however the job ends. Method: jobs of
# tests/cmd/join_program.c; tests/cmd/hostile_joiner.c says the wrong things. Usage: join_test.sh FERRY
# PROGRAM KNOCK
ferry=$1
program=$2
hostile=$3
. "$(dirname "$0")/common.sh"
folder=$work/folder
export FERRY_HEAP_BYTES=16M

# Wrong usage.
expect 2 "$ferry" join
expect 2 "$ferry" join "$folder"
expect 0 "$ferry" join --help
expect 3 "$ferry" join "$folder" "$program" meet 1
says err 'no job lets processes join at'
expect 125 "$ferry" run -n 2 --join "$folder" "$program" meet 2
says err 'starts with 2 ranks and has room for no more; expected --ranks-max 3 or more'
expect 2 "$ferry" run --join -n 2 -m 4 "$program" meet 2
says err 'join: "-n"; expected a folder'
expect 125 "$ferry" run -n 2 -m 4 -t --join "$folder" "$program" meet 2
absent "$folder" || fail "a refused job has made its folder"
mkdir -m 755 "$work/open"
expect 125 "$ferry" run -n 2 -m 4 --join "$work/open" true
says err "not this user's alone"
expect 3 "$ferry" join "$work/open" "$program" meet 1
says err 'mode 755, expected .* 700'
mkdir -m 700 "$work/empty"
expect 3 "$ferry" join "$work/empty" "$program" meet 1
says err "no job lets processes join at $work/empty: there is no file nonce; expected the folder"

# A process that has not joined is reported. One that fails says why itself. Signals are passed on.
expect 1 "$ferry" join "$folder" true
says err "true has ended without joining the job at $folder"
expect 1 "$ferry" join "$folder" false
[ ! -s "$work/err" ] || fail "it says why another program failed"
expect 127 "$ferry" join "$folder" "$work/nothing"
expect 7 "$ferry" join "$folder" \
    sh -c 'trap "exit 7" USR1; kill -USR1 $PPID; while :; do sleep 0.01; done'
expect 137 "$ferry" join "$folder" sh -c 'kill -KILL $$'

# Ranks that a program of ferry_main starts itself can be joined too.
expect 1 env FERRY_RANKS=2 FERRY_RANKS_JOIN="$folder" "$program" main meet 2
says err 'starts with 2 ranks and has room for no more; expected --ranks-max 3 or more'
expect 1 env FERRY_RANKS=2 FERRY_RANKS_MAX=3 FERRY_THREADS=1 FERRY_RANKS_JOIN="$folder" \
    "$program" main meet 2
says err 'FERRY_RANKS_JOIN is set: only ranks can be joined that are processes'
expect 3 env FERRY_RANKS_JOIN="$folder" "$program" meet 1
says err 'FERRY_RANKS_JOIN is set, but only programs that call ferry_main'
absent "$folder" || fail "a refused job has made its folder"
start job env FERRY_RANKS=1 FERRY_RANKS_MAX=2 FERRY_RANKS_JOIN="$folder" "$program" main meet 2
await exists "$folder/socket"
start first "$ferry" join "$folder" "$program" main meet 2
ends job 0
ends first 0
says first.out 'rank 1 of 2 members'
absent "$folder" || fail "the folder is left behind"

# Two ranks and two that join; one more finds no number left.
start job "$ferry" run -n 2 -m 4 --join "$folder" "$program" await 4
await exists "$folder/socket"
[ "$(stat -c %a "$folder")" = 700 ] && [ "$(stat -c %a "$folder/nonce")" = 600 ] ||
    fail "others may look into the folder"
start first "$ferry" join "$folder" "$program" await 4
start second env FERRY_JOIN="$folder" "$program" await 4
await has second.out 'of 4 members'
await has job.out 'rank 1 of 4 members'
expect 3 "$ferry" join "$folder" "$program" meet 4
says err 'no numbers left for ranks: it has had all 4'
expect 125 "$ferry" run -n 1 -m 2 --join "$folder" true
says err 'another job lets processes join'
for argument in "/proc/$job/environ" "/proc/$job/cmdline"; do
    if grep -qF "$(od -An -tx1 "$folder/nonce" | tr -d ' \n')" "$argument" 2>/dev/null; then
        fail "the nonce stands in $argument"
    fi
done
await has first.out 'of 4 members'
# One that joined dies: so does the job, as when one of the others does.
kill -KILL "$(children_of "$first")" 2>/dev/null
ends job 1
says job.err 'rank [23] (process [0-9]*), which had joined, has ended'
wait "$second"
absent "$folder" || fail "the folder is left behind"

# Another program is refused, whatever it calls first; the job goes on, and takes others in.
start job "$ferry" run -n 2 -m 11 --join "$folder" "$program" meet 3
await exists "$folder/socket"
for how in "" main; do
    for mode in strange request nothing unheard; do
        status=3
        [ $mode != unheard ] || status=1
        expect $status "$ferry" join "$folder" "$program" $how $mode
        says err 'this program cannot join the job: rank 0 has registered other handlers'
    done
done
start first "$ferry" join "$folder" "$program" meet 3
ends job 0
ends first 0

# A job ends in order, and those that joined with it.
start job "$ferry" run -n 1 -m 3 --join "$folder" "$program" meet 3
await exists "$folder/socket"
start first "$ferry" join "$folder" "$program" meet 3
start second "$ferry" join "$folder" "$program" meet 3
ends job 0
ends first 0
ends second 0
absent "$folder" || fail "the folder is left behind"
expect 3 "$ferry" join "$folder" "$program" meet 1

# One that joined leaves and lives on; the job ends without waiting for it, nor is it killed.
export LINGER="$work/linger"
touch "$LINGER"
start job "$ferry" run -n 1 -m 2 --join "$folder" "$program" endure 1
await exists "$folder/socket"
start first "$ferry" join "$folder" "$program" linger
ends job 0
absent "$folder" || fail "the folder is left behind"
await has first.out 'has left'
rm "$LINGER"
ends first 0

# Hostile bytes, a wrong nonce, and silence; the job takes no notice, and still takes others in.
start job "$ferry" run -n 1 -m 2 --join "$folder" "$program" meet 2
await exists "$folder/socket"
expect 0 "$hostile" "$folder"
start first "$ferry" join "$folder" "$program" meet 2
ends job 0
ends first 0

# Ranks that go on without others go on without one that joined.
start job "$ferry" run -n 2 -m 3 --join "$folder" "$program" endure 1
await exists "$folder/socket"
start first "$ferry" join "$folder" "$program" endure 9
await has first.out 'is there'
await has job.out 'rank 0 sees another'
await has job.out 'rank 1 sees another'
kill -KILL "$(children_of "$first")"
ends job 0
says job.err 'which had joined, has ended.*the others go on'
wait "$first"

# The launcher is killed: ranks, those that joined and what is named go with it.
"$ferry" run -n 1 -m 2 --join "$folder" "$program" await 2 >"$work/job.out" 2>"$work/job.err" &
job=$!
await exists "$folder/socket"
start first "$ferry" join "$folder" "$program" await 2
await has first.out 'of 2 members'
joined=$(children_of "$first")
kill -KILL "$job"
await absent "$folder"
await dead "$joined"
wait "$job" "$first" 2>/dev/null

# The next launcher takes over the folder that a launcher and its guard left when both were killed.
mkdir -m 700 "$folder"
echo stale >"$folder/nonce"
start job "$ferry" run -n 1 -m 2 --join "$folder" "$program" meet 2
await exists "$folder/socket"
start first "$ferry" join "$folder" "$program" meet 2
ends job 0
ends first 0
absent "$folder" || fail "a folder that was taken over is left behind"

ends_well
