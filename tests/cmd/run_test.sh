#!/bin/sh
# Goal: ferry run gives the right status and lines for every kind of end, and leaves nothing behind.
# Method: run small programs and tests/cmd/rank_program.c in its modes; look at status, output and
# processes. Usage: run_test.sh FERRY RANK_PROGRAM HELLO CRASHING
ferry=$1
program=$2
threaded=$3 # a program of ferry_main
crashing=$4 # another, of which a rank ends in the way of its arguments
. "$(dirname "$0")/common.sh"

# Whether no process runs the program from this test's own copy.
cp "$program" "$work/ranker" || exit 1
gone()
{
    ! ls -l /proc/[0-9]*/exe 2>/dev/null | grep -qF -- "-> $work/ranker"
}
# Whether the launcher $1 has $2 ranks.
has_ranks()
{
    [ "$(children_of "$1" | wc -w)" -eq "$2" ]
}

# Wrong usage.
expect 2 "$ferry"
expect 2 "$ferry" fly
says err '"fly" is not a command'
expect 2 "$ferry" "$program"
says err 'rank_program" is not a command; expected ferry run .*rank_program'
expect 2 "$ferry" -n 4 "$program"
says err '"-n" is not a command; expected ferry run -n 4 .*rank_program'
expect 2 "$ferry" run
says err 'expected a program to run'
expect 2 "$ferry" run -n 0 true
says err 'must be a number of ranks, 1 to 1024'
expect 2 "$ferry" run -n abc true
expect 2 "$ferry" run -n 5000 true
expect 2 "$ferry" run -n 4x true
expect 2 "$ferry" run -n -3 true
expect 2 "$ferry" run -n 3 --servers x true
says err '-d x: must be a number of data servers'
expect 2 "$ferry" run -n 3 --servers 3 true
says err '3 data servers leave no computing engine of 3 ranks; expected 0 to 2'
expect 0 "$ferry" run -n 3 --servers 2 sh -c 'echo "$FERRY_SERVERS"'
says out '^2$'
expect 0 "$ferry" run -n 3 -d 0 sh -c 'echo "$FERRY_SERVERS"'
says out '^0$'
# Data servers of the environment: the number is read as everywhere.
expect 2 env FERRY_SERVERS=1K "$ferry" run -n 3 true
says err '1024 data servers leave no computing engine of 3 ranks; expected 0 to 2'
for servers in 99999999999999999999 ' 5'; do
    expect 125 env FERRY_SERVERS="$servers" "$ferry" run -n 3 true
    says err "FERRY_SERVERS is \"$servers\"; expected a number from 0 to 65535"
done
expect 2 "$ferry" run --fast true
says err 'fast'
expect 2 "$ferry" info now
expect 0 "$ferry" --version
expect 0 "$ferry" --help
expect 0 "$ferry" run --help
expect 0 "$ferry" info
says out 'port shm   usable'

# Programs that do not know Ferry.
expect 0 "$ferry" run -n 4 true
lines err 1
says err 'no process of true .4 started. has opened Ferry; expected .* ferry_main or ferry_open'
expect 0 "$ferry" run -n 4 echo x
lines out 4
lines err 1
expect 1 "$ferry" run -n 3 sh -c 'exit $((FERRY_RANK == 2))'
says err 'rank 2 .* exited with status 1'
expect 137 "$ferry" run -n 2 sh -c 'kill -KILL $$'
expect 127 "$ferry" run -n 3 /no/such/program
lines err 1
says err 'cannot run /no/such/program: No such file'
says err 'directory$'
(cd "$work" && cp /bin/true without_dot) || fail "no program to copy"
for command in run sim swarm; do
    (cd "$work" && "$ferry" $command without_dot >err 2>&1) && fail "$command looks beside PATH"
    says err 'cannot run without_dot: No such file.*; expected \./without_dot, which is in this folder'
done
expect 126 "$ferry" run -n 2 /etc/passwd
lines err 1

# Variables that the job does not heed are told of; a program that opens Ferry gets no line.
expect 0 "$ferry" run -n 2 "$program" leave
lines err 0
expect 0 env FERRY_RANKS=zz "$ferry" run -n 2 "$program" leave
lines err 1
says err 'FERRY_RANKS is "zz" and is ignored; the job has 2 ranks (-n)'
expect 0 env FERRY_RANKS=2 "$ferry" run -n 2 "$program" leave
lines err 0
expect 0 env FERRY_PORT=mpi "$ferry" run -n 2 "$program" leave
lines err 1
says err 'FERRY_PORT is "mpi" and is ignored: .* use mpirun or srun'

# A file that cannot be written is reported.
if [ -w /dev/full ]; then
    for arguments in info --help --version 'report --help'; do
        # shellcheck disable=SC2086
        expect 1 sh -c '"$@" >/dev/full' sh "$ferry" $arguments
        says err 'standard output cannot be written: No space left'
    done
    expect 1 sh -c '"$@" >/dev/full' sh "$ferry" run -n 2 --label echo one
    [ "$(grep -c 'output of rank' "$work/err")" -eq 2 ] || fail "a lost output is not told"
    lines err 3
    says err 'output of rank 0 is lost: No space left'
    expect 3 sh -c '"$@" >/dev/full' sh "$ferry" run -n 2 --label sh -c 'echo one; exit 3'
    expect 0 sh -c '"$@" >/dev/full' sh "$ferry" run -n 2 --label true
fi

# Limits of the system. Launchers that poll more places than they may have descriptors waited
# forever, and heeded no signal.
limited()
{
    want=$1 limit=$2
    shift 2
    expect "$want" sh -c "ulimit $limit; exec timeout -k 5 60 \"\$@\"" sh "$@"
}
limited 0 "-n 24" "$ferry" run -n 2 -m 8 true
limited 0 "-Sn 128" "$ferry" run -n 100 --label sh -c 'ulimit -Sn'
[ "$(grep -c ' 128$' "$work/out")" -eq 100 ] || fail "ranks do not get their limit back"
limited 125 "-n 16" "$ferry" run -n 64 true
says err 'Too many open files: the launcher may have 16 (ulimit -Hn); expected one for each rank'
limited 125 "-n 16" "$ferry" run -n 8 --label true
says err 'pipe: Too many open files: the launcher may have 16 (ulimit -Hn); expected'
limited 125 "-f 1" "$ferry" run -n 2 true
says err "a sparse segment of [0-9]* MiB is more than the limit on files' sizes (ulimit -f)"

# Input, labels, long lines and lines without an end.
echo input | "$ferry" run -n 3 sh -c 'cat' >"$work/out" 2>"$work/err"
lines out 1
expect 0 "$ferry" run -n 3 --label sh -c 'echo o; echo e >&2; printf "no end"'
lines out 6
says out '^\[2\] no end$'
says err '^\[1\] e$'
expect 0 "$ferry" run -n 2 -l sh -c 'head -c 3000000 /dev/zero | tr "\0" x; echo; seq 20000'
[ "$(grep -c '^\[0\] [0-9]' "$work/out")" -eq 20000 ] || fail "lines of rank 0 are lost"
[ "$(tr -cd x <"$work/out" | wc -c)" -eq 6000000 ] || fail "a part of a long line is lost"
expect 0 "$ferry" run -n 2 --bindings true
says err 'rank 1: may use processors'

# Threads: one process that is told how many.
expect 0 "$ferry" run -n 3 --threads sh -c 'echo "$FERRY_THREADS $FERRY_RANKS $FERRY_JOB_FD"'
lines out 1
says out '^1 3 $'
expect 2 "$ferry" run --label --threads -n 2 true
says err '--label and --threads: .*; expected one of the two'
expect 0 "$ferry" run --threads -n 2 true
says err 'true has ended without opening a rank; expected a program that calls ferry_main'
expect 0 "$ferry" run --threads -n 2 "$threaded"
lines err 0
expect 3 "$ferry" run --threads -n 2 sh -c 'exit 3'
lines err 1
# A rank that ends the process with status 0, before the others have ended, is no success.
for how in _exit0 exec; do
    expect 1 "$ferry" run --threads -n 2 "$crashing" $how main 1
    says err 'ferry run: .*crashing has ended with status 0 before its ranks; the status is 1'
done
expect 0 "$ferry" run --threads -n 2 "$crashing" abort0 main 1
says err 'ends the job with status 0'

# Ranks that end.
expect 0 "$ferry" run -n 4 "$work/ranker" leave
expect 139 "$ferry" run -n 4 "$work/ranker" crash
says err 'rank 3 (process [0-9]*) was killed by SIGSEGV .*, last in task "refine_cell" (5)'
lines err 1
lines out 3
expect 3 "$ferry" run -n 3 "$work/ranker" status
says err 'rank 2 .* exited with status 3'
lines out 2
expect 3 "$ferry" run -n 3 "$work/ranker" fail # rank 2 is the first to fail, and the last to end
says err 'rank 2 .* exited with status 3, the result of its main function'
lines err 1
expect 3 "$ferry" run -n 2 "$crashing" return3 main 1
says err 'rank 1 .* exited with status 3, the result of its main function; the job ends'
expect 1 env FERRY_DIRECTORY=absent "$ferry" run -n 1 "$threaded"
says err 'rank 0 .* exited with status 1, after it had left the job'
expect 1 "$ferry" run -n 3 "$work/ranker" vanish
says err 'rank 2 .* exited with status 0.* without ferry_close'
expect 1 "$ferry" run -n 2 sh -c '[ $FERRY_RANK = 0 ] && sleep 0.2 && exit 0; exec "$0" leave' \
    "$work/ranker"
expect 0 "$ferry" run -n 2 "$work/ranker" orphan
await gone

# Signals reach the ranks; a second SIGINT ends the stubborn ones; a stopped rank can be ended.
for pair in TERM-143 HUP-129 INT-130; do
    rm -f "$work/there"
    # By env, since a shell makes its background jobs ignore SIGINT.
    timeout -s KILL 60 env --default-signal "$ferry" run -n 3 "$work/ranker" idle "$work/there" \
        >"$work/out" 2>"$work/err" &
    guard=$!
    await exists "$work/there"
    launcher=$(children_of "$guard")
    kill -"${pair%-*}" "$launcher"
    wait $guard
    status=$?
    [ $status -eq "${pair#*-}" ] || fail "status $status after SIG${pair%-*}"
    await gone
done
rm -f "$work/there"
timeout -s KILL 60 env --default-signal "$ferry" run -n 3 "$work/ranker" stubborn "$work/there" \
    >"$work/out" 2>"$work/err" &
guard=$!
await exists "$work/there"
launcher=$(children_of "$guard")
sleep 0.1
kill -INT "$launcher"
await grep -q SIGINT "$work/err"
kill -INT "$launcher"
wait $guard
[ $? -eq 137 ] || fail "status after two SIGINT"
await gone

# kill -9 of a rank and of the launcher, at all moments of a job's life.
turn=0
while [ $turn -lt 20 ]; do
    "$ferry" run -n 4 "$work/ranker" idle >"$work/out" 2>"$work/err" &
    launcher=$!
    sleep "0.0$((turn * 7 % 10))$turn"
    if [ $((turn % 2)) -eq 0 ]; then
        kill -KILL $launcher
    else
        await has_ranks $launcher 4
        kill -KILL "$(children_of $launcher | cut -d ' ' -f $((turn % 4 + 1)))"
    fi
    wait $launcher 2>/dev/null
    [ $? -eq 137 ] || fail "status after kill -9, turn $turn"
    await gone
    turn=$((turn + 1))
done

# A process that a rank has forked is no rank: it lives on, without the job's memory.
parents_child()
{
    child=
    for rank in $(children_of $launcher); do
        child="$child$(children_of "$rank")"
    done
    child=${child% }
    [ -n "$child" ]
}
"$ferry" run -n 2 "$work/ranker" parent >"$work/out" 2>"$work/err" &
launcher=$!
await parents_child
kill -KILL $launcher
wait $launcher 2>/dev/null
alone()
{
    [ "$(ls -l /proc/[0-9]*/exe 2>/dev/null | grep -cF -- "-> $work/ranker")" -eq 1 ]
}
await alone
exists "/proc/$child" || fail "the process that a rank has forked is gone"
! grep -q memfd:ferry "/proc/$child/maps" || fail "it has the job's memory"
! ls -l "/proc/$child/fd" | grep -q memfd:ferry || fail "it has a file of the job's memory"
kill -KILL $child
await gone

# The same in a world of its own, where what is left would be all there is.
if unshare -Urmpf --mount-proc true 2>/dev/null; then
    unshare -Urmpf --mount-proc sh -c '
        mount -t tmpfs none /dev/shm 2>/dev/null
        left()
        {
            ls -l /proc/[0-9]*/exe | grep -qF -- "-> $2" || [ -n "$(ls -A /dev/shm)" ]
        }
        "$1" run -n 4 "$2" idle 2>/dev/null & launcher=$!
        sleep 0.1
        kill -KILL $launcher
        wait $launcher
        for _ in $(seq 3000); do
            left "$@" || exit 0
            sleep 0.01
        done
        exit 1' sh "$ferry" "$work/ranker" >"$work/out" 2>"$work/err" ||
        fail "something was left behind a killed launcher"
else
    echo "no unshare here: the test in a world of its own is left out"
fi

ends_well
